package table

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tools/conformance"
)

func result(kernel, cpu string, same int) conformance.Result {
	return conformance.Result{
		Kernel: kernel, CPU: cpu, Date: "2026-11-22", Points: conformance.Score{Asked: 3000, Same: same},
		Names: conformance.Score{Asked: 500, Same: 500}, Text: conformance.Score{Asked: 9, Same: 4}, Causes: map[string]int{"once": 5},
	}
}

// Rule: results of a folder replace the list's, newer versions come first, and
// flavours with the same figures share a line.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	page, data, kept := filepath.Join(dir, "page.md"), filepath.Join(dir, "list"), filepath.Join(dir, "kept")
	require.NoError(t, os.WriteFile(page, []byte("before\n<!-- kernels: begin, generated -->\nold\n<!-- kernels: end -->\nafter\n"), 0o600))
	require.NoError(t, write(data, []conformance.Result{result("6.1.0-56-amd64", "qemu64", 2999), result("6.1.0-9-amd64", "qemu64", 3000)}))
	require.NoError(t, os.Mkdir(kept, 0o700))
	for _, r := range []conformance.Result{
		result("7.3.4+deb13-rt-amd64", "qemu64", 2998), result("6.1.0-56-amd64", "qemu64", 3000), result("6.1.0-56-cloud-amd64", "qemu64", 3000),
		result("6.1.0-56-cloud-amd64", "EPYC", 3000),
	} {
		require.NoError(t, r.Save(filepath.Join(kept, r.Kernel+r.CPU+".json")))
	}
	require.NoError(t, run("", kept, data, page))
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	got := string(b)
	require.True(t, strings.HasPrefix(got, "before\n<!-- kernels: begin, generated -->\n\n4 kernels, 15,000 points; of 5 boots, 1 have"), got)
	require.True(t, strings.HasSuffix(got, "\n<!-- kernels: end -->\nafter\n"))
	require.NotContains(t, got, "old")
	var rows []string
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| kernel") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	require.Equal(t, []string{
		"| 7.3.4+deb13 | rt | qemu64 | **2,998 of 3,000** | 500 | 0 | once 5 | 2026-11-22 |",
		"| 6.1.0-56 | amd64, cloud | qemu64 | 3,000 | 500 | 0 | once 5 | 2026-11-22 |",
		"| 6.1.0-56 | cloud | EPYC | 3,000 | 500 | 0 | once 5 | 2026-11-22 |",
		"| 6.1.0-9 | amd64 | qemu64 | 3,000 | 500 | 0 | once 5 | 2026-11-22 |",
	}, rows)

	// Without new results, the list alone makes the same page.
	require.NoError(t, run("", "", data, page))
	again, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, got, string(again))

	require.NoError(t, os.WriteFile(page, []byte("no markers\n"), 0o600))
	require.ErrorContains(t, run("", "", data, page), "no lines that begin with")
}
