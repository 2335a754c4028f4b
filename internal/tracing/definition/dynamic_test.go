package definition

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOtherKindsOfEvents(t *testing.T) {
	for line, want := range map[string]string{
		"f:fp/a vfs_read":            "fprobe events",
		"f vfs_read%return":          "fprobe events",
		"f8:fp/a vfs_read%return":    "fprobe events",
		"t:tp/a sched_switch":        "tracepoint events",
		"t sched_switch prev->pid":   "tracepoint events",
		"e:ep/a sched/sched_switch":  "event probes",
		"e sched.sched_switch":       "event probes",
		"s:lat u64 delta; pid_t pid": "synthetic events",
		"p:k/a vfs_read":             "",
		"r:k/a vfs_read":             "",
		"p:u/a /bin/x:0x10":          "",
		"e:12 x":                     "", // the function e and its line 12
		"s vfs_read":                 "",
		"free vfs_read":              "",
		"exit_mm mm":                 "",
		"f:fp/a":                     "",
		"tcp_sendmsg:3 size":         "",
		":x y":                       "",
	} {
		require.Equal(t, want, Other(Words(line)), line)
	}
}
