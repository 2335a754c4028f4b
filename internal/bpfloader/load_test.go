//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
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

// TestProgramsWithoutATarget: the sentence names what the kernel's types do not have.
func TestProgramsWithoutATarget(t *testing.T) {
	for want, c := range map[string]struct {
		of   ebpf.AttachType
		said string
	}{
		"this kernel's types have no function nosuch":   {ebpf.AttachTraceFEntry, "fentry nosuch not supported"},
		"this kernel's types have no tracepoint nosuch": {ebpf.AttachTraceRawTp, "raw_tp nosuch not supported"},
		"this kernel's types have no iterator nosuch":   {ebpf.AttachTraceIter, "iterator nosuch not supported"},
		"this kernel's types have no hook nosuch":       {ebpf.AttachLSMMac, "lsm hook nosuch not supported"},
		"program type not supported":                    {ebpf.AttachTraceFEntry, "program type not supported"},
	} {
		err := fmt.Errorf("%s%w", strings.TrimSuffix(c.said, "not supported"), ebpf.ErrNotSupported)
		assert.Equal(t, want, withoutTarget(&ebpf.ProgramSpec{AttachTo: "nosuch", AttachType: c.of}, err))
	}
	assert.Equal(t, "x", withoutTarget(&ebpf.ProgramSpec{AttachTo: "nosuch"}, errors.New("x")))
}

// TestCastsOfAddressSpaces: the library reads them, and would write a move with reserved fields.
func TestCastsOfAddressSpaces(t *testing.T) {
	read := func(code ...byte) (i asm.Instruction) {
		require.NoError(t, i.Unmarshal(bytes.NewReader(code), binary.LittleEndian, "linux"))
		return i
	}
	assert.True(t, isCast(read(0xbf, 0x12, 1, 0, 1, 0, 0, 0)))  // r2 = addr_space_cast(r1, 0, 1)
	assert.False(t, isCast(read(0xbf, 0x12, 0, 0, 0, 0, 0, 0))) // r2 = r1
	assert.False(t, isCast(read(0xbf, 0x12, 8, 0, 0, 0, 0, 0))) // r2 = (s8)r1
	assert.False(t, isCast(read(0x7b, 0x12, 1, 0, 0, 0, 0, 0))) // *(u64 *)(r2 + 1) = r1
	var b bytes.Buffer
	_, err := read(0xbf, 0x12, 1, 0, 1, 0, 0, 0).Marshal(&b, binary.LittleEndian)
	require.NoError(t, err)
	assert.Zero(t, b.Bytes()[2], "the library writes the offset: isCast can go")
}

// TestProgramsWhoseTypesAreRefused: they are loaded without.
func TestProgramsWhoseTypesAreRefused(t *testing.T) {
	list := asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return().WithSource(&btf.Line{})}
	list[0] = btf.WithFuncMetadata(list[0], &btf.Func{Name: "x"})
	require.True(t, withoutInfos(list))
	for i := range list {
		assert.Nil(t, list[i].Source())
		assert.Nil(t, btf.FuncMetadata(&list[i]))
	}
	require.False(t, withoutInfos(list))
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
