package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/interp"
	"kprobelab/kimage"
)

func TestABootedKernelIsCalled(t *testing.T) {
	img, err := kimage.Open(dumps.File(t, "6.1"), nil)
	require.NoError(t, err)
	m, err := interp.New(img, nil)
	require.NoError(t, err)
	defer m.Close()
	n, err := m.Call("gcd", 12, 18)
	require.NoError(t, err)
	require.EqualValues(t, 6, n)
	b := make([]byte, 64)
	n, err = m.Call("snprintf", b, len(b), "%s %d %pS", "text", 42, m.Stopped().IP)
	require.NoError(t, err)
	t.Log(n, string(b[:n]))
	pid, err := m.SystemCall(39)
	require.NoError(t, err)
	t.Log(pid)
}
