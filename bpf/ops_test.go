package bpf_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/integration/dumps"
)

// control is two ways of congestion control: by the map's entry, and, in a flavour of the type, by a link.
const control = `
struct sock;
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 flags;
	char name[16];
	u32 not_in_the_kernel;
};
struct tcp_congestion_ops___mine {
	char name[16];
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*undo_cwnd)(struct sock *sk);
};
SEC("struct_ops/threshold") u32 threshold(u64 *ctx) { return 2; }
SEC("struct_ops/avoid") void avoid(u64 *ctx) {}
SEC("struct_ops/undo") u32 undo(u64 *ctx) { return 3; }
SEC("struct_ops/other") u32 other(u64 *ctx) { return 4; }
SEC(".struct_ops") struct tcp_congestion_ops entry = {
	.ssthresh = (void *)threshold, .cong_avoid = (void *)avoid, .undo_cwnd = (void *)undo, .name = "lab_entry",
};
`

// TestStructuresOfPrograms: the kernel has a structure while its programs are attached, and not after that.
func TestStructuresOfPrograms(t *testing.T) {
	const available = "cat /proc/sys/net/ipv4/tcp_available_congestion_control"
	object := compiled(t, strings.Replace(control, `SEC("struct_ops/other") u32 other(u64 *ctx) { return 4; }`, "", 1))
	with := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) { o.Workload = available }
	eachKernel(t, object, with, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		attached(t, a)
		require.Empty(t, a.Run.Error)
		require.Equal(t, []string{"avoid", "threshold", "undo"}, a.Run.Attached)
		require.Contains(t, strings.Fields(a.Run.Output), "lab_entry")
		require.NotContains(t, inGuest(t, l, available), "lab_")
	})
}

// TestStructuresThatALinkRegisters: kernels since 6.4 take it, each of two structures of one type has its own programs, and the kernel's errno
// says that others do not. A program of no structure is refused by the kernel.
func TestStructuresThatALinkRegisters(t *testing.T) {
	const available = "cat /proc/sys/net/ipv4/tcp_available_congestion_control"
	object := compiled(t, control+`
SEC("struct_ops.s/absent") u32 nobody(u64 *ctx) { return 4; }
SEC(".struct_ops.link") struct tcp_congestion_ops___mine linked = {
	.ssthresh = (void *)other, .cong_avoid = (void *)avoid, .undo_cwnd = (void *)undo, .name = "lab_linked",
};`)
	with := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) { o.Workload = available }
	eachKernel(t, object, with, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		old := strings.HasPrefix(l.Image.Release(), "5.10") || strings.HasPrefix(l.Image.Release(), "6.1.")
		for _, p := range a.Programs {
			switch {
			case p.Name == "nobody":
				require.Equal(t, "refused", p.Word())
				require.NotEmpty(t, p.Errno)
			case old && p.Name != "threshold":
				require.Equal(t, "not attached", p.Word(), "%+v", p)
				require.Contains(t, p.AttachError, "EINVAL: ")
			default:
				require.Equal(t, "attaches", p.Word(), "%+v", p)
			}
		}
		fields := strings.Fields(a.Run.Output)
		require.Equal(t, !old, strings.Contains(a.Run.Output, "lab_linked"), fields)
		require.Contains(t, fields, "lab_entry")
		require.NotContains(t, inGuest(t, l, available), "lab_")
	})
}

// TestStructuresThatTheKernelRefuses: the errno is the kernel's.
func TestStructuresThatTheKernelRefuses(t *testing.T) {
	for from, c := range map[string][2]string{
		`.undo_cwnd = (void *)undo`: {".flags = 0", "EINVAL: "}, // without undo_cwnd
		`"lab_entry"`:               {`"cubic"`, "EEXIST: "},    // the kernel's own name
		`.name = `:                  {".not_in_the_kernel = 7, .name = ", "entry.not_in_the_kernel: this kernel's tcp_congestion_ops has no such member"},
	} {
		t.Run(c[0], func(t *testing.T) {
			eachOf(t, []string{"newest"}, dumps.Twin, compiled(t, strings.Replace(control, from, c[0], 1)), nil, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
				for _, p := range a.Programs {
					if p.Name == "threshold" {
						require.Equal(t, "not attached", p.Word())
						require.Contains(t, p.AttachError, c[1])
					}
				}
			})
		})
	}
}
