//go:build linux

package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"kprobelab/internal/bounded"
)

// relocation is a CO-RE record of .BTF.ext.
type relocation struct {
	record *btf.CORERelocation
	// kind is libbpf's word: byte_off, field_exists, type_size, enumval_value and others.
	kind string
	// local is the object's own type, accessor the steps into it: the first counts whole types, the others members and elements.
	local    btf.Type
	accessor []int
}

// relocationText is the text of a record: the kind, the accessor, and the number of the object's own type.
var relocationText = regexp.MustCompile(`^CORERelocation\((\w+), .*\[([\d:]*)\], local_id=(\d+)\)$`)

// read reads the record of an instruction; nil if it has none.
func (l *loader) read(i *asm.Instruction) *relocation {
	record := btf.CORERelocationMetadata(i)
	if record == nil {
		return nil
	}
	m := relocationText.FindStringSubmatch(record.String())
	if m == nil {
		return nil
	}
	id, err := strconv.ParseUint(m[3], 10, 32)
	if err != nil {
		return nil
	}
	r := &relocation{record: record, kind: m[1]}
	if r.local, err = l.spec.Types.TypeByID(btf.TypeID(id)); err != nil {
		return nil
	}
	for _, word := range strings.Split(m[2], ":") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil
		}
		r.accessor = append(r.accessor, n)
	}
	return r
}

// of names what a record is about: "field", "type" or "enumerator".
func (r *relocation) of() string {
	switch {
	case strings.HasPrefix(r.kind, "type_"), strings.HasSuffix(r.kind, "_type_id"):
		return "type"
	case strings.HasPrefix(r.kind, "enumval_"):
		return "enumerator"
	}
	return "field"
}

// asks reports whether a record asks only whether something is there.
func (r *relocation) asks() bool {
	return strings.HasSuffix(r.kind, "_exists") || r.kind == "type_matches"
}

// step is a step from a type into it: to a member by its name ("" for a structure without a name), or to an element.
type step struct {
	name    string
	element int
}

// name is the field, the type or the enumerator in words. steps leads to the field; leaf is its type in the object.
func (r *relocation) name() (name string, steps []step, leaf btf.Type) {
	name, leaf = essential(r.local.TypeName()), r.local
	if r.of() == "type" || len(r.accessor) == 0 {
		return name, nil, leaf
	}
	if r.of() == "enumerator" {
		if e, ok := btf.UnderlyingType(r.local).(*btf.Enum); ok && r.accessor[0] < len(e.Values) {
			return name + "." + essential(e.Values[r.accessor[0]].Name), nil, leaf
		}
		return name, nil, leaf
	}
	for _, n := range r.accessor[1:] {
		var list []btf.Member
		switch t := btf.UnderlyingType(leaf).(type) {
		case *btf.Struct:
			list = t.Members
		case *btf.Union:
			list = t.Members
		case *btf.Array:
			name, leaf = name+"["+strconv.Itoa(n)+"]", t.Type
			steps = append(steps, step{element: n})
			continue
		}
		if n < 0 || n >= len(list) {
			return name, steps, leaf
		}
		leaf = list[n].Type
		if list[n].Name != "" { // a structure without a name is no step of a path
			name += "." + list[n].Name
			steps = append(steps, step{name: list[n].Name})
		}
	}
	return name, steps, leaf
}

// essential is a name without its flavour: libbpf ignores what follows three underscores.
func essential(name string) string {
	if i := strings.LastIndex(name, "___"); i > 0 {
		return name[:i]
	}
	return name
}

// follow goes the same steps in a kernel's type. bits is the offset.
func follow(from btf.Type, steps []step) (leaf btf.Type, bits uint64, ok bool) {
	leaf = from
	for _, s := range steps {
		t := btf.UnderlyingType(leaf)
		if s.name == "" {
			a, is := t.(*btf.Array)
			if !is {
				return nil, 0, false
			}
			size, err := btf.Sizeof(a.Type)
			if err != nil {
				return nil, 0, false
			}
			leaf, bits = a.Type, bits+8*uint64(s.element)*uint64(size)
			continue
		}
		m, at, is := member(t, s.name, 0)
		if !is {
			return nil, 0, false
		}
		leaf, bits = m.Type, bits+at
	}
	return leaf, bits, true
}

// member finds a member by its name, in structures without a name, too.
func member(of btf.Type, name string, depth int) (found btf.Member, bits uint64, ok bool) {
	var list []btf.Member
	switch t := btf.UnderlyingType(of).(type) {
	case *btf.Struct:
		list = t.Members
	case *btf.Union:
		list = t.Members
	}
	if depth > bounded.BPFNested {
		return found, 0, false
	}
	for _, m := range list {
		if m.Name == name {
			return m, uint64(m.Offset), true
		}
		if m.Name == "" {
			if inner, at, ok := member(m.Type, name, depth+1); ok {
				return inner, uint64(m.Offset) + at, true
			}
		}
	}
	return found, 0, false
}

// absentTypes gives the size and the number of a type that the kernel does not have as 0, as libbpf does. cilium/ebpf refuses the program.
func (l *loader) absentTypes(list asm.Instructions) {
	for i := range list {
		r := l.read(&list[i])
		if r == nil || r.kind != "type_size" && r.kind != "target_type_id" {
			continue
		}
		targets, err := l.kernelTypes()
		if err != nil {
			return // CO-RE says so itself
		}
		if text, err := fixup(r, targets); err == nil && strings.HasSuffix(text, "=poison") {
			list[i].Constant = 0
			list[i] = btf.WithCORERelocationMetadata(list[i], nil)
		}
	}
}
