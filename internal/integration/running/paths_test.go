package running

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/bench"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
)

// TestPathsOnABootedKernel measures each path that hits in a booted kernel can take. A hit has the
// same parts as on an image that has not booted; else Run fails. Hits other than the calls', such
// as a tick's, are not counted.
func TestPathsOnABootedKernel(t *testing.T) {
	for _, c := range []struct {
		kernel, symbol string
		offset         uint32
		call           string
		hits           int
		others         []int
		want           []string
	}{
		{"6.1", "hex_to_bin", 0, "hex_to_bin(65)", 1, []int{0, 40},
			[]string{"k", "k-post", "b", "o", "r", "rb", "ro", "kr", "nested", "disabled", "next-door"}},
		{"6.1.smp2", "vsnprintf", 0, `snprintf(buf[64], 64, "%d", 42)`, 1, nil,
			[]string{"k", "k-post", "b", "o", "r", "rb", "ro", "kr", "nested", "disabled", "next-door"}},
		{"6.12", "vfs_statx", 0, `newfstatat(AT_FDCWD, "/", buf[256], 0)`, 1, nil,
			[]string{"ftrace", "r-ftrace", "disabled", "next-door"}},
		{"5.10", "path_init", 5, `openat(AT_FDCWD, "/nope", O_RDONLY)`, 1, nil,
			[]string{"k", "k-post", "b", "o", "disabled", "next-door"}},
		{"6.1", "format_decode", 5, `snprintf(buf[64], 64, "%d %d", 4, 2)`, 3, nil,
			[]string{"k", "k-post", "b", "o", "nested", "disabled", "next-door"}},
	} {
		t.Run(c.kernel+"/"+c.symbol, func(t *testing.T) {
			file := runs.File(t, c.kernel)
			r, err := bench.Run(&bench.Options{Rounds: 1, Hits: 50, Others: c.others, Target: &bench.Target{
				Open: func(modules ...string) (*kimage.Image, error) {
					return kprobelab.OpenImage(file, &kimage.Options{Modules: modules})
				},
				Place: probepoint.Request{Symbol: c.symbol, Offset: c.offset},
				Call:  c.call,
			}})
			require.NoError(t, err)
			require.Equal(t, c.hits, r.Target.HitsPerCall)
			var names []string
			for _, p := range r.Paths {
				if p.Others == 0 {
					names = append(names, p.Path)
				}
				if c.call == "hex_to_bin(65)" && p.Handler == bench.HandlerGo {
					require.Equal(t, instructions[p.Path], p.Instructions, p.Path)
				}
			}
			require.Equal(t, c.want, names)
			for _, s := range r.Skipped {
				require.False(t, slices.Contains(c.want, s.Path), s.Reason)
			}
		})
	}
}

// instructions are the numbers of additional instructions of the guest for a hit with a handler in
// Go, by path; the table of docs/cost.md has them for the guest kernel.
var instructions = map[string]float64{"k": 2, "k-post": 2, "b": 2, "o": 50, "r": 45, "rb": 45, "ro": 93, "kr": 45}

func TestWhatCannotBeMeasuredOnABootedKernel(t *testing.T) {
	file := runs.File(t, "6.1")
	for call, want := range map[string]string{
		"fork()":             "fork(): it cannot be measured: the process that it makes would make the calls, too",
		"getpid()":           "getpid(): it cannot be measured: it does not come to kernel_clone",
		"exit_group(0)":      "Attempted to kill init",
		`read(0, buf[8], 8)`: "pid 1 (init) sleeps in",
	} {
		_, err := bench.Run(&bench.Options{Rounds: 1, Hits: 1, Target: &bench.Target{
			Open: func(modules ...string) (*kimage.Image, error) {
				return kprobelab.OpenImage(file, &kimage.Options{Modules: modules})
			},
			Place: probepoint.Request{Symbol: "kernel_clone"},
			Call:  call,
		}})
		require.ErrorContains(t, err, want, call)
	}
}
