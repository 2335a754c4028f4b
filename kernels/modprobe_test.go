package kernels_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// moduleELF is a relocatable object with a .modinfo, and nothing else.
func moduleELF(t *testing.T, modinfo string) string {
	t.Helper()
	const header, names = 64, "\x00.modinfo\x00.shstrtab\x00"
	var b bytes.Buffer
	write := func(v any) { require.NoError(t, binary.Write(&b, binary.LittleEndian, v)) }
	write(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: header, Shentsize: 64, Shnum: 3, Shstrndx: 2,
		Shoff: uint64(header + len(modinfo) + len(names)),
	})
	b.WriteString(modinfo + names)
	write(elf.Section64{})
	write(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Off: header, Size: uint64(len(modinfo))})
	write(elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(header + len(modinfo)), Size: uint64(len(names))})
	return b.String()
}

// TestModuleFiles: a module comes after those that it needs, each once, and not if the kernel has it built in.
func TestModuleFiles(t *testing.T) {
	w := newWorld(t)
	at := func(name, modinfo string) file {
		return file{Name: "./lib/modules/" + release + "/kernel/" + name + ".ko", Data: moduleELF(t, modinfo)}
	}
	w.Suite("bookworm", kernelDeb(release, "6.1.1-1",
		at("fs/top", "name=top\x00depends=left-side,right\x00"), at("lib/left-side", "name=left_side\x00depends=base\x00"),
		at("lib/right", "depends=base,inside\x00"), at("lib/base", "depends=\x00"),
		at("lib/turns", "depends=round\x00"), at("lib/round", "depends=turns\x00"), at("lib/lacks", "depends=gone\x00"),
		file{Name: "./lib/modules/" + release + "/modules.builtin", Data: "kernel/lib/inside.ko\nkernel/lib/also-inside.ko\n"}), meta(release))
	s := w.open(t)
	for _, c := range []struct {
		name  string
		names []string
		want  []string
		err   string
	}{
		{"alone", []string{"base"}, []string{"base"}, ""},
		{"after_what_it_needs", []string{"top"}, []string{"base", "left_side", "right", "top"}, ""},
		{"each_once", []string{"right", "top", "right"}, []string{"base", "right", "left_side", "top"}, ""},
		{"with_a_hyphen", []string{"left-side"}, []string{"base", "left_side"}, ""},
		{"built_in", []string{"inside", "also_inside"}, nil, ""},
		{"a_circle", []string{"turns"}, []string{"round", "turns"}, ""},
		{"none_of_this_name", []string{"base", "nosuch"}, []string{"base"}, "nosuch for " + release + ": the module cannot be had: its package has no nosuch"},
		{"a_part_of_a_name", []string{"ase"}, nil, "ase for " + release + ": the module cannot be had: its package has no ase, but base"},
		{"needs_what_is_not_there", []string{"lacks"}, nil, "lacks for " + release + ": the module cannot be had: its package has no gone"},
		{"is_no_path", []string{"../../../boot/vmlinuz"}, nil, "../../../boot/vmlinuz for " + release + ": the module cannot be had: its package has no vmlinuz"},
		{"is_no_module", []string{"a"}, nil, "a for " + release + ": "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			err := s.ModuleFiles(t.Context(), release, c.names, func(name string, code []byte) error {
				require.True(t, bytes.HasPrefix(code, []byte(elf.ELFMAG)))
				got = append(got, name)
				return nil
			})
			require.Equal(t, c.want, got)
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
		})
	}
	refused := errors.New("refused")
	require.ErrorIs(t, s.ModuleFiles(t.Context(), release, []string{"top"}, func(name string, _ []byte) error {
		require.Equal(t, "base", name, "nothing goes on after an error")
		return refused
	}), refused)
}
