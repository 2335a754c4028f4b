package libcheck

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/profile"
)

// kernelFile is the image under test: $KPROBELAB_KERNEL, else the measured kernel's own. The test
// is skipped if there is none.
func kernelFile(t testing.TB, kernel string) string {
	t.Helper()
	if file := os.Getenv("KPROBELAB_KERNEL"); file != "" {
		return file
	}
	return oracle.Image(t, kernel)
}

// newLab opens the image on a machine of its own, with the profile of that
// name, or its own where the name is empty.
func newLab(t testing.TB, kernel, behave string) *kprobelab.Lab {
	t.Helper()
	var o kimage.Options
	if behave != "" {
		o.Profile, _ = profile.Named(behave)
		require.NotNil(t, o.Profile, behave)
	}
	img, err := kimage.Open(kernelFile(t, kernel), &o)
	require.NoError(t, err)
	l, err := kprobelab.New(img, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// present reports whether the image has the function with the parameters that
// the calls have: some changed between releases.
func present(l *kprobelab.Lab, f *Func) bool {
	if len(l.Image.Lookup(f.Name)) == 0 {
		return false
	}
	call := f.Gen(NewGen(1))
	p, ok := l.Image.Proto(f.Name)
	return !ok || len(p.Params) == len(call.Args) || p.Variadic
}

// Every function of the real kernel answers as its counterpart in Go does.
func TestUnprobed(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			l := newLab(t, kernel, "")
			a, err := newArena(l.Machine, l.Image)
			require.NoError(t, err)
			tested := 0
			for _, f := range All() {
				if !present(l, &f) {
					continue
				}
				tested++
				t.Run(f.Name, func(t *testing.T) { unprobed(t, l, a, f) })
			}
			t.Logf("%d functions", tested)
			require.GreaterOrEqual(t, tested, 100)
		})
	}
}

func unprobed(t *testing.T, l *kprobelab.Lab, a *arena, f Func) {
	addr := l.Image.Lookup(f.Name)[0].Addr
	for seed := range uint64(200) {
		call := f.Gen(NewGen(seed))
		args, want, err := a.place(&call)
		require.NoError(t, err)
		ret, err := l.Machine.CallAddr(addr, args...)
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, a.check(&call, ret, want), "seed %d", seed)
	}
}
