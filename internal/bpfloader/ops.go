//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// ops is a variable of a section .struct_ops or .struct_ops.link: the kernel's structure of this type with programs as its functions.
type ops struct {
	name string
	// kind is the structure in the object, with its name in the kernel.
	kind *btf.Struct
	data []byte
	// programs has the program of a member, by the member's name.
	programs map[string]string
	// link: a link registers it; else the map's one entry does.
	link bool
}

// opsSections lists the sections of ops, and whether a link registers them. A tool may leave out a section with ?.
var opsSections = map[string]bool{".struct_ops": false, ".struct_ops.link": true, "?.struct_ops": false, "?.struct_ops.link": true}

// withoutOps hides these sections by another name: cilium/ebpf 0.22 does not read objects with the first, and fills two variables of one
// type with the same programs.
func withoutOps(object []byte) []byte {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil || f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || binary.LittleEndian.Uint16(object[headCount-2:]) != elfSection64 {
		return object
	}
	defer f.Close()
	out := slices.Clone(object)
	at := binary.LittleEndian.Uint64(object[headSections:])
	for i, s := range f.Sections {
		if _, ok := opsSections[s.Name]; ok && s.Name[0] == '.' {
			name := out[at+uint64(i)*elfSection64:]
			binary.LittleEndian.PutUint32(name, binary.LittleEndian.Uint32(name)+1) // the name begins after its point
		}
	}
	return out
}

// readOps reads the sections of ops, and says in the programs' specifications to which members they belong.
func readOps(object []byte, spec *ebpf.CollectionSpec) (list []ops, err error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for i, s := range f.Sections {
		link, ok := opsSections[s.Name]
		if !ok || s.Type != elf.SHT_PROGBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		var all *btf.Datasec
		types, err := btf.LoadSpecFromReader(bytes.NewReader(object)) // those of spec do not know the section
		if err == nil {
			err = types.TypeByName(s.Name, &all)
		}
		if err != nil {
			return nil, fmt.Errorf("the section %s has no types (clang -g writes them): %w", s.Name, err)
		}
		programs, err := references(f, i)
		if err != nil {
			return nil, fmt.Errorf("the section %s: %w", s.Name, err)
		}
		for _, v := range all.Vars {
			o, err := oneOps(v, data, programs)
			if err != nil {
				return nil, fmt.Errorf("the section %s: %w", s.Name, err)
			}
			o.link = link
			for member, name := range o.programs {
				p := spec.Programs[name]
				if p == nil || p.Type != ebpf.StructOps {
					return nil, fmt.Errorf("%s.%s: %s is no program of struct_ops", o.name, member, name)
				}
				p.AttachTo = o.kind.Name + ":" + member
			}
			list = append(list, o)
		}
	}
	return list, nil
}

// references are the names of the symbols to which a section's relocations lead, by their offset.
func references(f *elf.File, section int) (map[uint64]string, error) {
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	names := map[uint64]string{}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_REL || int(s.Info) != section {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		for ; len(data) >= 16; data = data[16:] {
			n := binary.LittleEndian.Uint64(data[8:]) >> 32
			if n == 0 || n > uint64(len(symbols)) {
				return nil, fmt.Errorf("a relocation names symbol %d of %d", n, len(symbols))
			}
			names[binary.LittleEndian.Uint64(data)] = symbols[n-1].Name
		}
	}
	return names, nil
}

func oneOps(v btf.VarSecinfo, data []byte, programs map[uint64]string) (ops, error) {
	kind, ok := btf.As[*btf.Struct](typeOf(v.Type))
	if !ok {
		return ops{}, fmt.Errorf("%s is no structure", v.Type.TypeName())
	}
	if uint64(v.Offset)+uint64(kind.Size) > uint64(len(data)) {
		return ops{}, fmt.Errorf("%s is longer than the section", v.Type.TypeName())
	}
	name, _, _ := strings.Cut(kind.Name, "___") // a flavour of CO-RE
	o := ops{
		name: v.Type.TypeName(), kind: &btf.Struct{Name: name, Size: kind.Size, Members: kind.Members},
		data: data[v.Offset : v.Offset+kind.Size], programs: map[string]string{},
	}
	for _, m := range kind.Members {
		if program := programs[uint64(v.Offset)+uint64(m.Offset.Bytes())]; program != "" {
			o.programs[m.Name] = program
		}
	}
	return o, nil
}

// typeOf is a variable's type.
func typeOf(t btf.Type) btf.Type {
	if v, ok := t.(*btf.Var); ok {
		return v.Type
	}
	return t
}

