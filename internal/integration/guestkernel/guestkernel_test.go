package guestkernel

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"sort"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab"
)

// maxSize bounds the embedded file, which is in every program built from us.
const maxSize = 300 << 10

// image is the guest kernel as the tests read it: debug/elf and symbols by name.
type image struct {
	t    *testing.T
	file *elf.File
	syms map[string][]elf.Symbol
}

func open(t *testing.T, b []byte) *image {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	list, err := f.Symbols()
	require.NoError(t, err)
	im := &image{t: t, file: f, syms: map[string][]elf.Symbol{}}
	for _, s := range list {
		im.syms[s.Name] = append(im.syms[s.Name], s)
	}
	return im
}

// addr is the value of a symbol of which there is one.
func (im *image) addr(name string) uint64 {
	im.t.Helper()
	require.Lenf(im.t, im.syms[name], 1, "symbol %s", name)
	return im.syms[name][0].Value
}

// bytes reads n bytes of the loaded image.
func (im *image) bytes(addr uint64, n int) []byte {
	im.t.Helper()
	for _, p := range im.file.Progs {
		if p.Type == elf.PT_LOAD && p.Vaddr <= addr && addr+uint64(n) <= p.Vaddr+p.Filesz {
			b := make([]byte, n)
			_, err := p.ReadAt(b, int64(addr-p.Vaddr))
			require.NoError(im.t, err)
			return b
		}
	}
	require.Failf(im.t, "not in a loaded segment", "%#x", addr)
	return nil
}

// table cuts the bytes between two symbols into records.
func (im *image) table(start, stop string, size int) (addrs []uint64, recs [][]byte) {
	im.t.Helper()
	a, e := im.addr(start), im.addr(stop)
	require.Less(im.t, a, e, "%s is empty", start)
	require.Zero(im.t, (e-a)%uint64(size), "%s: a record of %d bytes does not fit", start, size)
	for ; a < e; a += uint64(size) {
		addrs, recs = append(addrs, a), append(recs, im.bytes(a, size))
	}
	return addrs, recs
}

// rel is a field that holds the distance from itself to its target.
func rel(at uint64, rec []byte, off int) uint64 {
	return at + uint64(off) + uint64(int64(int32(binary.LittleEndian.Uint32(rec[off:]))))
}

// within reports which function holds an address.
func (im *image) within(addr uint64) string {
	for name, list := range im.syms {
		for _, s := range list {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= addr && addr < s.Value+s.Size {
				return name
			}
		}
	}
	return ""
}

func TestSizes(t *testing.T) {
	require.Less(t, len(kprobelab.GuestELF()), maxSize)
	require.Less(t, len(kprobelab.GuestModule()), maxSize)
	require.Contains(t, kprobelab.GuestCompiler(), "gcc")
}

func TestShapeIsAVmlinux(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	require.Equal(t, elf.ET_EXEC, im.file.Type)
	require.Equal(t, elf.EM_X86_64, im.file.Machine)
	require.Equal(t, uint64(0xffffffff81000000), im.addr("_stext"))

	ordered := []string{
		"_stext", "__noinstr_text_start", "__noinstr_text_end", "__sched_text_start", "__sched_text_end",
		"__kprobes_text_start", "__kprobes_text_end", "__entry_text_start", "__entry_text_end",
		"__static_call_text_start", "__static_call_text_end", "__indirect_thunk_start", "__indirect_thunk_end",
		"__start_rodata", "__start___jump_table", "__stop___jump_table", "__start_static_call_sites",
		"__stop_static_call_sites", "__start___ex_table", "__stop___ex_table", "__start_BTF", "__stop_BTF",
		"_sdata", "_edata", "__start___bug_table", "__stop___bug_table", "__bss_start", "__bss_stop",
		"__init_begin", "_sinittext", "_einittext", "__start_mcount_loc", "__stop_mcount_loc",
		"__start_kprobe_blacklist", "__stop_kprobe_blacklist", "__init_end", "_end",
	}
	for i := 1; i < len(ordered); i++ {
		require.LessOrEqual(t, im.addr(ordered[i-1]), im.addr(ordered[i]), "%s, %s", ordered[i-1], ordered[i])
	}
	require.Equal(t, im.addr("__indirect_thunk_end"), im.addr("_etext"))
	require.Zero(t, im.addr("__per_cpu_start"), "per-CPU variables count from 0")
	require.Less(t, im.addr("__preempt_count"), im.addr("__per_cpu_end"))

	banner := im.bytes(im.addr("linux_banner"), 200)
	require.Regexp(t, `^Linux version 6\.1\.0-kprobelab .*#1 SMP PREEMPT_DYNAMIC\n`, string(banner[:bytes.IndexByte(banner, 0)]))
}

func TestSegmentsDoNotOverlap(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	var loads []elf.ProgHeader
	for _, p := range im.file.Progs {
		if p.Type == elf.PT_LOAD {
			loads = append(loads, p.ProgHeader)
		}
	}
	sort.Slice(loads, func(i, j int) bool { return loads[i].Vaddr < loads[j].Vaddr })
	for i := 1; i < len(loads); i++ {
		require.LessOrEqual(t, loads[i-1].Vaddr+loads[i-1].Memsz, loads[i].Vaddr)
	}
}

