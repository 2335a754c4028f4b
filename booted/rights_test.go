package booted

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRightsAsText(t *testing.T) {
	set := map[string]func(*Rights, string) error{"user": (*Rights).SetUser, "cap": (*Rights).AddCapabilities, "limit": (*Rights).SetLimit}
	shown := func(r *Rights) string {
		s := ""
		if u := r.of.User; u != nil {
			s += fmt.Sprint(u.ID, ":", u.Group, " ")
		}
		if c := r.of.Capabilities; c != nil {
			s += fmt.Sprintf("%x ", *c)
		}
		for n, l := range r.of.Limits {
			s += fmt.Sprintf("%d=%x:%x", n, l.Soft, l.Hard)
		}
		return strings.TrimSpace(s)
	}
	for _, c := range []struct{ kind, text, want string }{
		{"user", "0", "0:0"}, {"user", "1000", "1000:1000"}, {"user", "1000:5", "1000:5"}, {"user", "nobody", "65534:65534"}, {"user", "root:5", "0:5"},
		{"user", "4294967294", "4294967294:4294967294"},
		{"user", "4294967295", ""}, {"user", "-1", ""}, {"user", "", ""}, {"user", ":5", ""}, {"user", "5:", ""}, {"user", "5:nobody", ""}, {"user", "1:2:3", ""}, {"user", "jo", ""},
		{"cap", "chown", "1"}, {"cap", "bpf,perfmon", "c000000000"}, {"cap", "CAP_BPF, cap_Chown", "8000000001"}, {"cap", "checkpoint_restore", "10000000000"},
		{"cap", "all", "1ffffffffff"}, {"cap", "none", "0"}, {"cap", "none,chown", "1"},
		{"cap", "", ""}, {"cap", "bpf,", ""}, {"cap", "cap_cap_bpf", ""}, {"cap", "39", ""}, {"cap", "bpf perfmon", ""},
		{"limit", "memlock=64K", "8=10000:10000"}, {"limit", "memlock=0", "8=0:0"}, {"limit", "nofile=10:1M", "7=a:100000"}, {"limit", "as=2G:unlimited", "9=80000000:ffffffffffffffff"},
		{"limit", "core=-1", "4=ffffffffffffffff:ffffffffffffffff"}, {"limit", "rttime=infinity", "15=ffffffffffffffff:ffffffffffffffff"},
		{"limit", "memlock", ""}, {"limit", "memlock=", ""}, {"limit", "mem=1", ""}, {"limit", "memlock=2:1", ""}, {"limit", "memlock=unlimited:1", ""}, {"limit", "memlock=1:", ""},
		{"limit", "memlock=1T", ""}, {"limit", "memlock=1.5M", ""}, {"limit", "as=18446744073709551615", ""}, {"limit", "as=17179869184G", ""}, {"limit", "MEMLOCK=1", ""},
	} {
		var r Rights
		err := set[c.kind](&r, c.text)
		if c.want == "" {
			require.ErrorIs(t, err, ErrRights, "%s %q", c.kind, c.text)
			require.Equal(t, Rights{}, r, "%s %q", c.kind, c.text)
			continue
		}
		require.NoError(t, err, "%s %q", c.kind, c.text)
		require.Equal(t, c.want, shown(&r), "%s %q", c.kind, c.text)
	}
}

// The guest's /etc/passwd has the same users.
func TestUsersAreThoseOfTheGuest(t *testing.T) {
	for _, f := range usual {
		if f.Path != "/etc/passwd" {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		require.Len(t, lines, len(users))
		for _, line := range lines {
			field := strings.Split(line, ":")
			u, known := users[field[0]]
			require.True(t, known, line)
			require.Equal(t, field[2:4], []string{fmt.Sprint(u.ID), fmt.Sprint(u.Group)})
		}
	}
}

func TestNamesOfSysctls(t *testing.T) {
	for name, want := range map[string]string{
		"kernel.panic": "/proc/sys/kernel/panic", "kernel/panic": "/proc/sys/kernel/panic", "net.ipv4.conf.eth0/1.forwarding": "/proc/sys/net/ipv4/conf/eth0.1/forwarding",
		"net/ipv4/conf/eth0.1/forwarding": "/proc/sys/net/ipv4/conf/eth0.1/forwarding", "panic": "/proc/sys/panic",
		"": "", "..": "", "../x": "", "kernel/../x": "", "a.": "", ".a": "", "/a": "", "a..b": "", "a\nb": "",
	} {
		got, err := sysctlPath(name)
		require.Equal(t, want, got, name)
		if want == "" {
			require.ErrorIs(t, err, ErrSysctl, name)
		}
	}
}
