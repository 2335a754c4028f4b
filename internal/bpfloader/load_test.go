//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

func TestLogsThatAreLong(t *testing.T) {
	log := "begin" + strings.Repeat("x", bounded.BPFLog) + "the reason"
	short := cut(log)
	require.True(t, strings.HasPrefix(short, "begin"))
	require.True(t, strings.HasSuffix(short, "the reason"))
	require.Contains(t, short, "\n[15 bytes]\n")
	require.Equal(t, log[:bounded.BPFLog], cut(log[:bounded.BPFLog]))
}

func TestFiguresOfTheVerifier(t *testing.T) {
	for log, want := range map[string][2]int{
		"verification time 29 usec\nstack depth 0\nprocessed 39 insns (limit 1000000) max_states_per_insn 1 total_states 3 peak_states 3 mark_read 1": {39, 3},
		"processed 7 insns": {7, 0},
		"processed":         {0, 0},
		"processed ":        {0, 0},
		"":                  {0, 0},
		"0: (95) exit":      {0, 0},
	} {
		verified, states := figures(log)
		require.Equal(t, want, [2]int{verified, states}, log)
	}
}

func TestTheLastInstructionOfALog(t *testing.T) {
	for log, want := range map[string]int{
		"0: R1=ctx() R10=fp0\n; int x = 0; @ t.c:3\n0: (b7) r0 = 0\nfrom 3 to 12: R0=1\n12: (bf) r0 = r2\nR2 !read_ok\nprocessed 2 insns": 12,
		"func#0 @0\nunreachable insn 5":   -1,
		"99999999999999999999: (95) exit": -1,
		"":                                -1,
	} {
		_, n := last(strings.Split(log, "\n"))
		require.Equal(t, want, n, log)
	}
}

// TestMapsWithoutASize: a size that the object leaves open is one that the kernel takes.
func TestMapsWithoutASize(t *testing.T) {
	for name, c := range map[string]struct {
		of         ebpf.MapType
		size, want uint32
	}{
		"a hash":                        {ebpf.Hash, 0, 1},
		"a hash with a size":            {ebpf.Hash, 7, 7},
		"a ring buffer":                 {ebpf.RingBuf, 0, uint32(os.Getpagesize())},
		"a ring buffer with a size":     {ebpf.RingBuf, 1 << 20, 1 << 20},
		"a ring of half a page":         {ebpf.RingBuf, uint32(os.Getpagesize() / 2), uint32(os.Getpagesize())},
		"a ring of a page and a half":   {ebpf.RingBuf, uint32(os.Getpagesize() * 3 / 2), uint32(os.Getpagesize() * 2)},
		"a ring that is too large":      {ebpf.UserRingbuf, 1<<31 + 1, 1<<31 + 1},
		"a storage, which has none":     {ebpf.TaskStorage, 0, 0},
		"perf's, a ring each processor": {ebpf.PerfEventArray, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, entries(&ebpf.MapSpec{Type: c.of, MaxEntries: c.size}))
		})
	}
}

func TestSentencesThatAreLong(t *testing.T) {
	require.Equal(t, "one", oneLine("one\ntwo"))
	require.Len(t, oneLine(strings.Repeat("x", 2*bounded.BPFSentence)), bounded.BPFSentence)
}

// TestNamesOfSections: cilium/ebpf takes some that libbpf does not.
func TestNamesOfSections(t *testing.T) {
	for name, want := range map[string]bool{
		"sk_msg": true, "sk_msg/one": true, "sk_msg1": false, "?sk_skb2": false, "sk_skb/stream_verdict": true, "xdp.frags": true,
		"kprobe/vfs_read": true, "socket": true, "socket1": false, "tcx/ingress": true, "tc": true, "tc1": false,
		"xdp_vlan_remove": false, "xdp/devmap": true, "sockops": true, "action": true, "actions": false, "fentry/action": true,
	} {
		assert.Equal(t, want, isSection(name), name)
	}
}