func TestEveryFunctionHasASize(t *testing.T) {
	for _, b := range [][]byte{kprobelab.GuestELF(), kprobelab.GuestModule()} {
		for name, list := range open(t, b).syms {
			for _, s := range list {
				if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
					require.NotZero(t, s.Size, name)
				}
			}
		}
	}
}

func TestForms(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	listed := map[string]bool{}
	_, recs := im.table("__start_forms", "__stop_forms", 32)
	for _, r := range recs {
		fn, insn := binary.LittleEndian.Uint64(r), binary.LittleEndian.Uint64(r[8:])
		name := im.bytes(binary.LittleEndian.Uint64(r[16:]), 24)
		name = name[:bytes.IndexByte(name, 0)]
		f := "form_" + string(name)
		require.Equal(t, fn, im.addr(f), f)
		require.Equal(t, f, im.within(insn), "the instruction lies in its function")
		require.False(t, listed[f], "%s twice", f)
		listed[f] = true
	}
	for name, s := range im.syms {
		if len(name) > 5 && name[:5] == "form_" && elf.ST_BIND(s[0].Info) == elf.STB_GLOBAL && elf.ST_TYPE(s[0].Info) == elf.STT_FUNC {
			require.True(t, listed[name], "%s is not in the table", name)
		}
	}
}

// measuredForms returns the instruction forms that were measured under a probe on real kernels:
// each one's bytes, without the bytes that depend on an address.
func measuredForms() map[string]string {
	forms := map[string]string{
		"loop": "e208", "loope": "e108", "loopne": "e008", "jrcxz": "e308", "loop_67": "67e208", "loope_67": "67e108",
		"jecxz": "67e308", "jmp_short": "eb08", "jmp_near": "e908000000", "jmp_reg": "41ffe3", "call_rel": "e8",
		"call_reg": "41ffd3", "ret": "c3", "ret_imm16": "c21000", "rep_ret": "f3c3", "pushfq_popfq": "9c", "popfq": "9d",
		"cli": "fa", "sti": "fb", "push_rsp": "54", "push_imm": "6afb", "pop_rax": "58", "push_mem_rip": "ff35",
		"lea_rip": "488d05", "mov_rip": "488b05", "add_rip_imm": "8305", "cmp_rip_imm8": "803d", "xchg": "4891",
		"mul": "48f7e1", "imul3": "486bc164", "shl_cl": "48d3e0", "test_imm": "a934120000", "inc": "ffc0",
		"dec_mem": "ff0d", "lahf": "9f", "sahf": "9e", "stc": "f9", "cmc": "f5", "bsf": "480fbcc1", "cmpxchg": "480fb1ca",
		"setg": "0f9fc0", "cmovg": "480f4fc1", "rep_movsb_0": "f3a4", "leave_like": "4889e0", "mov_rsp_lea": "488d4424f8",
		"enter": "c8100000", "nopl": "0f1f00", "nop_66": "6690", "vzeroupper": "c5f877", "vpxor": "c5fdefc0",
		"vaddps_58": "c5fc58c0", "vmovups_10": "c5fc10c8", "jmp_mem": "ff25", "call_mem": "ff15", "mov_ss": "8cd0",
	}
	for cc, name := range []string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"} {
		forms["j"+name+"_short"] = fmt.Sprintf("%02x08", 0x70+cc)
		forms["j"+name+"_near"] = fmt.Sprintf("0f%02x08000000", 0x80+cc)
	}
	return forms
}

func TestMeasuredForms(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	got := map[string]string{}
	_, recs := im.table("__start_forms", "__stop_forms", 32)
	for _, r := range recs {
		name := im.bytes(binary.LittleEndian.Uint64(r[16:]), 24)
		got[string(name[:bytes.IndexByte(name, 0)])] = fmt.Sprintf("%x", im.bytes(binary.LittleEndian.Uint64(r[8:]), 15))
	}
	forms := measuredForms()
	require.Len(t, forms, 87)
	for name, want := range forms {
		require.Contains(t, got, name)
		require.Equal(t, want, got[name][:len(want)], name)
	}
}

func TestPrototypes(t *testing.T) {
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(kprobelab.GuestELF()))
	require.NoError(t, err)
	for name, params := range map[string]int{
		"snprintf": 4 /* the last stands for "..." */, "crc32_le": 3, "vfs_open": 2, "vfs_read": 4, "sys_open": 3,
		"kernel_clone": 1, "_do_fork": 6, "do_fork": 6, "leaf": 1, "sum8": 8, "schedule": 0, "sort": 5,
	} {
		var fn *btf.Func
		require.NoError(t, spec.TypeByName(name, &fn), name)
		require.Len(t, fn.Type.(*btf.FuncProto).Params, params, name)
	}
}
