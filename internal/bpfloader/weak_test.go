//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/tools/conformance/sections"
)

// TestWeakVariablesOfTheConfiguration: they become global, and nothing else of an object changes.
func TestWeakVariablesOfTheConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		symbol string
		info   byte
		shndx  elf.SectionIndex
		global bool
	}{
		"a configuration's":           {"CONFIG_X", elf.ST_INFO(elf.STB_WEAK, elf.STT_NOTYPE), elf.SHN_UNDEF, true},
		"the kernel's version":        {"LINUX_KERNEL_VERSION", elf.ST_INFO(elf.STB_WEAK, elf.STT_NOTYPE), elf.SHN_UNDEF, true},
		"a function of the kernel's":  {"bpf_task_acquire", elf.ST_INFO(elf.STB_WEAK, elf.STT_NOTYPE), elf.SHN_UNDEF, false},
		"a function of the object":    {"CONFIG_X", elf.ST_INFO(elf.STB_WEAK, elf.STT_FUNC), 3, false},
		"a variable that is not weak": {"CONFIG_X", elf.ST_INFO(elf.STB_LOCAL, elf.STT_NOTYPE), elf.SHN_UNDEF, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := withSymbol(t, c.symbol, c.info, c.shndx)
			before := bytes.Clone(object)
			after, weak := withoutWeak(object)
			assert.Equal(t, before, object, "the object itself stays")
			f, err := elf.NewFile(bytes.NewReader(after))
			require.NoError(t, err)
			symbols, err := f.Symbols()
			require.NoError(t, err)
			assert.Equal(t, c.global, len(weak) == 1)
			if c.global {
				assert.Equal(t, elf.ST_INFO(elf.STB_GLOBAL, elf.ST_TYPE(c.info)), symbols[0].Info)
				differ := 0
				for i := range after {
					if after[i] != before[i] {
						differ++
					}
				}
				assert.Equal(t, 1, differ)
			} else {
				assert.Equal(t, before, after)
			}
			assert.Len(t, after, len(before))
		})
	}
	for _, damaged := range [][]byte{nil, []byte("\x7fELF"), sections.Object("kprobe/x")[:70]} {
		same, _ := withoutWeak(damaged)
		assert.Equal(t, damaged, same)
	}
}

// TestVariablesThatGetASection: an external variable is defined, in a section with its value, and a damaged object stays as it is.
func TestVariablesThatGetASection(t *testing.T) {
	object := withSymbol(t, "LINUX_HAS_BPF_COOKIE", elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE), elf.SHN_UNDEF)
	before := bytes.Clone(object)
	after := withConstants(object, map[string]uint64{"LINUX_HAS_BPF_COOKIE": 7, "CONFIG_X": 1})
	assert.Equal(t, before, object, "the object itself stays")
	f, err := elf.NewFile(bytes.NewReader(after))
	require.NoError(t, err)
	symbols, err := f.Symbols()
	require.NoError(t, err)
	s := f.Sections[symbols[0].Section]
	assert.Equal(t, ".rodata.kprobelab", s.Name)
	data, err := s.Data()
	require.NoError(t, err)
	assert.Equal(t, binary.LittleEndian.AppendUint64(nil, 7), data)
	assert.Equal(t, before, withConstants(object, map[string]uint64{"CONFIG_X": 1}))
	for cut := range before {
		assert.NotPanics(t, func() { withConstants(before[:cut], map[string]uint64{"LINUX_HAS_BPF_COOKIE": 7}) })
	}
}

// withSymbol is an object whose one symbol has another name, info and section.
func withSymbol(t *testing.T, name string, info byte, section elf.SectionIndex) []byte {
	object := sections.Object("kprobe/" + name)
	f, err := elf.NewFile(bytes.NewReader(object))
	require.NoError(t, err)
	at := f.SectionByType(elf.SHT_SYMTAB).Offset + elf.Sym64Size
	names := f.SectionByType(elf.SHT_STRTAB)
	text, err := names.Data()
	require.NoError(t, err)
	s := elf.Sym64{Name: uint32(bytes.Index(text, []byte(name+"\x00"))), Info: info, Shndx: uint16(section)}
	var b bytes.Buffer
	require.NoError(t, binary.Write(&b, binary.LittleEndian, s))
	copy(object[at:], b.Bytes())
	return object
}
