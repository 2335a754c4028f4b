package bpf_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/integration/dumps"
	"kprobelab/kernels"
)

// kept gives modules of packages that are kept here; the test is skipped without the kernel's.
func kept(t *testing.T) func(context.Context, string, []string, func(string, []byte) error) error {
	store, err := kernels.Open(&kernels.Options{Offline: true})
	require.NoError(t, err)
	return func(ctx context.Context, release string, names []string, each func(string, []byte) error) error {
		err := store.ModuleFiles(ctx, release, names, each)
		if errors.Is(err, kernels.ErrKernel) || errors.Is(err, kernels.ErrOffline) {
			t.Skip("the package of the dump's kernel is not kept here (kprobelab exec --modprobe veth fetches it; CI has that of 6.1)")
		}
		return err
	}
}

// attached requires that a kernel attaches all programs but some.
func attached(t *testing.T, a *answer.Object, but ...string) {
	t.Helper()
	for _, p := range a.Programs {
		if !strings.Contains(" "+strings.Join(but, " ")+" ", " "+p.Name+" ") {
			require.Equal(t, "attaches", p.Word(), "%+v", p)
		}
	}
}

// inGuest is the output of a line of the guest's shell.
func inGuest(t *testing.T, l *kprobelab.Lab, line string) string {
	t.Helper()
	k, err := l.Booted()
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = k.Exec(&booted.Program{Args: []string{"/bin/sh", "-c", line}, Stdout: &out, Stderr: &out})
	require.NoError(t, err)
	return out.String()
}

const traffic = `
int seen[3];
SEC("tc") int both(void *skb) { seen[0]++; return -1; }
SEC("classifier/egress") int leaves(void *skb) { seen[1]++; return -1; }
SEC("action") int act(void *skb) { seen[2]++; return -1; }
`

// TestTrafficControlSeesPackets: classifiers and actions are attached by netlink on each kernel, and run when a packet comes; nothing of
// them is left.
func TestTrafficControlSeesPackets(t *testing.T) {
	with := func(t *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		o.ModuleFiles, o.Workload = kept(t), "ping -c 3 127.0.0.1 >/dev/null"
	}
	eachOf(t, dumps.Running, dumps.Twin, compiled(t, traffic), with, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		attached(t, a)
		require.Empty(t, a.Run.Error)
		require.Len(t, a.Run.Attached, 3)
		require.Equal(t, "act_bpf 0\ncls_bpf 0\nsch_ingress 0\n", inGuest(t, l, "sleep 1; cut -d' ' -f1,3 /proc/modules"), "users of modules, when RCU's time is over")
		require.Equal(t, `{"seen":[6,6,6]}`, string(a.Run.Maps[0].Entries[0].Value), "three requests and three replies")
	})
}

// TestTrafficControlWithoutItsModules: a guest without the modules says nothing of the program, and the reason names them.
func TestTrafficControlWithoutItsModules(t *testing.T) {
	object := compiled(t, traffic)
	eachKernel(t, object, nil, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		for _, p := range a.Programs {
			require.True(t, p.Loads, p.Name)
			require.Nil(t, p.Attaches, p.Name)
			require.Contains(t, p.AttachError, "no sch_ingress, a module")
		}
	})
	none := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		o.ModuleFiles = func(context.Context, string, []string, func(string, []byte) error) error { return kernels.ErrOffline }
	}
	eachKernel(t, object, none, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		for _, p := range a.Programs {
			require.Contains(t, p.AttachError, kernels.ErrOffline.Error())
		}
	})
}

const pairs = `
int primary, peer;
SEC("netkit/primary") int enters(void *skb) { primary++; return 2; }
SEC("netkit/peer") int leaves(void *skb) { peer++; return 2; }
`

// TestDevicesOfNetkit: a program hangs on a new pair of devices, and sees what is sent over it; kernels before 6.7 have no such devices. Nothing of them is left.
func TestDevicesOfNetkit(t *testing.T) {
	with := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		o.Workload = "for d in /sys/class/net/*; do ip link set ${d##*/} up; done; ip addr add 192.0.2.1/24 dev kprobelab0; ping -c 1 -W 1 192.0.2.2 >/dev/null; true"
	}
	eachKernel(t, compiled(t, pairs), with, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		if r := l.Image.Release(); strings.HasPrefix(r, "5.10.") || strings.HasPrefix(r, "6.1.") {
			for _, p := range a.Programs {
				require.Equal(t, "not attached", p.Word(), "%+v", p)
				require.Contains(t, p.AttachError, "ENOTSUP")
			}
			return
		}
		attached(t, a)
		require.Empty(t, a.Run.Error)
		require.Regexp(t, `"primary":[1-9]`, string(bss(a)))
		require.NotContains(t, inGuest(t, l, "ls /sys/class/net"), "kprobelab")
	})
}

const sessions = `
int multi, leaves, both;
SEC("kprobe.multi/vfs_unlin?") int enters(void *ctx) { multi++; return 0; }
SEC("kretprobe.multi/vfs_unlin?") int returns(void *ctx) { leaves++; return 0; }
SEC("kprobe.session/vfs_unlin?") int session(void *ctx) { both++; return 0; }
`

// TestMultiProbesSeeCalls: multi-probes come with 5.18 and CONFIG_FPROBE, sessions, which are at entry and return, with 6.10.
func TestMultiProbesSeeCalls(t *testing.T) {
	with := func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		o.Workload = "for i in 1 2 3; do echo >/tmp/f; rm /tmp/f; done"
	}
	eachKernel(t, compiled(t, sessions), with, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		var words []string
		for _, p := range a.Programs {
			words = append(words, p.Name+" "+p.Word())
		}
		got := strings.Join(words, ", ") + " " + string(bss(a))
		switch r := l.Image.Release(); {
		case strings.HasPrefix(r, "5.10."), strings.HasPrefix(r, "6.1."):
			require.Equal(t, "enters not attached, returns not attached, session not attached ", got)
		default:
			require.Equal(t, `enters attaches, returns attaches, session attaches {"multi":3,"leaves":3,"both":6}`, got)
		}
	})
}
