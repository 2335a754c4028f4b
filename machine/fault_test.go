package machine_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyguest"
	"kprobelab/kimage"
	. "kprobelab/machine"
	"kprobelab/x86"
)

const unmapped = 0x1234568

// Each case faults at a known instruction of one block, which begins with inc %rbx, so rbx counts
// the executed instructions. rdi is unmapped, rsi data, rdx text.
var faultCases = []struct {
	name   string
	code   []byte
	off    int64 // of the faulting instruction
	rbx    uint64
	vector int
	access Access
	addr   x86.Addr
}{
	{"first_of_block", []byte{0x48, 0x8b, 0x07}, 0, 0, VectorPage, AccessRead, unmapped},
	{"second_of_block", []byte{0x48, 0xff, 0xc3, 0x48, 0x89, 0x47, 0x08}, 3, 1, VectorPage, AccessWrite, unmapped + 8},
	{"fifth_of_block", []byte{0x48, 0xff, 0xc3, 0x48, 0xff, 0xc3, 0x48, 0xff, 0xc3, 0x48, 0xff, 0xc3, 0x48, 0x8b, 0x07}, 12, 4, VectorPage, AccessRead, unmapped},
	{"push", []byte{0x48, 0xff, 0xc3, 0x48, 0x89, 0xfc, 0x50}, 6, 1, VectorPage, AccessWrite, unmapped - 8},
	{"call", []byte{0x48, 0xff, 0xc3, 0x48, 0x89, 0xfc, 0xe8, 0, 0, 0, 0}, 6, 1, VectorPage, AccessWrite, unmapped - 8},
	{"ret", []byte{0x48, 0xff, 0xc3, 0x48, 0x89, 0xfc, 0xc3}, 6, 1, VectorPage, AccessRead, unmapped},
	{"rep_movs", []byte{0x48, 0xff, 0xc3, 0xb9, 5, 0, 0, 0, 0xf3, 0xa4}, 8, 1, VectorPage, AccessWrite, unmapped},
	{"rip_relative_store_to_text", []byte{0x48, 0xff, 0xc3, 0x48, 0x89, 0x05, 0xf6, 0xff, 0xff, 0xff}, 3, 1, VectorPage, AccessWrite, textBase},
	{"scaled_index", []byte{0x48, 0xff, 0xc3, 0x48, 0x8b, 0x44, 0xdf, 0x10}, 3, 1, VectorPage, AccessRead, unmapped + 8 + 16},
	{"locked_increment", []byte{0x48, 0xff, 0xc3, 0xf0, 0x48, 0xff, 0x07}, 3, 1, VectorPage, AccessRead, unmapped},
	{"sse_load", []byte{0x48, 0xff, 0xc3, 0x0f, 0x10, 0x07}, 3, 1, VectorPage, AccessRead, unmapped},
	{"jump_to_nowhere", []byte{0x48, 0xff, 0xc3, 0xff, 0xe7}, -1, 1, VectorPage, AccessFetch, unmapped},
	{"jump_into_data", []byte{0x48, 0xff, 0xc3, 0xff, 0xe6}, -1, 1, VectorPage, AccessFetch, dataBase + PageSize},
	{"store_to_read_only_data", []byte{0x48, 0xff, 0xc3, 0xc6, 0x86, 0, 0xf0, 0xff, 0xff, 1}, 3, 1, VectorPage, AccessWrite, dataBase},
	{"not_canonical", []byte{0x48, 0xff, 0xc3, 0x48, 0xc1, 0xe7, 0x1c, 0x48, 0x8b, 0x07}, 7, 1, VectorGP, AccessRead, unmapped << 28},
	{"divide_by_zero", []byte{0x48, 0xff, 0xc3, 0x31, 0xc9, 0x48, 0xf7, 0xf1}, 5, 1, VectorDivide, AccessNone, 0},
	{"ud2", []byte{0x48, 0xff, 0xc3, 0x0f, 0x0b}, 3, 1, VectorInvalid, AccessNone, 0},
	{"clac_without_smap", []byte{0x48, 0xff, 0xc3, 0x0f, 0x01, 0xca}, 3, 1, VectorInvalid, AccessNone, 0},
	{"syscall", []byte{0x48, 0xff, 0xc3, 0x0f, 0x05}, 3, 1, VectorInvalid, AccessNone, 0},
	{"debug_register_seven", []byte{0x48, 0xff, 0xc3, 0x0f, 0x23, 0xfc}, 3, 0, VectorInvalid, AccessNone, 0},
	{"int_0x80", []byte{0x48, 0xff, 0xc3, 0xcd, 0x80}, 5, 1, 0x80, AccessNone, 0},
}

