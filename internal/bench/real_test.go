package bench

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func recorded(t *testing.T) *RealKernels {
	text, err := os.ReadFile("testdata/qemu.txt")
	require.NoError(t, err)
	m, err := ParseReal(string(text))
	require.NoError(t, err)
	return m
}

// Rounds of a path in several runs of one kernel are one row; the same path of
// another kernel, and another form, are others.
func TestParseReal(t *testing.T) {
	m := recorded(t)
	require.Equal(t, []string{`cpu="qemu64" cpus=1 parallel=false qemu="7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)"`}, m.Machines)
	require.Len(t, m.Rows, 12+14)
	require.Equal(t, Real{Path: "k", Form: "plain", Kernel: "6.1.0-56-cloud-amd64", Preemption: true,
		Samples: []float64{1223.64, 1272.39, 1229.09, 1243.66, 1343.99, 1255.13}}, m.Rows[0])
	require.Equal(t, "not-boostable", m.Rows[1].Form)
	b := m.Rows[12]
	require.Equal(t, "b", b.Path)
	require.Equal(t, "5.10.0-46-cloud-amd64 (no PREEMPTION)", b.Config())
}

// One round that went wrong leaves no figure, in whichever run it was.
func TestParseRealErrors(t *testing.T) {
	m, err := ParseReal("kernel release=6.1.0 preemption=1\nbench path=o ns=1,2\nbench path=o error=\"byte \\\"cc\\\", not e9\"\n")
	require.NoError(t, err)
	require.Equal(t, []Real{{Path: "o", Kernel: "6.1.0", Preemption: true, Samples: []float64{1, 2}, Error: `byte "cc", not e9`}}, m.Rows)
}

func TestParseRealRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             "",
		"no_path":             "# a comment\nmachine cpu=x\nkernel release=6.1.0\n",
		"path_without_name":   "kernel release=6.1.0\nbench ns=1\n",
		"path_before_kernel":  "bench path=o ns=1\n",
		"no_samples":          "kernel release=6.1.0\nbench path=o\n",
		"sample_not_a_number": "kernel release=6.1.0\nbench path=o ns=1,x\n",
		"another_word":        "kernel release=6.1.0\nbench path=o ns=1\n[   12.3] a message of the kernel\n",
		"not_key_value":       "kernel release\n",
		"quote_without_end":   "kernel release=\"6.1.0\nbench path=o ns=1\n",
	} {
		_, err := ParseReal(text)
		require.ErrorIs(t, err, ErrReal, name)
	}
}

func TestMajorMinor(t *testing.T) {
	for name, want := range map[string]string{
		"6.1.0-56-cloud-amd64": "6.1", "6.1": "6.1", "5.10 (no PREEMPTION)": "5.10", "5.8+PREEMPTION": "5.8", "6.12.117+deb13": "6.12", "7": "7", "": "",
	} {
		require.Equal(t, want, majorMinor(name), name)
	}
}
