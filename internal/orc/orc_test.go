package orc

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// A kernel of one page of text, its tables, and a stack.
const (
	text  = 0xffffffff81000000
	ips   = 0xffffffff82000000
	ents  = 0xffffffff82001000
	stack = 0xffffc90000000000
)

// memory is a guest's, by words.
type memory map[uint64]byte

func (m memory) put(at uint64, words ...uint64) {
	for i, w := range words {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], w)
		for j, c := range b {
			m[at+uint64(8*i+j)] = c
		}
	}
}

func (m memory) read(at x86.Addr, b []byte) error {
	for i := range b {
		c, ok := m[uint64(at)+uint64(i)]
		if !ok {
			return errors.New("not mapped")
		}
		b[i] = c
	}
	return nil
}

// Two of the layouts that there are: to 6.2, with a flag for the stack's end, and 7.3's.
var (
	before = layout{
		registers: registersBefore, size: 6, spOffset: bits{0, 16}, bpOffset: bits{16, 16}, spReg: bits{32, 4}, bpReg: bits{36, 4}, kind: bits{40, 2},
		end: bits{42, 1}, hasEnd: true,
	}
	now = layout{
		registers: registersNow, size: 6, spOffset: bits{0, 16}, bpOffset: bits{16, 16}, spReg: bits{32, 4}, bpReg: bits{36, 4}, kind: bits{40, 3},
		signal: bits{43, 1}, hasSignal: true,
	}
)

// encode encodes an entry in a kernel's format.
func (l *layout) encode(e entry) uint64 {
	w := uint64(uint16(e.spOffset)) | uint64(uint16(e.bpOffset))<<16 | uint64(slices.Index(l.registers, e.spReg))<<32 | uint64(slices.Index(l.registers, e.bpReg))<<36
	if l.hasEnd {
		if i := slices.Index(kindsBefore, e.kind); i >= 0 {
			w |= uint64(i) << 40
		}
		if e.kind == kindEnd {
			w |= 1 << 42
		}
		return w
	}
	w |= uint64(slices.Index(kindsNow, e.kind)) << 40
	if e.signal {
		w |= 1 << 43
	}
	return w
}

// kernel has the entries at offsets of its text.
func kernel(l layout, entries map[uint64]entry) (*Unwinder, memory) {
	m := memory{}
	for i, off := range slices.Sorted(maps.Keys(entries)) {
		at := ips + 4*uint64(i)
		var b [8]byte
		binary.LittleEndian.PutUint32(b[:], uint32(text+off-at))
		for j := range 4 {
			m[at+uint64(j)] = b[j]
		}
		binary.LittleEndian.PutUint64(b[:], l.encode(entries[off]))
		for j := range l.size {
			m[ents+uint64(i*l.size+j)] = b[j]
		}
	}
	return &Unwinder{
		read: m.read, layout: l, kernel: table{ips, ents, len(entries)}, text: x86.Range{Start: text, End: text + 0x1000},
	}, m
}

// Functions of the kernel, by how their frames are.
const (
	atLeaf    = 0x100 // the stack pointer as at the entry
	atPushed  = 0x200 // bp pushed, and 32 bytes more
	atFramed  = 0x300 // bp is the frame
	atAligned = 0x400 // r10 is the frame
	atEntry   = 0x500 // pt_regs on the stack
	atIRQ     = 0x600 // the processor's part of them
	atEnd     = 0x700
	atNothing = 0x800
	atSwitch  = 0x900 // the old stack pointer on top of another stack
)

var entries = map[uint64]entry{
	atLeaf:    {spReg: regSP, spOffset: 8, bpReg: regUndefined, kind: kindCall},
	atPushed:  {spReg: regSP, spOffset: 48, bpReg: regPrevSP, bpOffset: -16, kind: kindCall},
	atFramed:  {spReg: regBP, spOffset: 16, bpReg: regPrevSP, bpOffset: -16, kind: kindCall},
	atAligned: {spReg: regR10, bpReg: regUndefined, kind: kindCall},
	atEntry:   {spReg: regSP, spOffset: 0, bpReg: regUndefined, kind: kindRegs, signal: true},
	atIRQ:     {spReg: regSP, spOffset: 0, bpReg: regUndefined, kind: kindPartial, signal: true},
	atEnd:     {kind: kindEnd},
	atNothing: {kind: kindUndefined},
	atSwitch:  {spReg: regSPIndirect, spOffset: 8, bpReg: regUndefined, kind: kindCall},
}

