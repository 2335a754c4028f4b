package losses_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/bpf/losses"
	"kprobelab/internal/integration/dumps"
)

// branches is a program with branches of which each but one is taken so many times by 20 calls.
const branches = `typedef unsigned long long u64;
#define SEC(name) __attribute__((section(name), used))
struct { int (*type)[2]; unsigned (*max_entries)[1]; unsigned *key; u64 *value; } counts SEC(".maps");
static void *(*lookup)(void *, const void *) = (void *)1;
static long (*print)(const char *, unsigned, ...) = (void *)6;
SEC("kprobe/__x64_sys_getppid") int covered(void *ctx)
{
	unsigned key = 0;
	u64 *n = lookup(&counts, &key);
	if (!n)
		return 1;
	u64 v = *n;
	*n = v + 1;
	if (v % 4 == 0) {
		static const char text[] = "four";
		print(text, sizeof(text));
	}
	if (v > 1000) {
		static const char text[] = "never";
		print(text, sizeof(text));
	}
	return 0;
}
char _license[] SEC("license") = "GPL";
`

// TestCoverage: a line's count is how often it ran: what the program itself prints in a branch is the same.
func TestCoverage(t *testing.T) {
	clang, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("there is no clang")
	}
	dir := t.TempDir()
	source, object := filepath.Join(dir, "covered.bpf.c"), filepath.Join(dir, "covered.bpf.o")
	require.NoError(t, os.WriteFile(source, []byte(branches), 0o600))
	cmd := exec.Command(clang, "-target", "bpf", "-O2", "-g", "-c", "-o", object, "covered.bpf.c")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	code, err := os.ReadFile(object)
	require.NoError(t, err)
	lines := &losses.Lines{}
	kernels := uint64(0)
	each(t, dumps.Twin, func(t *testing.T, kernel string) {
		own, _ := loseWith(t, kernel, lines, map[string][]byte{"/covered.bpf.o": code}, "object", "20")
		require.EqualValues(t, 5, own.Gave, "lines of trace_pipe")
		kernels++
		for line, want := range map[uint32]uint64{9: 20, 14: 20, 16: 5, 20: 0} {
			n, known := lines.Count(source, line)
			require.True(t, known, "line %d of %v", line, text(lines))
			require.Equal(t, want*kernels, n, "line %d of %v", line, text(lines))
		}
	})
	if kernels > 0 { // without a dump, each says what is missing
		require.Contains(t, text(lines), fmt.Sprintf("DA:16,%d\n", 5*kernels))
	}
}

func text(l *losses.Lines) string {
	var b bytes.Buffer
	_ = l.Write(&b)
	return b.String()
}
