package kimage

import (
	"debug/elf"
	"fmt"

	"kprobelab/x86"
)

// CodeOf returns the executable sections of an x86-64 ELF file, or the executable segments of a kernel image as it
// is linked. progress may be nil.
func CodeOf(path string, progress func(what string, done, total int64)) ([]Segment, error) {
	f, err := elf.Open(path)
	if err != nil {
		return kernelCode(path, progress)
	}
	defer f.Close()
	var list []Segment
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("%s: section %s: %w", path, s.Name, err)
		}
		list = append(list, Segment{Name: s.Name, Addr: x86.Addr(s.Addr), Data: data, Size: s.Size, Exec: true})
	}
	if f.Machine != elf.EM_X86_64 || len(list) == 0 {
		return nil, fmt.Errorf("%s: no x86-64 code in it", path)
	}
	return list, nil
}

func kernelCode(path string, progress func(what string, done, total int64)) ([]Segment, error) {
	img, err := Open(path, &Options{NoBoot: true, Progress: progress})
	if err != nil {
		return nil, err
	}
	var list []Segment
	for _, s := range img.Segments() {
		if s.Exec {
			list = append(list, s)
		}
	}
	return list, nil
}