// ranBefore: a write to debug register 7 is refused with its whole block by Unicorn,
// which would not survive it.
func ranBefore(name string, rbx uint64) uint64 {
	if name == "debug_register_seven" && engine.name == "interp" {
		return 1
	}
	return rbx
}

func faultImage() *tinyImage {
	img := &tinyImage{}
	img.Add("pad", 0xc3)
	for _, c := range faultCases {
		img.Add(c.name, append(append([]byte{}, c.code...), 0xb8, 7, 0, 0, 0, 0xc3)...)
	}
	img.Add("fixup", 0xb8, 0xf2, 0xff, 0xff, 0xff, 0xc3) // mov $-EFAULT,%eax; ret
	return img
}

func addrOf(img *tinyImage, name string) x86.Addr { return img.Lookup(name)[0].Addr }

func TestFaultsAreExact(t *testing.T) {
	img := faultImage()
	m := boot(t, img, nil)
	for range 2 { // the second time from the engine's cache
		for _, c := range faultCases {
			t.Run(c.name, func(t *testing.T) {
				if c.name == "rip_relative_store_to_text" {
					c.addr = addrOf(img, c.name)
				}
				_, err := m.Call(c.name, uint64(unmapped), dataBase+PageSize, textBase)
				var f *Fault
				require.True(t, errors.As(err, &f), "%v", err)
				want := addrOf(img, c.name).Add(c.off)
				if c.off < 0 {
					want = c.addr
				}
				require.Equal(t, want, f.IP, "%v", err)
				require.Equal(t, uint64(want), f.Regs.IP)
				require.Equal(t, ranBefore(c.name, c.rbx), f.Regs.BX)
				require.Equal(t, c.vector, f.Vector)
				require.Equal(t, c.access, f.Access)
				require.Equal(t, c.addr, f.Addr, "%v", err)
			})
		}
	}
	_, err := m.Call("first_of_block", uint64(unmapped))
	require.EqualError(t, err, "first_of_block: page fault at first_of_block+0x0/0x40 (0xffffffff81000040): read of 0x1234568")
}

// The bytes of a write to dr7 inside another instruction are harmless.
func TestBytesOfADebugWriteInAnImmediate(t *testing.T) {
	for _, every := range []bool{false, true} {
		img := &tinyImage{}
		img.Add("imm", 0xb8, 0x0f, 0x23, 0xfc, 0, 0xc3)
		m := boot(t, img, &Options{EveryInstruction: every})
		got, err := m.Call("imm")
		require.NoError(t, err)
		require.Equal(t, uint64(0xfc230f), got)
	}
}

func TestExceptionTable(t *testing.T) {
	img := faultImage()
	img.Fixups = map[x86.Addr]x86.Addr{}
	for _, c := range faultCases {
		if c.off >= 0 {
			img.Fixups[addrOf(img, c.name).Add(c.off)] = addrOf(img, "fixup")
		}
	}
	m := boot(t, img, nil)
	for _, c := range faultCases {
		if c.off < 0 || c.name == "push" || c.name == "call" || c.name == "ret" {
			continue // these lost the stack
		}
		got, err := m.Call(c.name, uint64(unmapped), dataBase+PageSize, textBase)
		require.NoError(t, err, c.name)
		require.Equal(t, uint64(0xfffffff2), got, c.name)
		require.Equal(t, ranBefore(c.name, c.rbx), m.Regs().BX, c.name)
	}
}

