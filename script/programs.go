package script

import (
	"bytes"
	"debug/elf"

	"kprobelab"
	"kprobelab/internal/process"
	"kprobelab/internal/script/host"
	"kprobelab/internal/session"
	"kprobelab/kimage"
)

// programs reads the files of a booted kernel's programs, each once, with system calls of a machine that is
// thrown away.
func programs(img *kimage.Image) func(file string) (*host.Program, error) {
	known := map[string]*host.Program{}
	return func(file string) (*host.Program, error) {
		if p := known[file]; p != nil {
			return p, nil
		}
		lab, err := kprobelab.New(img, nil)
		if err != nil {
			return nil, err
		}
		defer lab.Close()
		u, err := session.New(lab).Uprobes()
		if err != nil {
			return nil, err
		}
		f, err := u.File(file)
		if err != nil {
			return nil, err
		}
		known[file], err = readProgram(f)
		return known[file], err
	}
}

func readProgram(f *process.File) (*host.Program, error) {
	list, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	p := &host.Program{File: f.Name}
	if h, err := elf.NewFile(bytes.NewReader(f.Data)); err == nil {
		p.Movable = h.Type != elf.ET_EXEC
		p.Offset = func(addr uint64) (uint64, bool) {
			for _, s := range h.Progs {
				if s.Type == elf.PT_LOAD && addr >= s.Vaddr && addr-s.Vaddr < s.Filesz {
					return addr - s.Vaddr + s.Off, true
				}
			}
			return 0, false
		}
		for _, s := range h.Progs {
			if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
				p.Code = s.Vaddr
				break
			}
		}
	}
	for _, s := range list {
		one := host.ProgramSymbol{Name: s.Name, Addr: s.Addr, Size: s.Size, Offset: s.Offset}
		switch {
		case s.Data:
			p.Variables = append(p.Variables, one)
		case s.Loaded:
			copy(one.Bytes[:], f.Data[min(s.Offset, uint64(len(f.Data))):])
			p.Functions = append(p.Functions, one)
		}
	}
	return p, nil
}
