package ctype

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The words of C for an integer come in many orders, and leave "int" out.
func TestBasicTypes(t *testing.T) {
	for text, want := range map[string]Type{
		"long": {Bytes: 8, Signed: true}, "unsigned long": {Bytes: 8}, "long unsigned int": {Bytes: 8}, "const unsigned": {Bytes: 4}, "int": {Bytes: 4, Signed: true},
		"short": {Bytes: 2, Signed: true}, "unsigned short int": {Bytes: 2}, "char": {Bytes: 1, Signed: true, Char: true}, "unsigned char": {Bytes: 1, Char: true},
		"long long": {Bytes: 8, Signed: true}, "signed": {Bytes: 4, Signed: true},
	} {
		got := Integer(text)
		if assert.NotNil(t, got, text) {
			assert.Equal(t, [3]any{want.Bytes, want.Signed, want.Char}, [3]any{got.Bytes, got.Signed, got.Char}, text)
		}
	}
	for _, text := range []string{"", "const", "u32", "char *", "struct file", "unsigned foo"} {
		assert.Nil(t, Integer(text), text)
	}
}
