package transparent

import (
	"bytes"
	"debug/elf"
	"fmt"
	"sort"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/process"
	"kprobelab/internal/userprobe"
	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// Function is a function of a program, with the file offsets of its instructions.
type Function struct {
	Name         string
	Entry        uint64
	Own          bool // not the C library's
	Instructions []uint64
}

// Functions lists the functions of a statically linked program, each place once, by offset. The
// program's own are main and the functions of the sources; the rest are the library's.
func Functions(f *process.File, c *profile.Config, sources ...string) ([]Function, error) {
	h, err := elf.NewFile(bytes.NewReader(f.Data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	symbols, err := h.Symbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	own := map[string]bool{}
	for _, s := range sources {
		own[s] = true
	}
	var list []Function
	seen := map[uint64]bool{}
	source := ""
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FILE {
			source = s.Name
		}
		section := int(s.Section)
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 || section >= len(h.Sections) || seen[s.Value] {
			continue
		}
		seen[s.Value] = true
		in := h.Sections[section]
		fn := Function{Name: s.Name, Entry: s.Value - in.Addr + in.Offset, Own: own[source] || s.Name == "main"}
		for at := fn.Entry; at < fn.Entry+s.Size; {
			k, err := decoder.DecodeKernel(f.Data[at:], &c.Decoder)
			if err != nil {
				break
			}
			fn.Instructions = append(fn.Instructions, at)
			at += uint64(k.Length)
		}
		list = append(list, fn)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Entry < list[j].Entry })
	return list, nil
}

// Places are instructions of a program.
type Places struct {
	// At lists the instructions that the kernel accepts and that no hazard of docs/uprobes.md breaks.
	At []uint64
	// AsCalls are nops that become calls of a trampoline (7.2 and later). From then on a hit writes to the stack
	// past the red zone, and when the probe goes the nop's operand keeps the call: memory is not the same.
	AsCalls []uint64
	// Refused and Harmful count the others.
	Refused int
	Harmful map[uprobes.Hazard]int
}

// Probable are the places of a list.
func Probable(f *process.File, c *profile.Config, list []uint64) Places {
	p := Places{Harmful: map[uprobes.Hazard]int{}}
	for _, at := range list {
		a := uprobes.Analyze(f.Data[at:at+uprobes.InsnSize], x86.Addr(at%process.PageSize), c)
		switch h := userprobe.HazardAt(c, f, at); {
		case a.Errno == errno.ENOTSUPP, a.Errno == errno.ENOEXEC:
			p.Refused++
		case h != "":
			p.Harmful[h]++
		case a.Optimizable:
			p.AsCalls = append(p.AsCalls, at)
		default:
			p.At = append(p.At, at)
		}
	}
	return p
}

// Called are the instructions of all functions of its own that a program calls, and of the first
// library functions that it calls.
func (r *Runner) Called(library int, sources ...string) (Places, error) {
	list, err := Functions(r.File, r.Rules, sources...)
	if err != nil {
		return Places{}, err
	}
	var entries []uint64
	for _, fn := range list {
		entries = append(entries, fn.Entry)
	}
	called := map[uint64]uint64{}
	if _, err := r.Run(Probable(r.File, r.Rules, entries).At, called); err != nil {
		return Places{}, err
	}
	var at []uint64
	for _, fn := range list {
		if called[fn.Entry] == 0 || !fn.Own && library == 0 {
			continue
		}
		at = append(at, fn.Instructions...)
		if !fn.Own {
			library--
		}
	}
	if library > 0 {
		return Places{}, fmt.Errorf("%s calls %d library functions fewer than wanted", r.File.Name, library)
	}
	return Probable(r.File, r.Rules, at), nil
}
