package bounded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// An allocation that fails is an error of one sentence. The test runs itself once more, with little address space.
func TestMemoryThatTheSystemDoesNotGive(t *testing.T) {
	if file := os.Getenv("BOUNDED_ROOM"); file != "" {
		var pages int64
		text, err := os.ReadFile("/proc/self/statm")
		require.NoError(t, err)
		_, err = fmt.Sscan(string(text), &pages)
		require.NoError(t, err)
		limit := uint64(pages*4096) + 300<<20
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}))
		_, err = ReadFile(file, 2<<30)
		fmt.Println("said:", err)
		return
	}
	if underRace {
		t.Skip("the race detector's own memory does not fit into the little that is left to a process here (make test runs it without)")
	}
	for name, size := range map[string]int64{"little_more": 320 << 20, "much_more": 1 << 30, "fits": 40 << 20} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f")
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			require.NoError(t, os.Truncate(file, size))
			cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryThatTheSystemDoesNotGive$")
			cmd.Env = append(os.Environ(), "BOUNDED_ROOM="+file)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			if name == "fits" {
				require.Contains(t, string(out), "said: <nil>")
				return
			}
			require.Contains(t, string(out), ErrNoRoom.Error())
			require.False(t, strings.Contains(string(out), "fatal error"), string(out))
		})
	}
}
