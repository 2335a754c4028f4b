package aliases

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tool that fails is no tool that finds nothing.
func TestFoundNothing(t *testing.T) {
	failed := func(code string) error { return exec.Command("/bin/sh", "-c", "exit "+code).Run() }
	for name, c := range map[string]struct {
		err      error
		out, bad string
		want     bool
	}{
		"stap finds nothing":      {failed("1"), "", "Tip: see the manual\n", true},
		"kprobelab finds nothing": {failed("1"), "", "semantic error: while resolving probe point: identifier 'x' at <input>:1:7\n", true},
		"kprobelab has no match":  {failed("1"), "", "semantic error: no match: identifier 'x' at <input>:1:7\n", true},
		"no build folder":         {failed("1"), "", "ERROR: kernel release isn't found in \"x\"\n", false},
		"a syntax error":          {failed("1"), "", "parse error: expected one of ', {'\n", false},
		"another fault":           {failed("1"), "", "semantic error: unresolved function f\n", false},
		"half a list":             {failed("1"), "syscall.open name:string\n", "", false},
		"another code":            {failed("3"), "", "", false},
		"it does not start":       {errors.New("no such file"), "", "", false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, foundNothing(c.err, c.out, c.bad)) })
	}
}
