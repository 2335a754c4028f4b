package guestkernel

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
)

func TestExceptionTable(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	at, recs := im.table("__start___ex_table", "__stop___ex_table", 12)
	var last uint64
	for i, r := range recs {
		insn, fixup := rel(at[i], r, 0), rel(at[i], r, 4)
		require.Less(t, last, insn, "the table is sorted")
		require.Equal(t, im.within(insn), im.within(fixup))
		require.Equal(t, uint32(1), binary.LittleEndian.Uint32(r[8:]), "the plain kind")
		last = insn
	}
}

func TestFtraceSites(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	entry := map[uint64]bool{}
	for _, list := range im.syms {
		for _, s := range list {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
				entry[s.Value] = true
			}
		}
	}
	_, recs := im.table("__start_mcount_loc", "__stop_mcount_loc", 8)
	for _, r := range recs {
		site := binary.LittleEndian.Uint64(r)
		require.True(t, entry[site], "%#x is a function's first instruction", site)
		call := im.bytes(site, 5)
		require.Equal(t, byte(0xe8), call[0])
		require.Equal(t, im.addr("__fentry__"), rel(site, call, 1)+4, "%s calls __fentry__", im.within(site))
	}
}

func TestJumpTable(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	at, recs := im.table("__start___jump_table", "__stop___jump_table", 16)
	kinds := map[byte]int{}
	for i, r := range recs {
		code, target := rel(at[i], r, 0), rel(at[i], r, 4)
		require.Equal(t, im.within(code), im.within(target))
		key := at[i] + 8 + binary.LittleEndian.Uint64(r[8:])
		require.Contains(t, []uint64{im.addr("key_off"), im.addr("key_on")}, key&^3)
		b := im.bytes(code, 5)
		kinds[b[0]]++
		likely, on := key&1 == 1, key&^3 == im.addr("key_on")
		require.Equal(t, likely == on, b[0] == 0x0f || b[0] == 0x66, "%s: a no-op where the branch is not taken", im.within(code))
		switch b[0] {
		case 0xe9:
			require.Equal(t, target, rel(code, b, 1)+4)
		case 0xeb:
			require.Equal(t, target, code+2+uint64(int64(int8(b[1]))))
		}
	}
	require.Len(t, kinds, 4, "no-ops and jumps of 2 and 5 bytes")
}

func TestStaticCalls(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	at, recs := im.table("__start_static_call_sites", "__stop_static_call_sites", 8)
	tails := 0
	for i, r := range recs {
		site, key := rel(at[i], r, 0), rel(at[i], r, 4)
		b := im.bytes(site, 5)
		tail := key&1 == 1
		require.Equal(t, tail, b[0] == 0xe9)
		require.Equal(t, !tail, b[0] == 0xe8)
		tramp := im.within(rel(site, b, 1) + 4)
		require.Equal(t, key&^3, im.addr("__SCK__"+tramp[len("__SCT__"):]))
		if tail {
			tails++
		}
	}
	require.Equal(t, 1, tails)
	_, recs = im.table("__start_static_call_tramp_key", "__stop_static_call_tramp_key", 8)
	require.Len(t, recs, 3)
}

func TestBugTable(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	at, recs := im.table("__start___bug_table", "__stop___bug_table", 12)
	flags := map[string]uint16{}
	for i, r := range recs {
		insn := rel(at[i], r, 0)
		require.Equal(t, []byte{0x0f, 0x0b}, im.bytes(insn, 2))
		require.Equal(t, im.addr("bug_file"), rel(at[i], r, 4))
		flags[im.within(insn)] = binary.LittleEndian.Uint16(r[10:])
	}
	require.Equal(t, map[string]uint16{"bug_on": 0, "warn_on": 1}, flags)
}

func TestBlacklist(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	names := map[string]bool{}
	_, recs := im.table("__start_kprobe_blacklist", "__stop_kprobe_blacklist", 8)
	for _, r := range recs {
		addr := binary.LittleEndian.Uint64(r)
		name := im.within(addr)
		require.Equal(t, addr, im.addr(name))
		names[name] = true
	}
	for _, want := range []string{"nokprobe_function", "do_int3", "get_kprobe", "kprobe_int3_handler"} {
		require.True(t, names[want], want)
	}
	for name, section := range map[string]string{
		"hv_yield": "noinstr", "exc_int3": "noinstr", "irqentry_enter": "noinstr",
		"kprobes_text_function": "kprobes", "entry_SYSCALL_64": "entry", "asm_exc_int3": "entry",
	} {
		a := im.addr(name)
		require.GreaterOrEqual(t, a, im.addr("__"+section+"_text_start"), name)
		require.Less(t, a, im.addr("__"+section+"_text_end"), name)
	}
	require.GreaterOrEqual(t, im.addr("start_kernel"), im.addr("_sinittext"))
	require.Less(t, im.addr("start_kernel"), im.addr("_einittext"))
}

func TestNamesThatAreNotUnique(t *testing.T) {
	im := open(t, kprobelab.GuestELF())
	require.Len(t, im.syms["name_show"], 2)
	for name, list := range im.syms {
		if name != "name_show" && name != "" {
			require.Len(t, list, 1, name)
		}
	}
}

func TestModule(t *testing.T) {
	im := open(t, kprobelab.GuestModule())
	require.Equal(t, elf.ET_REL, im.file.Type)
	for _, s := range []string{".modinfo", "__mcount_loc", "__ex_table", "_kprobe_blacklist", ".init.text", ".exit.text", ".gnu.linkonce.this_module"} {
		require.NotNil(t, im.file.Section(s), s)
	}
	info, err := im.file.Section(".modinfo").Data()
	require.NoError(t, err)
	require.Contains(t, string(info), "name=demo\x00")

	// The instruction boundaries that probes in tests are planted on.
	text, err := im.file.Section(".text").Data()
	require.NoError(t, err)
	body := []byte{0x48, 0x89, 0xf8, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x31, 0xc9, 0x48, 0x8d, 0x50, 0x08}
	for name, head := range map[string]string{
		"demo_tgt": "", "demo_tgt_nb": "\x0f\x0d\x0c\x24", "demo_tgt_jmp": "\xeb\x00", "demo_tgt_jcc": "\x74\x00",
	} {
		a := im.addr(name)
		require.Zero(t, a%64, name)
		require.Equal(t, head+string(body), string(text[a:int(a)+len(head)+len(body)]), name)
	}
	require.Equal(t, byte(0xe8), text[im.addr("demo_tgt_call")])
	ft2 := im.addr("demo_ft2")
	require.Equal(t, "\x48\x83\xc0\x01", string(text[ft2+8:ft2+12]), "+8 of demo_ft2 is an instruction")
	require.Equal(t, "\x0f\x0d\x0c\x24", string(text[ft2+19:ft2+23]), "and +19")
}