// attachOps registers each structure that has the program, once: the kernel's answer is that to all its programs.
func (l *loader) attachOps(s *ebpf.ProgramSpec, c *ebpf.Collection) (io.Closer, error) {
	var at closers
	found := false
	for _, o := range l.ops {
		if !slices.Contains(slices.Collect(maps.Values(o.programs)), s.Name) {
			continue
		}
		found = true
		err, tried := l.tried[o.name]
		if !tried {
			var one io.Closer
			if one, err = l.register(o, c); err == nil {
				at = append(at, one)
			}
			l.tried[o.name] = err
		}
		if err != nil {
			_ = at.Close()
			return nil, err
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: no variable of .struct_ops has the program", errNotAsked)
	}
	return at, nil
}

// ending is a closer that calls a function.
type ending func() error

func (e ending) Close() error { return e() }

// register registers a structure with its programs, from the collection or loaded for it.
func (l *loader) register(o ops, c *ebpf.Collection) (io.Closer, error) {
	programs := map[string]*ebpf.Program{}
	for member, name := range o.programs {
		if programs[member] = c.Programs[name]; programs[member] != nil {
			continue
		}
		beside, err := l.load(l.spec.Programs[name], 0)
		if err != nil {
			return nil, fmt.Errorf("%s, of %s too: %s", name, o.name, l.refusal(l.spec.Programs[name], err))
		}
		defer beside.Close() // the map keeps it
		programs[member] = beside.Programs[name]
	}
	const flagLink = 1 << 13 // BPF_F_LINK
	spec := &ebpf.MapSpec{
		Name: o.name, Type: ebpf.StructOpsMap, KeySize: 4, ValueSize: o.kind.Size, MaxEntries: 1, Key: &btf.Int{Name: "int", Size: 4}, Value: o.kind,
	}
	if o.link {
		spec.Flags = flagLink
	}
	value, err := l.value(o, programs)
	if err != nil {
		return nil, err
	}
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, err
	}
	at := closers{m}
	if err := m.Put(uint32(0), value); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if o.link {
		by, err := link.AttachStructOps(link.StructOpsOptions{Map: m})
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		at = append(at, by)
	} else {
		at = append(at, ending(func() error { return m.Delete(uint32(0)) }))
	}
	return at, nil
}

// value is the entry of the map, in the kernel's layout.
func (l *loader) value(o ops, programs map[string]*ebpf.Program) ([]byte, error) {
	whole, err := l.kernelStruct("bpf_struct_ops_" + o.kind.Name)
	if err != nil {
		return nil, err
	}
	inner, at := (*btf.Struct)(nil), uint32(0)
	for _, m := range whole.Members {
		if t, ok := btf.As[*btf.Struct](m.Type); ok && t.Name == o.kind.Name {
			inner, at = t, m.Offset.Bytes()
		}
	}
	if inner == nil || uint64(at)+uint64(inner.Size) > uint64(whole.Size) {
		return nil, fmt.Errorf("this kernel's %s has no %s", whole.Name, o.kind.Name)
	}
	value := make([]byte, whole.Size)
	for _, m := range o.kind.Members {
		if err := o.member(m, inner, value[at:at+inner.Size], programs[m.Name]); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", o.name, m.Name, err)
		}
	}
	return value, nil
}

// member writes a member to its place in the kernel's structure. One that the kernel does not have is left out if it is zero.
func (o ops) member(m btf.Member, in *btf.Struct, to []byte, p *ebpf.Program) error {
	size, err := btf.Sizeof(m.Type)
	from := uint64(m.Offset.Bytes())
	if err != nil || from+uint64(size) > uint64(len(o.data)) {
		return errors.New("it is longer than its structure")
	}
	data := o.data[from : from+uint64(size)]
	i := slices.IndexFunc(in.Members, func(k btf.Member) bool { return k.Name == m.Name })
	if i < 0 {
		if p != nil || bytes.ContainsFunc(data, func(r rune) bool { return r != 0 }) {
			return fmt.Errorf("this kernel's %s has no such member", in.Name)
		}
		return nil
	}
	k := in.Members[i]
	wide, err := btf.Sizeof(k.Type)
	switch {
	case err != nil, m.BitfieldSize > 0 || k.BitfieldSize > 0, wide != size, uint64(k.Offset.Bytes())+uint64(size) > uint64(len(to)):
		return fmt.Errorf("it is not of the type that this kernel's %s has", in.Name)
	case p != nil && size == 8:
		binary.NativeEndian.PutUint64(to[k.Offset.Bytes():], uint64(p.FD()))
	default:
		copy(to[k.Offset.Bytes():], data)
	}
	return nil
}

// kernelStruct finds a structure of the kernel or of a module.
func (l *loader) kernelStruct(name string) (*btf.Struct, error) {
	kernel, err := l.kernel.Kernel()
	if err != nil {
		return nil, err
	}
	var t *btf.Struct
	if kernel.TypeByName(name, &t) == nil {
		return t, nil
	}
	modules, _ := l.kernel.Modules() // a kernel without BTF of modules has an error
	for _, m := range modules {
		if s, err := l.kernel.Module(m); err == nil && s.TypeByName(name, &t) == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("this kernel has no struct %s", name)
}
