package hostfiles

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tiny says which ELF file to make.
type tiny struct {
	interpreter, soname, rpath, runpath string
	needed                              []string
	flags                               uint64
	// change changes the file's bytes.
	change func(b []byte)
}

// bytes makes the file: one segment with everything, without sections.
func (f tiny) bytes() []byte {
	text := []byte{0}
	var dynamic []uint64
	add := func(tag elf.DynTag, s string) {
		if s != "" {
			dynamic = append(dynamic, uint64(tag), uint64(len(text)))
			text = append(append(text, s...), 0)
		}
	}
	for _, n := range f.needed {
		add(elf.DT_NEEDED, n)
	}
	add(elf.DT_SONAME, f.soname)
	add(elf.DT_RPATH, f.rpath)
	add(elf.DT_RUNPATH, f.runpath)
	const base, at = 0x400000, 64 + 3*56
	interp := append([]byte(f.interpreter), 0)
	strings := uint64(at + len(interp))
	dynamic = append(dynamic, uint64(elf.DT_FLAGS_1), f.flags, uint64(elf.DT_STRTAB), base+strings, uint64(elf.DT_STRSZ), uint64(len(text)), 0, 0)
	table := strings + uint64(len(text))
	size := table + uint64(8*len(dynamic))
	segments := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Vaddr: base, Filesz: size, Memsz: size},
		{Type: uint32(elf.PT_DYNAMIC), Off: table, Vaddr: base + table, Filesz: size - table, Memsz: size - table},
		{Type: uint32(elf.PT_NULL)},
	}
	if f.interpreter != "" {
		segments[2] = elf.Prog64{Type: uint32(elf.PT_INTERP), Off: at, Vaddr: base + at, Filesz: uint64(len(interp))}
	}
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(segments))}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var b bytes.Buffer
	for _, v := range []any{h, segments, interp, text, dynamic} {
		_ = binary.Write(&b, binary.LittleEndian, v) // into memory
	}
	out := b.Bytes()
	if f.change != nil {
		f.change(out)
	}
	return out
}

// lay makes a tree of files: a tiny, a text, or "->TARGET" for a link.
func lay(t *testing.T, root string, files map[string]any) {
	t.Helper()
	for name, v := range files {
		at := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		switch v := v.(type) {
		case tiny:
			require.NoError(t, os.WriteFile(at, v.bytes(), 0o755))
		case string:
			if to, is := bytes.CutPrefix([]byte(v), []byte("->")); is {
				require.NoError(t, os.Symlink(string(to), at))
			} else {
				require.NoError(t, os.WriteFile(at, []byte(v), 0o755))
			}
		}
	}
}

// taken are the files of a set but for folders: "path" or "path->link".
func taken(s *Set) (list []string) {
	for _, f := range s.Files() {
		switch {
		case f.Link != "":
			list = append(list, f.Path+"->"+f.Link)
		case f.From != "":
			list = append(list, f.Path)
		}
	}
	return list
}