// ret is a return address into one of them.
func ret(at uint64) uint64 { return text + at + 0x10 }

// regsWords are registers as they lie on a stack.
func regsWords(r x86.PtRegs) []uint64 {
	return slices.Clone((*[x86.PtRegsSize / 8]uint64)(unsafe.Pointer(&r))[:])
}

func TestWalk(t *testing.T) {
	user := x86.PtRegs{IP: 0x401000, CS: 0x33, SP: 0x7fffffffe000, SS: 0x2b}
	for name, c := range map[string]struct {
		from  x86.PtRegs
		stack []uint64 // from the bottom up
		want  []uint64
		ends  bool // as the tables say
	}{
		"a_leaf_and_the_end": {
			x86.PtRegs{IP: text + atLeaf}, []uint64{ret(atEnd)}, []uint64{ret(atEnd)}, true,
		},
		"a_frame_with_bp_pushed": {
			x86.PtRegs{IP: text + atPushed, BP: 1},
			[]uint64{0, 0, 0, 0, stack + 0x100, ret(atLeaf), ret(atEnd)}, []uint64{ret(atLeaf), ret(atEnd)}, true,
		},
		"a_frame_pointer_that_the_one_before_restores": {
			x86.PtRegs{IP: text + atPushed, BP: 1},
			[]uint64{0, 0, 0, 0, stack + 8*8, ret(atFramed), 0, 0, 77, ret(atEnd)}, []uint64{ret(atFramed), ret(atEnd)}, true,
		},
		"a_realigned_stack_needs_r10": {
			x86.PtRegs{IP: text + atAligned, R10: stack + 24}, []uint64{0, 0, ret(atEnd)}, []uint64{ret(atEnd)}, true,
		},
		"r10_is_not_known_further_up": {
			x86.PtRegs{IP: text + atLeaf, R10: stack + 24}, []uint64{ret(atAligned), 0, ret(atEnd)}, []uint64{ret(atAligned)}, false,
		},
		"from_a_system_call_to_user_mode": {
			x86.PtRegs{IP: text + atLeaf}, append([]uint64{ret(atEntry)}, regsWords(user)...), []uint64{ret(atEntry), user.IP}, true,
		},
		"through_an_interrupt_of_the_kernel": {
			x86.PtRegs{IP: text + atLeaf},
			append(append([]uint64{ret(atEntry)}, regsWords(x86.PtRegs{IP: text + atFramed, CS: 0x10, BP: stack + 8*24, SP: stack + 8*22})...), 0, 0, 1, ret(atEnd)),
			[]uint64{ret(atEntry), text + atFramed, ret(atEnd)}, true,
		},
		"an_interrupted_first_instruction_is_not_one_past_a_call": {
			x86.PtRegs{IP: text + atLeaf},
			append(append([]uint64{ret(atEntry)}, regsWords(x86.PtRegs{IP: text + atPushed, CS: 0x10, SP: stack + 8*22})...), 0, 0, 0, 0, 1, ret(atEnd)),
			[]uint64{ret(atEntry), text + atPushed, ret(atEnd)}, true,
		},
		"only_the_processors_part_keeps_the_registers_before": {
			x86.PtRegs{IP: text + atIRQ, BP: stack + 8*6},
			[]uint64{text + atFramed, 0x10, 0, stack + 8*5, 0, 0, 1, ret(atEnd)}, []uint64{text + atFramed, ret(atEnd)}, true,
		},
		"another_stack": {
			x86.PtRegs{IP: text + atSwitch}, []uint64{stack + 16, 0, ret(atEnd)}, []uint64{ret(atEnd)}, true,
		},
		"a_null_pointer_was_called": {
			x86.PtRegs{IP: 0}, []uint64{ret(atEnd)}, []uint64{ret(atEnd)}, true,
		},
		"code_without_entries_is_taken_for_code_with_frame_pointers": {
			x86.PtRegs{IP: 0xffffffffc0000000, BP: stack + 8}, []uint64{0, 1, ret(atEnd)}, []uint64{ret(atEnd)}, true,
		},
		"code_of_which_nothing_is_known": {x86.PtRegs{IP: text + atNothing}, []uint64{ret(atEnd)}, nil, false},
		"a_stack_that_cannot_be_read":    {x86.PtRegs{IP: text + atLeaf}, nil, nil, false},
		"a_frame_below_its_callee":       {x86.PtRegs{IP: text + atFramed, BP: stack - 8}, []uint64{ret(atEnd)}, nil, false},
		"user_mode":                      {x86.PtRegs{IP: text + atLeaf, CS: 0x33}, []uint64{ret(atEnd)}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, l := range []layout{before, now} {
				u, m := kernel(l, entries)
				m.put(stack, c.stack...)
				from := c.from
				if from.CS == 0 {
					from.CS = 0x10
				}
				if from.SP == 0 {
					from.SP = stack
				}
				var got []uint64
				ends := u.Walk(At(&from), nil, func(addr, at uint64) bool {
					if w, ok := u.word(at); ok && from.IP != text+atIRQ {
						require.Equal(t, addr, w, "where it lies")
					}
					got = append(got, addr)
					return true
				})
				require.Equal(t, c.want, got)
				require.Equal(t, c.ends, ends)
			}
		})
	}
}

