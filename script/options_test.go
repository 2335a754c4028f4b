package script_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/script"
)

// A limit is one that stap has, with a number; a global has a name. What is wrong sets nothing.
func TestLimitsAndGlobalsAsText(t *testing.T) {
	var o script.StapOptions
	for text, want := range map[string]string{
		"MAXACTION=0x10": "", "MAXERRORS=3": "",
		"MAXACTION": `"MAXACTION": want NAME=NUMBER`, "MAXACTION=x": `"MAXACTION=x": want NAME=NUMBER`, "MAXACTION=-1": `"MAXACTION=-1": want NAME=NUMBER`,
		"MAXACTION=2147483648": `"MAXACTION=2147483648": want NAME=NUMBER`,
		"STP_NO_OVERLOAD=1":    "STP_NO_OVERLOAD: there is no such limit, only " + strings.Join(script.StapLimits, ", "),
	} {
		if err := o.SetLimit(text); want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
	require.Equal(t, map[string]uint64{"MAXACTION": 16, "MAXERRORS": 3}, o.Limits)
	require.NoError(t, o.SetGlobal("a=b=c"))
	require.NoError(t, o.SetGlobal("d="))
	require.EqualError(t, o.SetGlobal("=x"), `"=x": want NAME=VALUE`)
	require.EqualError(t, o.SetGlobal("x"), `"x": want NAME=VALUE`)
	require.Equal(t, map[string]string{"a": "b=c", "d": ""}, o.Globals)
}

// A probe without hits has no statements, one that is not planted no way.
func TestCountsAsATable(t *testing.T) {
	var b strings.Builder
	script.WriteCounts(&b, []script.Counts{{Probe: "kernel.function(\"gcd\")", How: "optimized", Hits: 4, Missed: 1, Least: 1, Most: 7, Sum: 14}, {Probe: "begin"}})
	require.Equal(t, `planted          hits   missed statements       probe
optimized           4        1 1/3/7            kernel.function("gcd")
-                   0        0 -                begin
`, b.String())
}
