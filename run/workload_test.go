package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkloadsByName(t *testing.T) {
	require.Equal(t, []string{"files", "memory", "mounts", "processes", "signals", "sockets"}, WorkloadNames())
	for text, names := range map[string]string{"files": "files", "mounts,files": "mounts files", " signals , sockets": "signals sockets"} {
		var lines []string
		for _, name := range strings.Fields(names) {
			lines = append(lines, workloads[name])
		}
		require.Equal(t, strings.Join(append(lines, "true"), "\n"), Workload(text), text)
	}
	for _, line := range []string{"", "files;", "./files", "files,", "files,none", "Files", "echo files"} {
		require.Equal(t, line, Workload(line), "a line of the shell stays one")
	}
}
