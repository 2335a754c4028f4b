package bpftrace

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// A parameter that str() takes has the sign that its text gives it, like others.
func TestSignsOfParametersInStr(t *testing.T) {
	for args, want := range map[string]string{"1e3 4294967296": "'int64' and 'uint64'", "-3 7": "'int64' and 'uint64'", "7 -3": "'uint64' and 'int64'", "7 8": "", "abc": "", "7": ""} {
		_, err := Analyze("stdin", "BEGIN { print(str($1 + $2)); }", &Options{Args: strings.Fields(args)}, nil)
		require.Error(t, err)
		if want == "" {
			assert.NotContains(t, err.Error(), "different signs", args)
		} else {
			assert.Contains(t, err.Error(), "arithmetic on integers of different signs: "+want, args)
		}
	}
}

// What C says of a declaration without a name: a structure's that has one is none.
func TestDeclarationsWithoutAName(t *testing.T) {
	for body, size := range map[string]int64{
		"int b; struct x { int y; };": 4, "int b; struct { int y; };": 8, "int b; int;": 4, "enum { A, B }; int c;": 4, "union u { int x; long y; }; union u z;": 8,
	} {
		d, err := define(&preprocessor{definitions: []string{"struct a { " + body + " }"}}, nil)
		require.NoError(t, err, body)
		require.Equal(t, size, d.types["struct a"].Size(), body)
	}
}
