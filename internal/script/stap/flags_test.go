package stap

import (
	enc "encoding/binary"
	"kprobelab/internal/script/host"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What SystemTap 4.8 answers (testdata/booted/flags.stp asks more of it).
func TestFlagsByName(t *testing.T) {
	for _, c := range []struct {
		hazard, set string
		v           int64
		want        string
	}{
		{"no bit has a name", "_mprotect_prot_str", 0, "PROT_NONE"},
		{"no bit has none", "_msync_flag_str", 0, "0x0"},
		{"the name of no bit is not among others", "_mprotect_prot_str", 5, "PROT_READ|PROT_EXEC"},
		{"not by number, but as stap's list is", "_mmap_flags", 0x62, "MAP_PRIVATE|MAP_ANONYMOUS|MAP_32BIT"},
		{"what has no name is a number", "_at_flag_str", 0x210, "AT_REMOVEDIR|0x10"},
		{"64 bits", "_at_flag_str", -1 << 32, "0xffffffff00000000"},
		{"32 bits", "_mremap_flags", 1<<32 | 1, "MREMAP_MAYMOVE"},
		{"a choice is no sum of bits", "_seek_whence_str", 3, "SEEK_DATA"},
		{"no choice", "_madvice_advice_str", -1, "0xffffffff"},
		{"no choice, in decimal", "_stp_keyctl_cmd_str", 77, "77"},
		{"no choice, with its sign", "_bpf_cmd_str", -1, "0xffffffffffffffff"},
		{"a type with flags", "_sock_type_str", 0x80801, "SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK"},
		{"flags without a type", "_sock_type_str", 0x80007, "SOCK_CLOEXEC|0x7"},
		{"flags with a signal", "__fork_flags", 0x111, "CLONE_VM|SIGCHLD"},
		{"a signal without flags", "__fork_flags", 17, "0x0|SIGCHLD"},
		{"flags with permissions", "__sem_flags", 0o1600, "IPC_CREAT|0600"},
		{"permissions alone", "__sem_flags", 0o600, "0600"},
		{"a command with a bit of its own", "_semctl_cmd", 0x102, "IPC_64|IPC_STAT"},
		{"a policy that children do not have", "_sched_policy_str", 0x40000001, "SCHED_RESET_ON_FORK|SCHED_FIFO"},
		{"a file's type", "_mknod_mode_str", 0o100644, "S_IFREG|0644"},
		{"a file's type alone", "_mknod_mode_str", 0o10000, "S_IFIFO|00"},
		{"what the kernel adds", "_msg_flags_str", 0x80000040, "MSG_DONTWAIT"},
		{"two numbers in one", "_futex_wake_op_str", 0x14003002, "{FUTEX_OP_ADD, 3, FUTEX_OP_CMP_GT, 2}"},
		{"a class and its number", "_stp_ioprio_value_str", 0x4004, "IOPRIO_CLASS_BE|4"},
	} {
		t.Run(c.hazard, func(t *testing.T) {
			assert.Equal(t, c.want, string(flagFunctions()[c.set](nil, c.v)))
		})
	}
}

func TestMemoryAsText(t *testing.T) {
	for _, c := range []struct {
		hazard string
		text   func(dst, b []byte) []byte
		words  []uint64
		want   string
	}{
		{"a time before 1970", timespecText, []uint64{^uint64(0), 5}, "[-1.000000005]"},
		{"no time but now", timespecText, []uint64{7, utimeNow}, "[UTIME_NOW]"},
		{"no time at all", timespecText, []uint64{7, utimeOmit}, "[UTIME_OMIT]"},
		{"microseconds", timevalText, []uint64{1, 20}, "[1.000020]"},
		{"an interval and what is left of it", intervalText, []uint64{1, 2, 3, 4}, "[1.000002,3.000004]"},
		{"no signal", signalsText, []uint64{0}, "[EMPTY]"},
		{"only signals without names", signalsText, []uint64{1 << 40}, "[EMPTY]"},
		{"signals in the order of the list", signalsText, []uint64{1<<11 | 1<<12 | 1}, "[SIGHUP|SIGPIPE|SIGUSR2]"},
	} {
		t.Run(c.hazard, func(t *testing.T) {
			var b []byte
			for _, w := range c.words {
				b = enc.LittleEndian.AppendUint64(b, w)
			}
			assert.Equal(t, c.want, string(c.text(nil, b)))
		})
	}
}

// Rule: every system call has a name and an argstr, both texts, by its own name and by that of its alias.
func TestEverySystemCallIsUnderstood(t *testing.T) {
	k := &Kernel{Kernel: host.Kernel{Functions: func(pattern string) []Function {
		if _, there := syscallArgs[strings.TrimPrefix(pattern, "__x64_sys_")]; !there {
			return nil
		}
		return []Function{{Name: pattern, Addr: 0x1000}}
	}}}
	s, err := Analyze("<input>", `probe syscall.* { println(name . argstr) } probe nd_syscall.*.return { println(name . retstr) }`, &Options{}, k)
	require.NoError(t, err)
	calls := 0
	for name := range syscallArgs {
		if calledBy[name] == nil || slices.Contains(calledBy[name], name) {
			calls++
		}
	}
	assert.Len(t, s.Probes, 2*calls)
	_, err = Analyze("<input>", `probe syscall.pread64 { }`, &Options{}, k)
	assert.ErrorContains(t, err, "no system call pread64")
}