func TestFaultGoesToTheReceiverFirst(t *testing.T) {
	img := faultImage()
	m := boot(t, img, nil)
	vector, seen := 0, x86.PtRegs{}
	m.SetTraps(&trapFuncs{OnFault: func(r *x86.PtRegs, v int) bool {
		vector, seen = v, *r
		r.DI = uint64(dataBase)
		return true
	}})
	got, err := m.Call("fifth_of_block", uint64(unmapped))
	require.NoError(t, err, "the instruction runs again, with the new registers")
	require.Equal(t, uint64(7), got)
	require.Equal(t, VectorPage, vector)
	require.Equal(t, uint64(4), seen.BX)

	// A receiver that changes the ip and returns false: the table is searched for the new ip.
	img.Fixups = map[x86.Addr]x86.Addr{0x42: addrOf(img, "fixup")}
	m.SetTraps(&trapFuncs{OnFault: func(r *x86.PtRegs, v int) bool { r.IP = 0x42; return false }})
	got, err = m.Call("fifth_of_block", uint64(unmapped))
	require.NoError(t, err)
	require.Equal(t, uint64(0xfffffff2), got)
}

func TestFaultsBesidePages(t *testing.T) {
	img := &tinyImage{}
	img.Add("load8", 0x48, 0x8b, 0x07, 0xc3)
	m := boot(t, img, nil)
	end := dataBase + 3*PageSize
	_, err := m.CallAddr(textBase, uint64(end-8))
	require.NoError(t, err)
	var f *Fault
	_, err = m.CallAddr(textBase, uint64(end-4))
	require.True(t, errors.As(err, &f))
	require.Equal(t, end, f.Addr, "the first byte that is not there")
}

// A kernel's own table of the per-CPU areas is read-only once it has booted.
func TestPerCPUOffsets(t *testing.T) {
	img := faultImage()
	table := dataBase + 0x100
	img.Symbols = append(img.Symbols, kimage.Symbol{Name: "__per_cpu_offset", Addr: table, Size: 16, Type: 'D'})
	m := boot(t, img, &Options{CPUs: 2})
	require.Error(t, m.WriteMem(table, []byte{0}))
	for cpu := range 2 {
		var b [8]byte
		require.NoError(t, m.ReadMem(table.Add(int64(8*cpu)), b[:]))
		require.Equal(t, m.GSBase(cpu), x86.Addr(binary.LittleEndian.Uint64(b[:])))
	}
}

func TestGSBaseSurvivesFaults(t *testing.T) {
	img := faultImage()
	img.Area = nil
	img.Add("percpu", 0x65, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0, 0xc3) // mov %gs:8,%rax; ret
	m := boot(t, img, nil)
	require.NoError(t, m.WriteMem(m.GSBase(0)+8, []byte{42}))
	_, err := m.Call("divide_by_zero")
	require.Error(t, err)
	got, err := m.Call("percpu")
	require.NoError(t, err)
	require.Equal(t, uint64(42), got)
}

// A call of address 0, and a jump there, is a page fault like any other. (The engine's outermost
// runs end at 0.)
func TestNullIsFetched(t *testing.T) {
	img := &tinyImage{}
	jump := img.Add("jump", 0x31, 0xc0, 0xff, 0xe0) // xor %eax,%eax; jmp *%rax
	ret := img.Add("ret", 0xc3)
	for _, every := range []bool{false, true} {
		m := boot(t, img, &Options{EveryInstruction: every})
		for _, at := range []x86.Addr{0, jump} {
			_, err := m.CallAddr(at)
			var f *Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, VectorPage, f.Vector)
			require.Equal(t, AccessFetch, f.Access)
			require.Zero(t, f.IP)
		}
		_, err := m.CallAddr(ret)
		require.NoError(t, err)
	}
}

