package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
)

// Each command that prints what a file or a script can make large has both flags.
func TestCommandsHaveLimits(t *testing.T) {
	app := newApp(newTerm(&strings.Builder{}, &strings.Builder{}))
	for _, name := range []string{"run", "stap", "bpftrace", "sample", "probe", "explore", "explain", "pack", "check", "scan", "info", "symbols", "hazards", "bench", "decode", "mount", "serve", "selfcheck", "boot", "kernels"} {
		c := app.Command.Command(name)
		require.NotNil(t, c, name)
		flags := map[string]cli.Flag{}
		for _, f := range c.Flags {
			flags[f.Names()[0]] = f
		}
		require.Contains(t, flags, "timeout", name)
		require.Contains(t, flags, "max-output", name)
		if l, ok := limitsOf[name]; ok {
			require.Contains(t, []uint64{bounded.Output, bounded.Listing}, l.Output, name)
		}
	}
}
