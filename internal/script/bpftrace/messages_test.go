package bpftrace

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// messages are scripts, each after ">", and what bpftrace 0.23.2 says of them (bpftrace --dry-run):
// of declarations, of delete, macaddr, buffers, and of types that are not known.
//
//go:embed testdata/messages.txt
var messages string

func TestMessagesAreTheTools(t *testing.T) {
	blocks := strings.Split("\n"+messages, "\n> ")[1:]
	assert.Greater(t, len(blocks), 100)
	for _, block := range blocks {
		script, want, _ := strings.Cut(block, "\n")
		got := ""
		s, err := Analyze("stdin", script, &Options{}, nil)
		if err != nil {
			got = err.Error()
		} else {
			got = s.Warnings
		}
		assert.Equal(t, strings.TrimRight(want, "\n"), strings.TrimRight(got, "\n"), script)
	}
}

// bool in a declaration and in a cast is of no size in bpftrace 0.23.2, which then dies or says uint0.
func TestBoolHasNoSize(t *testing.T) {
	for script, want := range map[string]string{
		"BEGIN { let $y : bool; }":                                   noBool,
		"BEGIN { let $y : bool; print($y); }":                        noBool,
		"BEGIN { let $y : bool = 1; }":                               "uint0",
		"BEGIN { let $y : bool = (1 < 2); }":                         "trying to assign value of type 'int64' when variable already has a type 'uint0'",
		"BEGIN { $y = (bool)5; }":                                    noBool,
		"BEGIN { @[(bool)1] = 1; }":                                  noBool,
		"enum { no, yes }; BEGIN { let $y : bool = yes; }":           "Integer size mismatch. Assignment type 'enum enum (unnamed at definitions.h:2:1)' is larger than the variable type 'uint0'.",
		"enum { no, yes }; BEGIN { let $y : int8 = yes; }":           "value of type 'enum enum (unnamed at definitions.h:2:1)' when variable already has a type 'int8'",
		"enum e { no, yes }; BEGIN { let $y : int8 = yes; }":         "value of type 'enum e'",
		"BEGIN { let $y : bool *; }":                                 "",
		"BEGIN { $p = (bool *)0; print($p); }":                       "",
		"BEGIN { print(sizeof(bool)); }":                             "",
		"enum { no, yes }; BEGIN { $y = yes; $y = 5; if (yes) { } }": "",
	} {
		_, err := Analyze("stdin", script, &Options{}, nil)
		if want == "" {
			assert.NoError(t, err, script)
			continue
		}
		assert.ErrorContains(t, err, want, script)
	}
}
