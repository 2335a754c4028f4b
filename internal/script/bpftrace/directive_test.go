package bpftrace

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Which macros and definitions a script's conditions leave.
func TestConditions(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		types  bool
		macros map[string]string
		kept   []string
	}{
		"without_types":       {[]string{"#ifndef BPFTRACE_HAVE_BTF", "#define A 1", "struct a {}", "#else", "#define B 2", "struct b {}", "#endif"}, false, map[string]string{"A": "1"}, []string{"struct a {}"}},
		"with_types":          {[]string{"#ifndef BPFTRACE_HAVE_BTF", "#define A 1", "struct a {}", "#else", "#define B 2", "struct b {}", "#endif"}, true, map[string]string{"B": "2"}, []string{"struct b {}"}},
		"elif":                {[]string{"#define X 3", "#if X < 3", "#define A 1", "#elif X == 3 && defined(X)", "#define A 2", "#elif 1", "#define A 3", "#else", "#define A 4", "#endif"}, false, map[string]string{"X": "3", "A": "2"}, nil},
		"inside_of_a_skipped": {[]string{"#if 0", "#if 1", "#define A 1", "#else", "#define A 2", "#endif", "#endif"}, false, map[string]string{}, nil},
		"undefined_again":     {[]string{"#define X", "#undef X", "#ifdef X", "#define A 1", "#endif"}, false, map[string]string{}, nil},
		"with_parameters":     {[]string{"#define F(x) x", "#ifdef F", "#define A (1)", "#endif"}, false, map[string]string{"A": "(1)"}, nil},
		"precedence":          {[]string{"#if 1 + 2 * 3 == 7 && !(2 > 3) && -1 < 0 && (6 >> 1 | 4) == 7 && ~0 == -1 && 7 % 4 / 3 == 1", "#define A 1", "#endif"}, false, map[string]string{"A": "1"}, nil},
		"itself":              {[]string{"#define X X", "#if X", "#define A 1", "#endif"}, false, map[string]string{"X": "X"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := preprocess(c.lines, c.types)
			require.NoError(t, err)
			assert.Equal(t, c.macros, p.expansions())
			assert.Equal(t, c.kept, p.definitions)
		})
	}
}

func TestHeaders(t *testing.T) {
	require.Greater(t, len(headers()), 600)
	for name, value := range headers() {
		require.True(t, isName(name), name)
		_, err := strconv.ParseInt(value, 10, 64)
		require.NoError(t, err, name)
	}
	for script, ok := range map[string]bool{
		"#include <linux/socket.h>\nBEGIN { @ = AF_INET; }":                       true,
		"BEGIN { @ = AF_INET; }":                                                  false,
		"#if 0\n#include <linux/socket.h>\n#endif\nBEGIN { @ = AF_INET; }":        false,
		"#include <linux/socket.h>\n#define AF_INET 7\nBEGIN { @[AF_INET] = 1; }": true,
	} {
		_, err := Analyze("stdin", script, &Options{}, nil)
		require.Equal(t, ok, err == nil, script)
	}
}
