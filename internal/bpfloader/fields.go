//go:build linux

package main

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"kprobelab/bpf/answer"
)

// kernelTypes returns the types that CO-RE relocates against: the types of --btf, or of the kernel and its modules. If there are none, the
// error says why.
func (l *loader) kernelTypes() ([]*btf.Spec, error) {
	if l.types != nil {
		return []*btf.Spec{l.types}, nil
	}
	kernel, err := l.kernel.Kernel()
	if err != nil {
		return nil, err
	}
	list := []*btf.Spec{kernel}
	modules, err := l.kernel.Modules()
	if err != nil {
		return list, nil // without CONFIG_DEBUG_INFO_BTF_MODULES
	}
	for _, name := range modules {
		if s, err := l.kernel.Module(name); err == nil {
			list = append(list, s)
		}
	}
	return list, nil
}

// use is a program's record with its instruction's place.
type use struct {
	program string
	r       *relocation
	at      *answer.Place
}

// fields says what CO-RE finds of each field, type and enumerator that the programs ask for, in the order of their names.
func (l *loader) fields() []answer.Field {
	uses := map[string][]use{}
	for _, program := range slices.Sorted(maps.Keys(l.spec.Programs)) {
		list := l.spec.Programs[program].Instructions
		at := 0
		for i := range list {
			if r := l.read(&list[i]); r != nil && r.kind != "local_type_id" {
				name, _, _ := r.name()
				key := r.of() + " " + name
				uses[key] = append(uses[key], use{program: program, r: r, at: place(list, at)})
			}
			at += int(list[i].Size()) / asm.InstructionSize
		}
	}
	if len(uses) == 0 {
		return nil
	}
	targets, err := l.kernelTypes()
	var found []answer.Field
	for _, key := range slices.Sorted(maps.Keys(uses)) {
		f := field(uses[key], targets)
		if err != nil {
			f.Found, f.Error = "", err.Error()
		}
		found = append(found, f)
	}
	return found
}

// fixup is the text of CO-RE's answer to a record, as "byte_off=0->16" or "byte_off=poison"; the error says why there is none.
func fixup(r *relocation, targets []*btf.Spec) (string, error) {
	list, err := btf.CORERelocate([]*btf.CORERelocation{r.record}, targets, binary.LittleEndian, func(btf.Type) (btf.TypeID, error) { return 0, nil })
	if err != nil {
		return "", err
	}
	return list[0].String(), nil
}

// field puts the uses of one field together.
func field(uses []use, targets []*btf.Spec) answer.Field {
	first := uses[0].r
	name, steps, leaf := first.name()
	f := answer.Field{Name: name, Kind: first.of(), Wanted: typeName(leaf), Place: uses[0].at, Guarded: guarded(uses)}
	there := false
	for _, u := range uses {
		if !slices.Contains(f.Programs, u.program) {
			f.Programs = append(f.Programs, u.program)
		}
		if len(targets) == 0 {
			continue
		}
		text, err := fixup(u.r, targets)
		if err != nil {
			f.Error = err.Error()
			continue
		}
		_, to, _ := strings.Cut(text, "->")
		there = there || to != "" && !(u.r.asks() && to == "0")
	}
	f.Found = answer.Absent
	if there {
		f.Found = answer.Present
	}
	for _, target := range targets {
		candidates, err := target.AnyTypesByName(essential(first.local.TypeName()))
		if err != nil {
			continue
		}
		if compare(&f, first, candidates, steps, leaf, there) {
			return f
		}
	}
	return f
}

// guarded reports whether each program that reads a field also asks whether it is there.
func guarded(uses []use) bool {
	asks := map[string]bool{}
	for _, u := range uses {
		asks[u.program] = asks[u.program] || u.r.asks()
	}
	for _, ok := range asks {
		if !ok {
			return false
		}
	}
	return true
}

// compare fills in the offset and the type that a field has in the kernel. It reports whether a candidate has it.
func compare(f *answer.Field, r *relocation, candidates []btf.Type, steps []step, leaf btf.Type, there bool) bool {
	for _, t := range candidates {
		switch r.of() {
		case "enumerator":
			if e, ok := btf.UnderlyingType(t).(*btf.Enum); ok {
				for _, v := range e.Values {
					if there && essential(v.Name) == f.Name[strings.LastIndexByte(f.Name, '.')+1:] {
						n := int64(v.Value)
						f.Value, f.Type = &n, typeName(t)
						return true
					}
				}
			}
		case "type":
			if n, err := btf.Sizeof(t); err == nil && there {
				f.Size, f.Type = n, typeName(t)
				return true
			} else if keyword(t) != keyword(r.local) {
				f.Found, f.Type = answer.OtherType, typeName(t)
			}
		default:
			kernels, bits, ok := follow(t, steps)
			if !ok {
				continue
			}
			offset, bit := int(bits/8), int(bits%8)
			f.Offset, f.Bit, f.Type = &offset, bit, typeName(kernels)
			f.Size, _ = btf.Sizeof(kernels)
			if !alike(leaf, kernels) || !there {
				f.Found = answer.OtherType
			}
			f.Relocated = there
			return true
		}
	}
	return false
}
