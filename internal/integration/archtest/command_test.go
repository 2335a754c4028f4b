package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commandLines is the most that the command may have without its tests: what it does is in packages that other programs can call.
const commandLines = 5500

func TestTheCommandIsSmall(t *testing.T) {
	files, err := filepath.Glob("../../../cmd/kprobelab/*.go")
	require.NoError(t, err)
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		lines += bytes.Count(b, []byte("\n"))
	}
	require.Greater(t, lines, 1000, "the files were found")
	require.LessOrEqual(t, lines, commandLines, "cmd/kprobelab has flags, files, colours and exit codes; the rest belongs into a package")
}
