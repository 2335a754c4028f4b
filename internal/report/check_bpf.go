package report

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// bpfSections are the kinds of section whose programs attach to the kernel's code, by
// what stands before the slash of the section's name (libbpf, "Program Types"). Those
// that may sleep have an s after a dot, and are the same.
var bpfSections = map[string]Probe{
	"kprobe":           {Via: ViaPerf},
	"kretprobe":        {Via: ViaPerf, Return: true},
	"ksyscall":         {Via: ViaPerf, syscall: true},
	"kretsyscall":      {Via: ViaPerf, syscall: true, Return: true},
	"kprobe.multi":     {Via: ViaMulti},
	"kretprobe.multi":  {Via: ViaMulti, Return: true},
	"kprobe.session":   {Via: ViaMulti, Return: true},
	"fentry":           {Via: ViaTrampoline},
	"fexit":            {Via: ViaTrampoline, Return: true},
	"fmod_ret":         {Via: ViaTrampoline, Return: true},
	"lsm":              {Via: ViaTrampoline},
	"iter":             {Via: ViaIterator},
	"tracepoint":       {Via: ViaTracepoint},
	"tp":               {Via: ViaTracepoint},
	"raw_tracepoint":   {Via: ViaRaw},
	"raw_tp":           {Via: ViaRaw},
	"raw_tracepoint.w": {Via: ViaRaw},
	"raw_tp.w":         {Via: ViaRaw},
	"tp_btf":           {Via: ViaRaw},
}

// Why a program is not asked about.
const (
	unaskedPlace = "the section names no place: the program attaches where the tool says at run time"
	unaskedUser  = "it probes a program in user space, of which a kernel's image says nothing"
	unaskedOther = "a program of this kind attaches to no place in the kernel's code"
)

// userSections are the kinds that probe user space.
var userSections = []string{"uprobe", "uretprobe", "uprobe.multi", "uretprobe.multi", "uprobe.session", "usdt"}

// bpfProbes lists the programs of a compiled BPF object in the order of its
// sections.
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
	for i, s := range f.Sections {
		// .text has the functions that programs call.
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 || s.Name == ".text" {
			continue
		}
		p := sectionProbe(s.Name)
		for _, name := range programs(symbols, elf.SectionIndex(i)) {
			p.Program = printable(name)
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the object has no program")
	}
	return list, nil
}

// sectionProbe reads a section's name; a question mark before it asks loaders
// not to load the program by themselves.
func sectionProbe(section string) Probe {
	kind, place, _ := strings.Cut(strings.TrimPrefix(section, "?"), "/")
	kind = strings.TrimSuffix(kind, ".s")
	p, ok := bpfSections[kind]
	p.Text, p.kind, p.place = printable(section), kind, place
	switch {
	case slices.Contains(userSections, kind):
		p.unasked = unaskedUser
	case !ok:
		p.unasked = unaskedOther
	case place == "":
		p.unasked = unaskedPlace
	}
	return p
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
