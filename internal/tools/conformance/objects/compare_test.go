package objects

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
)

// TestReadOutcome: what bpftool prints says whether a program attached, and else by which error not.
func TestReadOutcome(t *testing.T) {
	const back = "Program drawn does not support autoattach, falling back to pinning\nError: failed to pin all programs\nended with 255"
	for name, c := range map[string]struct {
		said string
		want string
		no   errno.Errno
	}{
		"attached":         {"ended with 0", "attaches", 0},
		"no_place":         {back, "loads, with no place", 0},
		"not_found":        {"libbpf: prog 'drawn': failed to find kernel BTF type ID of 'x:y': -3\nlibbpf: prog 'drawn': failed to load: -3\nError: failed to load object file\nended with 255", "ESRCH", errno.ESRCH},
		"verifier":         {"libbpf: prog 'drawn': BPF program load failed: Invalid argument\nx is not sleepable\nlibbpf: prog 'drawn': failed to load: -22\nended with 255", "EINVAL", errno.EINVAL},
		"busy":             {"libbpf: prog 'drawn': failed to attach: Device or resource busy\n" + back, "EBUSY", errno.EBUSY},
		"without_words":    {"libbpf: prog 'drawn': failed to attach: ERROR: strerror_r(-524)=22\n" + back, "ENOTSUPP", errno.ENOTSUPP},
		"unknown_to_glibc": {"libbpf: prog 'drawn': failed to attach: unknown error (-524)\n" + back, "ENOTSUPP", errno.ENOTSUPP},
		"by_name":          {"libbpf: prog 'drawn': failed to attach: -EBADF\n" + back, "EBADF", errno.EBADF},
		"refused_unnamed":  {"libbpf: kretprobes do not support offset specification\n" + back, "refused", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := readOutcome(strings.Split(c.said, "\n"))
			require.NoError(t, err)
			require.Equal(t, c.want, o.String())
			require.Equal(t, c.no, o.errno)
		})
	}
	_, err := readOutcome([]string{"libbpf: something"})
	require.ErrorContains(t, err, "did not end")
}
