package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
)

// TestEnabledFile: the texts that the file kprobes/enabled accepts and returns, by release. See
// docs/spec 8.3.
func TestEnabledFile(t *testing.T) {
	for _, c := range []struct {
		text       string
		on         bool
		old, since bool // accepted to 5.15, and later
	}{
		{"1", true, true, true}, {"1\n", true, true, true}, {"y", true, true, true}, {"Yes", true, true, true},
		{"0", false, true, true}, {"n", false, true, true}, {"N\n", false, true, true}, {"0x1", false, true, true},
		{"t", true, false, true}, {"True", true, false, true}, {"f", false, false, true}, {"FALSE", false, false, true},
		{"on", true, false, true}, {"oN", true, false, true}, {"Off", false, false, true}, {"oF", false, false, true},
		{"", false, false, false}, {"o", false, false, false}, {"ok", false, false, false}, {"2", false, false, false},
		{" 1", false, false, false}, {"-1", false, false, false},
	} {
		allKernels(t, func(t *testing.T, kernel string) {
			w := newWorld(t, kernel, 1)
			accepted := c.old
			if kernel == "6.1" || kernel == "6.12" {
				accepted = c.since
			}
			require.NoError(t, w.k.SetEnabled(!c.on))
			err := w.k.WriteEnabled(c.text)
			if !accepted {
				require.ErrorIs(t, err, errno.EINVAL, "%q", c.text)
				require.Equal(t, !c.on, w.k.Enabled())
				return
			}
			require.NoError(t, err, "%q", c.text)
			require.Equal(t, map[bool]string{true: "1\n", false: "0\n"}[c.on], w.k.ReadEnabled(), "%q", c.text)
		})
	}
}

// TestEnabledFileLog: the log lines, with failures and without; a write
// that changes nothing logs nothing.
// See docs/spec 8.3.
func TestEnabledFileLog(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var log []string
	w.k.OnLog(func(line string) { log = append(log, line) })
	w.register(t, at(w.leaf))
	w.register(t, at(w.steady))
	disabled := at(w.calls)
	require.NoError(t, w.k.RegisterKprobe(disabled))
	require.NoError(t, w.k.DisableKprobe(disabled))
	defer w.k.UnregisterKprobe(disabled)
	require.NoError(t, w.k.WriteEnabled("0"))
	require.NoError(t, w.k.WriteEnabled("0"))
	w.pokeErr = errPoke
	require.ErrorIs(t, w.k.WriteEnabled("1"), errPoke)
	w.pokeErr = nil
	require.NoError(t, w.k.SetEnabled(false))
	require.NoError(t, w.k.SetEnabled(true))
	require.Equal(t, []string{
		"kprobes: Kprobes globally disabled",
		"kprobes: Kprobes globally enabled, but failed to enable 2 out of 2 probes. Please check which kprobes are kept disabled via debugfs.",
		"kprobes: Kprobes globally disabled",
		"kprobes: Kprobes globally enabled",
	}, log)
}
