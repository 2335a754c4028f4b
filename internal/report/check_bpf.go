package report

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// bpfSections are the kinds of section whose programs are kernel probes, by
// what stands before the slash of the section's name (libbpf, "Program Types").
var bpfSections = map[string]Probe{
	"kprobe":            {Via: ViaPerf},
	"kretprobe":         {Via: ViaPerf, Return: true},
	"ksyscall":          {Via: ViaPerf, syscall: true},
	"kretsyscall":       {Via: ViaPerf, syscall: true, Return: true},
	"kprobe.multi":      {Via: ViaMulti},
	"kretprobe.multi":   {Via: ViaMulti, Return: true},
	"kprobe.session":    {Via: ViaMulti, Return: true},
	"kprobe.multi.s":    {Via: ViaMulti},
	"kprobe.s":          {Via: ViaPerf},
	"kretprobe.s":       {Via: ViaPerf, Return: true},
	"kretprobe.multi.s": {Via: ViaMulti, Return: true},
}

// bpfProbes lists the kernel probes of a compiled BPF object, a program each,
// in the order of its sections.
func bpfProbes(object []byte) ([]Probe, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("not an ELF object: %w", err)
	}
	if f.Machine != elf.EM_BPF {
		return nil, fmt.Errorf("an object for BPF is wanted, this one is for %s", strings.TrimPrefix(f.Machine.String(), "EM_"))
	}
	symbols, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	var list []Probe
	others := 0
	for i, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 {
			continue
		}
		p, ok := sectionProbe(s.Name)
		if !ok {
			others++
			continue
		}
		for _, name := range programs(symbols, elf.SectionIndex(i)) {
			p.Program = printable(name)
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the object has no program in a section kprobe/, kretprobe/, kprobe.multi/, kretprobe.multi/, ksyscall/ or kretsyscall/ (%d in others)", others)
	}
	return list, nil
}

// sectionProbe reads a section's name; a question mark before it asks loaders
// not to load the program by themselves.
func sectionProbe(section string) (Probe, bool) {
	kind, place, named := strings.Cut(strings.TrimPrefix(section, "?"), "/")
	p, ok := bpfSections[kind]
	if !ok {
		return p, false
	}
	p.Text, p.place = printable(section), place
	if !named || place == "" {
		p.bad = "the section names no function: the program attaches where the tool says at run time"
	}
	return p, true
}

// programs are the names of the functions in a section.
func programs(symbols []elf.Symbol, section elf.SectionIndex) (names []string) {
	for _, s := range symbols {
		if s.Section == section && elf.ST_TYPE(s.Info) == elf.STT_FUNC && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		names = []string{""}
	}
	return names
}
