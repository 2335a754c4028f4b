package bpf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
)

// TestRoutesAndRedirections: programs of lightweight tunnels are attached to a route each, and run when a packet leaves by it; those of xdp's
// maps beside an entry. No route is left.
func TestRoutesAndRedirections(t *testing.T) {
	object := compiled(t, `
int seen[2];
SEC("lwt_in") int a_in(void *skb) { return 0; }
SEC("lwt_out") int b_out(void *skb) { seen[0]++; return 0; }
SEC("lwt_xmit") int c_xmit(void *skb) { seen[1]++; return 0; }
SEC("lwt_seg6local") int d_segment(void *skb) { return 0; }
SEC("xdp/devmap") int device(void *packet) { return 2; }
SEC("xdp/cpumap") int processor(void *packet) { return 2; }
`)
	with := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		o.Workload = "ping -c 1 -W 1 192.0.2.2 >/dev/null; ping -c 1 -W 1 192.0.2.3 >/dev/null; true"
	}
	eachKernel(t, object, with, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		attached(t, a)
		require.Empty(t, a.Run.Error)
		require.Equal(t, `{"seen":[1,1]}`, string(bss(a)))
		require.NotRegexp(t, "20010db8|0200C0", inGuest(t, l, "cat /proc/net/route /proc/net/ipv6_route"))
	})
}
