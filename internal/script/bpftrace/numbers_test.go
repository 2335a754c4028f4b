package bpftrace

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A number that cannot be read is left out, and the tool goes on.
func TestNumbersThatCannotBeRead(t *testing.T) {
	for text, want := range map[string][]string{
		"BEGIN { print(18446744073709551616); }":           {"1:9-35: ERROR: stoull"},
		"BEGIN { print(0x1ffffffffffffffff); }":            {"1:9-34: ERROR: stoull"},
		"BEGIN { print(09); }":                             {"1:9-17: ERROR: Found trailing non-numeric characters"},
		"BEGIN { $x = 09; }":                               {"1:14-16: ERROR: Found trailing non-numeric characters", "1:14-17: ERROR: syntax error, unexpected ;"},
		"BEGIN { @a[99999999999999999999] = 1; }":          {"1:9-32: ERROR: stoull", "1:9-33: ERROR: syntax error, unexpected ]"},
		"BEGIN { unroll(99999999999999999999) { } }":       {"1:9-36: ERROR: stoull", "1:9-37: ERROR: syntax error, unexpected ), expecting $# or - or positional parameter or integer"},
		"BEGIN { $x = 1e17 ; }":                            {"1:14-18: ERROR: Exponent will overflow integer range: 17", "1:19-20: ERROR: syntax error, unexpected ;"},
		"interval:s:99999999999999999999 { exit(); }":      {"ERROR: stoull\nInvalid rate of interval probe"},
		"interval:s:abc { exit(); }":                       {"ERROR: stoull\nInvalid rate of interval probe"},
		"interval:s:5x { exit(); }":                        {"ERROR: Found trailing non-numeric characters\nInvalid rate of interval probe"},
		"interval:s:-5 { exit(); }":                        {"ERROR: interval frequency should be a positive integer"},
		"interval:s:0x5 { exit(); }":                       nil,
		"BEGIN { print($1); }":                             {`$1 used numerically but given "1e3"`},
		"BEGIN { print($2); }":                             {`$2 used numerically but given ""`},
		"BEGIN { print($3); }":                             {`$3 used numerically but given "1_0"`},
		"BEGIN { print($4); print($9); print(-9 + 1_0); }": nil,
	} {
		_, err := Analyze("stdin", text, &Options{Args: []string{"1e3", "", "1_0", "-0x10"}}, nil)
		var p *Problems
		if want == nil {
			require.NoError(t, err, text)
			continue
		}
		require.True(t, errors.As(err, &p), text)
		for _, w := range want {
			require.Contains(t, p.Text(), w, text)
		}
	}
}
