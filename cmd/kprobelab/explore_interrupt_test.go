package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ctrl-C ends an exploration. It prints the findings so far, and its exit code is 1, for not all was tried.
func TestCtrlCOfExplore(t *testing.T) {
	large := []string{"four-hits", "--bound", "-1", "--max-runs", "100000000"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"all_orders": {large, `(?s)^four-hits: profile 6.1, any number of switches\n\d+ runs, \d+ places with a choice, \d+ states, \d+ ends\nunfinished: ended after \d+ runs, before all were tried\n$`},
		"walks":      {append(large, "--walks", "100000000"), `(?s)^four-hits: .*\nunfinished: ended after \d+ walks\n$`},
		"json":       {append(large, "--json"), `^\{"scenario":"four-hits",.*"verdict":"unfinished","reason":"ended after \d+ runs, before all were tried","counts":\{"runs":\d+,.*\}\}\n$`},
		"all":        {[]string{"--all", "--bound", "-1", "--max-runs", "100000000"}, `(?s) unfinished +\d+ runs, \d+ states.*\ninterrupted at scenario \d+ of \d+\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "kprobelab", append([]string{"explore"}, c.args...)...)
			var out bytes.Buffer
			cmd.Stdout = &out
			errs, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			said := bufio.NewScanner(errs)
			for said.Scan() {
				if strings.Contains(said.Text(), " states after ") { // it is searching
					require.NoError(t, cmd.Process.Signal(os.Interrupt))
					break
				}
			}
			for said.Scan() {
				assert.Contains(t, said.Text(), " states after ", "nothing but how far it is")
			}
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Wait(), &exit)
			assert.Equal(t, exitRefused, exit.ExitCode())
			assert.Regexp(t, c.want, out.String())
		})
	}
}
