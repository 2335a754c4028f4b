package running

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/hostfiles"
	"kprobelab/internal/integration/dumps"
)

// may holds the output of testdata/rights.elf: for a BPF map of a size, a BPF program for kprobes, its kprobe, a socket
// filter and a raw socket 0 or the errno.
func may(user, group int, results ...errno.Errno) string {
	s := fmt.Sprintf("user %d group %d\n", user, group)
	for i, name := range []string{"map", "kprobe program", "kprobe", "socket filter", "raw socket"} {
		s += fmt.Sprintln(name, int(results[i]))
	}
	return s
}

// TestRightsOfPrograms: BPF works as root, and as a user with the capabilities that a kernel wants for each part of it.
func TestRightsOfPrograms(t *testing.T) {
	const (
		no     = errno.EPERM
		denied = errno.EACCES
	)
	eachBut(t, dumps.Ends, func(t *testing.T, k *kernel) {
		small := errno.Errno(0) // BPF maps count for memlock up to 5.10
		if strings.HasSuffix(t.Name(), "/5.10") {
			small = no
		}
		var files hostfiles.Set
		require.NoError(t, files.Add("../../../testdata/rights.elf", "/tmp/rights"))
		for _, c := range []struct {
			name, user, caps, limit, sysctl string
			size                            int
			want                            string
		}{
			{"root", "", "", "", "", 8, may(0, 0, 0, 0, 0, 0, 0)},
			{"root_by_its_name", "root", "", "", "", 8, may(0, 0, 0, 0, 0, 0, 0)},
			{"root_without_capabilities", "", "none", "", "", 8, may(0, 0, no, no, denied, no, no)},
			{"root_with_one", "", "bpf", "", "", 8, may(0, 0, 0, no, denied, 0, no)},
			{"root_with_all", "", "ALL", "", "", 8, may(0, 0, 0, 0, 0, 0, 0)},
			{"a_user", "nobody", "", "", "", 8, may(65534, 65534, no, no, denied, no, no)},
			{"a_user_with_bpf", "1000:5", "bpf", "", "", 8, may(1000, 5, 0, no, denied, 0, no)},
			{"a_user_with_perfmon", "1000", "CAP_PERFMON", "", "", 8, may(1000, 1000, no, no, denied, no, no)},
			{"a_user_with_both", "1000:0", "bpf, Cap_perfmon", "", "", 8, may(1000, 0, 0, 0, denied, 0, no)},
			{"both_as_in_the_kernel_without_Debians_patch", "1000", "bpf,perfmon", "", "kernel.perf_event_paranoid=2", 8, may(1000, 1000, 0, 0, 0, 0, no)},
			{"a_group_alone", "0:7", "", "", "", 8, may(0, 7, 0, 0, 0, 0, 0)},
			{"a_user_when_all_may", "nobody", "", "", "kernel/unprivileged_bpf_disabled=0", 8, may(65534, 65534, 0, no, denied, 0, no)},
			{"memlock_of_init", "", "", "", "", 1_000_000, may(0, 0, small, 0, 0, 0, 0)},
			{"memlock_above_the_map", "", "", "memlock=2M", "", 1_000_000, may(0, 0, 0, 0, 0, 0, 0)},
			{"memlock_below_the_map", "", "", "memlock=64K:unlimited", "", 1_000_000, may(0, 0, small, 0, 0, 0, 0)},
		} {
			t.Run(c.name, func(t *testing.T) {
				k.restore()
				require.NoError(t, k.Put(files.Files()))
				var out bytes.Buffer
				s := &booted.Session{Program: booted.Program{Args: []string{"/tmp/rights", fmt.Sprint(c.size)}, Stdout: &out, Stderr: &out}}
				for text, set := range map[string]func(string) error{c.user: s.Rights.SetUser, c.caps: s.Rights.AddCapabilities, c.limit: s.Rights.SetLimit} {
					if text != "" {
						require.NoError(t, set(text))
					}
				}
				if name, value, ok := strings.Cut(c.sysctl, "="); ok {
					require.NoError(t, k.SetSysctl(name, value))
				}
				r, err := k.Run(context.Background(), s)
				require.NoError(t, err)
				require.Equal(t, 0, r.Code)
				require.Equal(t, c.want, out.String())
			})
		}
	})
}

// TestRightsInTheKernel: the kernel shows the rights as they were asked for, and no others can be had.
func TestRightsInTheKernel(t *testing.T) {
	k := boot(t, "6.1")
	for _, c := range []struct {
		name, user, caps, limit, line, want string
	}{
		{"groups", "1000:5", "", "", "grep -E '^(Uid|Gid|Groups):' /proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nGid:\t5\t5\t5\t5\nGroups:\t \n"},
		{"capabilities", "1000", "bpf,chown", "", "grep ^Cap /proc/self/status", strings.ReplaceAll("CapInh:\tX\nCapPrm:\tX\nCapEff:\tX\nCapBnd:\tX\nCapAmb:\tX\n", "X", "0000008000000001")},
		{"capabilities_of_root", "", "bpf,chown", "", "grep -E '^Cap(Prm|Eff|Bnd|Amb)' /proc/self/status",
			"CapPrm:\t0000008000000001\nCapEff:\t0000008000000001\nCapBnd:\t0000008000000001\nCapAmb:\t0000000000000000\n"},
		{"none_for_a_user", "1000", "", "", "grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status", "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n"},
		{"limits", "1000", "", "nofile=100:200", "ulimit -Sn; ulimit -Hn; ulimit -n 300 2>/dev/null || echo no", "100\n200\nno\n"},
		{"the_streams", "1000", "", "", "echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin", "out\nerr\ngiven"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.restore()
			require.NoError(t, k.Prepare(nil))
			var out bytes.Buffer
			s := &booted.Session{Program: sh(c.line, &out)}
			s.Stdin = []byte("given")
			for text, set := range map[string]func(string) error{c.user: s.Rights.SetUser, c.caps: s.Rights.AddCapabilities, c.limit: s.Rights.SetLimit} {
				if text != "" {
					require.NoError(t, set(text))
				}
			}
			_, err := k.Run(context.Background(), s)
			require.NoError(t, err)
			require.Equal(t, c.want, out.String())
		})
	}
	for _, c := range []struct{ name, value string }{{"kernel.none", "1"}, {"kernel", "1"}, {"", "1"}, {"../../etc/passwd", "x"}, {"a..b", "1"}} {
		require.ErrorIs(t, k.SetSysctl(c.name, c.value), booted.ErrSysctl, c.name)
	}
	require.ErrorIs(t, k.SetSysctl("kernel.perf_event_paranoid", "many"), errno.EINVAL)
	require.ErrorIs(t, k.SetSysctl("kernel.osrelease", "x"), errno.EACCES)
}
