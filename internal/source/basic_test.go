package source

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The words of C for an integer come in many orders, and leave "int" out.
func TestBasicTypes(t *testing.T) {
	for text, want := range map[string]Type{
		"long": {Size: 8, Signed: true}, "unsigned long": {Size: 8}, "long unsigned int": {Size: 8}, "const unsigned": {Size: 4}, "int": {Size: 4, Signed: true},
		"short": {Size: 2, Signed: true}, "unsigned short int": {Size: 2}, "char": {Size: 1, Signed: true, Char: true}, "unsigned char": {Size: 1, Char: true},
		"long long": {Size: 8, Signed: true}, "signed": {Size: 4, Signed: true},
	} {
		got := basic(text)
		if assert.NotNil(t, got, text) {
			assert.Equal(t, [3]any{want.Size, want.Signed, want.Char}, [3]any{got.Size, got.Signed, got.Char}, text)
		}
	}
	for _, text := range []string{"", "const", "u32", "char *", "struct file", "unsigned foo"} {
		assert.Nil(t, basic(text), text)
	}
}