// Runs inside hooks nest as deep as the engine has room for. Guest code that
// switches stacks gets there before its stack is full; the machine goes on.
func TestEngineFailureInARun(t *testing.T) {
	m := boot(t, tinyguest.Loop(), nil)
	stack, err := m.Alloc(PageSize)
	require.NoError(t, err)
	at, err := m.AllocExec(PageSize, "switch_stack")
	require.NoError(t, err)
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0x89, 0xe0, 0x48, 0xbc}, uint64(stack)+PageSize) // mov %rsp,%rax; mov $stack,%rsp
	require.NoError(t, m.PokeText(at, append(code, 0xcc, 0x48, 0x89, 0xc4, 0xc3)))                         // int3; mov %rax,%rsp; ret
	var deepest error
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool {
		if _, err := m.CallAddr(at); deepest == nil {
			deepest = err
		}
		return true
	}})
	_, err = m.CallAddr(at)
	require.NoError(t, err)
	require.ErrorIs(t, deepest, ErrEngine)
	m.SetTraps(nil)
	_, err = m.Call("loop", 3)
	require.NoError(t, err)
}

// TestInvalidOpcodesNameTheExtension: the fault names the extension that the processor lacks, on
// either engine; a model with the extension executes the instruction.
func TestInvalidOpcodesNameTheExtension(t *testing.T) {
	img := &tinyImage{}
	img.Add("pad", 0xc3)
	cases := []struct {
		name  string
		code  []byte
		lacks string
		has   string // a model with the extension, "" if no model has it
	}{
		{"avx512", []byte{0x62, 0xf1, 0x7d, 0x48, 0xfe, 0xc1}, "vpaddd needs AVX512F", ""},
		{"apx", []byte{0xd5, 0x10, 0xff, 0xc0}, "inc needs APX_F", ""},
		{"apx_map_4", []byte{0x62, 0xf4, 0x7c, 0x08, 0x01, 0xc0}, "add needs APX_F", ""},
		{"amx", []byte{0xc4, 0xe2, 0x63, 0x5e, 0xca}, "tdpbssd needs AMX_INT8", ""},
		{"sha", []byte{0x0f, 0x38, 0xc8, 0xc1}, "sha1nexte needs SHA", ""},
		{"movbe", []byte{0x0f, 0x38, 0xf0, 0x06}, "movbe needs MOVBE", "haswell"},
		{"popcnt", []byte{0xf3, 0x0f, 0xb8, 0xc6}, "popcnt needs POPCNT", "nehalem"},
		{"andn", []byte{0xc4, 0xe2, 0x78, 0xf2, 0xc0}, "andn needs BMI1", "haswell"},
		{"ssse3", []byte{0x66, 0x0f, 0x38, 0x00, 0xc1}, "pshufb needs SSSE3", "conroe"},
		{"crc32", []byte{0xf2, 0x0f, 0x38, 0xf1, 0xc6}, "crc32 needs SSE42", "nehalem"},
	}
	for _, c := range cases {
		img.Add(c.name, append(append([]byte{}, c.code...), 0xb8, 7, 0, 0, 0, 0xc3)...)
	}
	m := boot(t, img, nil)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := m.Call(c.name, 0, dataBase)
			var f *Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, VectorInvalid, f.Vector)
			require.Empty(t, f.Missing)
			require.Equal(t, c.lacks, f.Insn+" needs "+f.Lacks)
			require.ErrorContains(t, err, c.lacks+", which the processor does not have")
			if c.has == "" {
				return
			}
			got, err := boot(t, img, &Options{CPUModel: c.has}).Call(c.name, 0, dataBase)
			require.NoError(t, err)
			require.Equal(t, uint64(7), got)
		})
	}
}