func TestReturnAddressThatWasReplaced(t *testing.T) {
	u, m := kernel(now, entries)
	m.put(stack, text+0xf00, ret(atEnd))
	var got []uint64
	require.True(t, u.Walk(At(&x86.PtRegs{IP: text + atLeaf, CS: 0x10, SP: stack}), func(addr, at uint64) uint64 {
		if addr == text+0xf00 {
			require.Equal(t, uint64(stack), at)
			return ret(atLeaf)
		}
		return addr
	}, func(addr, _ uint64) bool { got = append(got, addr); return true }))
	require.Equal(t, []uint64{ret(atLeaf), ret(atEnd)}, got)
}

func TestATaskThatDoesNotRun(t *testing.T) {
	u, m := kernel(now, entries)
	m.put(stack, 0, 0, 0, 0, 0, stack+8*8, ret(atFramed), 0, 1, ret(atEnd))
	f, ok := u.Asleep(stack)
	require.True(t, ok)
	require.Equal(t, Frame{IP: ret(atFramed), SP: stack + 56, BP: stack + 64}, f)
	var got []uint64
	require.True(t, u.Walk(f, nil, func(addr, _ uint64) bool { got = append(got, addr); return true }))
	require.Equal(t, []uint64{ret(atEnd)}, got)
	_, ok = u.Asleep(0x1234)
	require.False(t, ok)
}

// Whatever a guest has in its tables and on its stack, a walk ends.
func FuzzWalk(f *testing.F) {
	f.Add(uint64(text+atLeaf), uint64(stack), uint64(0), []byte{1, 2, 3}, true)
	f.Add(uint64(text+atFramed), uint64(stack), uint64(stack), []byte{}, false)
	f.Fuzz(func(t *testing.T, ip, sp, bp uint64, b []byte, newer bool) {
		l := before
		if newer {
			l = now
		}
		u, m := kernel(l, entries)
		for i, c := range b {
			m[ents+uint64(i)] = c
		}
		for i := range uint64(0x400) {
			m[stack+i] = byte(len(b)) * byte(i)
		}
		n := 0
		u.Walk(At(&x86.PtRegs{IP: ip, SP: sp, BP: bp, CS: 0x10}), nil, func(uint64, uint64) bool { n++; return true })
		require.LessOrEqual(t, n, bounded.StackFrames)
	})
}

func TestRegistersThatAreNotKnown(t *testing.T) {
	u, m := kernel(now, entries)
	m.put(stack, ret(atEnd))
	for i := range u.kernel.n {
		m[ents+uint64(6*i)+4] |= 0xff // both numbers
	}
	require.False(t, u.Walk(At(&x86.PtRegs{IP: text + atLeaf, CS: 0x10, SP: stack}), nil, func(uint64, uint64) bool { return true }))
}
