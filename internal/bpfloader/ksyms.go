//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// Kinds of types (include/uapi/linux/btf.h).
const (
	kindVariable, kindSection = 14, 15
)

// bytesAfter are the bytes that follow a type of a kind, and those for each of its members.
var bytesAfter = map[uint32][2]int{1: {4, 0}, 3: {12, 0}, 4: {0, 12}, 5: {0, 12}, 6: {0, 8}, 13: {0, 8}, 14: {4, 0}, 15: {0, 12}, 17: {4, 0}, 19: {0, 12}}

// modifiers are typedef, volatile, const, restrict, and type tags.
var modifiers = []uint32{8, 9, 10, 11, 18}

// withoutTypes makes variables of the kernel (extern const struct rq runqueues __ksym) void, and returns the names of those with a type:
// cilium/ebpf 0.22 does not read an object with one. A damaged object stays as it is.
func withoutTypes(object []byte) (void []byte, typed []string) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil || f.Data != elf.ELFDATA2LSB {
		return object, nil
	}
	defer f.Close()
	s := f.Section(".BTF")
	const head, least = 24, 12
	if s == nil || s.Type != elf.SHT_PROGBITS || s.Offset > uint64(len(object)) || s.Size > uint64(len(object))-s.Offset || s.Size < head {
		return object, nil
	}
	u32 := binary.LittleEndian.Uint32
	void = slices.Clone(object)
	data := void[s.Offset : s.Offset+s.Size]
	begin, size, names := uint64(u32(data[4:])), uint64(u32(data[12:])), uint64(u32(data[16:]))
	names += begin
	begin += uint64(u32(data[8:]))
	if begin+size > s.Size {
		return object, nil
	}
	types := [][]byte{nil} // the first is void
	for rest := data[begin : begin+size]; len(rest) >= least; {
		extra := bytesAfter[kindOf(rest)]
		n := least + extra[0] + extra[1]*int(u32(rest[4:])&0xffff)
		if n > len(rest) {
			return object, nil
		}
		types, rest = append(types, rest[:n]), rest[n:]
	}
	text := func(b []byte) string {
		at := names + uint64(u32(b))
		if at >= s.Size {
			return ""
		}
		name, _, _ := bytes.Cut(data[at:], []byte{0})
		return string(name)
	}
	for _, t := range types[1:] {
		if kindOf(t) != kindSection || text(t) != ".ksyms" {
			continue
		}
		for members := t[least:]; len(members) >= least; members = members[least:] {
			id := u32(members)
			if uint64(id) >= uint64(len(types)) || kindOf(types[id]) != kindVariable {
				continue
			}
			if !isVoid(types, u32(types[id][8:])) {
				typed = append(typed, text(types[id]))
			}
			binary.LittleEndian.PutUint32(types[id][8:], 0)
		}
	}
	return void, typed
}

func kindOf(t []byte) uint32 {
	if t == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(t[4:]) >> 24 & 0x1f
}

// isVoid reports whether a type is void, const void and the like.
func isVoid(types [][]byte, id uint32) bool {
	for range types {
		if id == 0 || uint64(id) >= uint64(len(types)) {
			return id == 0
		}
		if !slices.Contains(modifiers, kindOf(types[id])) {
			return false
		}
		id = binary.LittleEndian.Uint32(types[id][8:])
	}
	return false
}

// errNoVariable: the kernel's types have no such variable.
var errNoVariable = errors.New("this kernel has no variable")

// typedVariables puts the kernel's numbers of typed variables into a program (BPF_PSEUDO_BTF_ID). A weak one that is not there is 0.
func (l *loader) typedVariables(list asm.Instructions) error {
	for i := range list {
		old := &list[i]
		if name := old.Reference(); name == "" || !old.OpCode.IsDWordLoad() || !slices.Contains(l.typed, name) {
			continue
		}
		id, err := l.variable(old.Reference())
		if err != nil && !slices.Contains(l.weak, old.Reference()) {
			return err
		}
		ins := asm.LoadImm(old.Dst, int64(id), asm.DWord).WithSymbol(old.Symbol())
		if id != 0 {
			ins.Src = pseudoType
		}
		if old.Source() != nil {
			ins = ins.WithSource(old.Source())
		}
		if f := btf.FuncMetadata(old); f != nil {
			ins = btf.WithFuncMetadata(ins, f)
		}
		*old = ins
	}
	return nil
}

const pseudoType = 3 // BPF_PSEUDO_BTF_ID

func (l *loader) variable(name string) (btf.TypeID, error) {
	kernel, err := l.kernel.Kernel()
	if err != nil {
		return 0, err
	}
	var v *btf.Var
	if err := kernel.TypeByName(name, &v); err != nil {
		return 0, fmt.Errorf("%w %s (extern __ksym, with a type)", errNoVariable, name)
	}
	return kernel.TypeID(v)
}

// weakNames are an object's weak symbols that it does not define.
func weakNames(object []byte) (names []string) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil
	}
	defer f.Close()
	symbols, _ := f.Symbols() // one without has none
	for _, s := range symbols {
		if elf.ST_BIND(s.Info) == elf.STB_WEAK && s.Section == elf.SHN_UNDEF {
			names = append(names, s.Name)
		}
	}
	return names
}
