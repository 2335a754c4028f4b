// Package fake is a host for the tests of script languages: registers and memory that a test writes, and the types of a
// small kernel with one function.
//
// It must not know a language.
package fake

import (
	"encoding/binary"

	"github.com/cilium/ebpf/btf"

	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
)

// The addresses of the fake kernel: Function is the function f, Thing and Text are the memory of its first and its last
// argument, User is memory of a program.
const (
	Function = 0xffffffff81000000
	Thing    = 0xffff888000001000
	Next     = Thing + thingSize
	Text     = 0xffff888000002000
	User     = 0x7f0000001000
)

const thingSize = 64

// System is a hit of f(struct thing *t, int n, unsigned char c, char *s). It has only the methods that the tests need.
type System struct {
	host.System
	Registers [17]uint64
	// Memory has pages by their numbers.
	Memory map[uint64][]byte
	Hit    *host.Probe
	saved  [16]int64
}

// New is a hit with the arguments thing, -2, 0x1ff and text; thing leads to another one.
func New() *System {
	s := &System{Memory: map[uint64][]byte{}}
	s.Registers[0], s.Registers[5], s.Registers[4], s.Registers[1], s.Registers[2] = 0xdeadbeeffffffff6, Thing, 0xaaaaaaaafffffffe, 0x1ff, Text
	le := binary.LittleEndian
	for i, at := range []uint64{Thing, Next} {
		b := le.AppendUint32(nil, uint32(-5+10*i)) // n
		b = le.AppendUint32(b, 0x1d|0x6<<5)        // lo is 29, sb is -2
		b = append(b, "name\x00\x00\x00\x00"...)   // name
		b = append(b, 200, 0xfd, 0, 0, 0, 0, 0, 0) // in
		b = le.AppendUint64(b, []uint64{Next, 0}[i])
		b = le.AppendUint64(le.AppendUint64(b, 11), 22) // list
		b = le.AppendUint64(b, 0x1234_5678)             // a, b
		b = le.AppendUint64(b, []uint64{Text, User}[i]) // text
		s.Put(at, b)
	}
	s.Put(Text, []byte("a \"text\"\x00"))
	s.Put(User, []byte("program\x00"))
	return s
}

// page is the size of a page in bytes. A page is readable as a whole.
const page = 4096

// Put writes memory, and makes its pages readable.
func (s *System) Put(addr uint64, b []byte) {
	for i, c := range b {
		at := addr + uint64(i)
		if s.Memory[at/page] == nil {
			s.Memory[at/page] = make([]byte, page)
		}
		s.Memory[at/page][at%page] = c
	}
}

// Register implements script.Context.
func (s *System) Register(n int) uint64 { return s.Registers[n] }

// SetRegister implements script.Context.
func (s *System) SetRegister(n int, v uint64) bool { s.Registers[n] = v; return true }

// Read implements script.Context. The pages that Put made are readable: a program's, which lie below Thing, with
// user, the kernel's without.
func (s *System) Read(addr uint64, b []byte, user bool) bool {
	for i := range b {
		at := addr + uint64(i)
		if s.Memory[at/page] == nil || user != (addr < Thing) {
			return false
		}
		b[i] = s.Memory[at/page][at%page]
	}
	return true
}

// Write implements script.Context.
func (s *System) Write(addr uint64, b []byte, user bool) bool {
	if !s.Read(addr, make([]byte, len(b)), user) {
		return false
	}
	s.Put(addr, b)
	return true
}

// Saved implements script.Context.
func (s *System) Saved(n int) int64 { return s.saved[n] }

// SetSaved implements script.Context.
func (s *System) SetSaved(n int, v int64) { s.saved[n] = v }

// Probe implements host.System.
func (s *System) Probe() *host.Probe { return s.Hit }

// Address implements host.System.
func (s *System) Address() uint64 { return Function }

// User implements host.System.
func (s *System) User() bool { return false }

// Kernel is the kernel that has f.
func Kernel() (host.Kernel, error) {
	integer := func(name string, size uint32, e btf.IntEncoding) btf.Type {
		return &btf.Int{Name: name, Size: size, Encoding: e}
	}
	number, unsigned := integer("int", 4, btf.Signed), integer("unsigned int", 4, 0)
	char, uchar, schar, short := integer("char", 1, btf.Signed), integer("unsigned char", 1, 0), integer("signed char", 1, btf.Signed), integer("unsigned short", 2, 0)
	long := integer("unsigned long", 8, 0)
	array := func(t btf.Type, n uint32) btf.Type { return &btf.Array{Index: unsigned, Type: t, Nelems: n} }
	inner := &btf.Struct{Name: "inner", Size: 2, Members: []btf.Member{{Name: "low", Type: uchar}, {Name: "neg", Type: schar, Offset: 8}}}
	either := &btf.Union{Size: 8, Members: []btf.Member{{Name: "a", Type: unsigned}, {Name: "b", Type: short}}}
	thing := &btf.Struct{Name: "thing", Size: thingSize}
	to := &btf.Pointer{Target: thing}
	text := &btf.Pointer{Target: &btf.Const{Type: char}}
	thing.Members = []btf.Member{
		{Name: "n", Type: number}, {Name: "lo", Type: unsigned, Offset: 32, BitfieldSize: 5}, {Name: "sb", Type: number, Offset: 37, BitfieldSize: 3},
		{Name: "name", Type: array(char, 8), Offset: 64}, {Name: "in", Type: inner, Offset: 128}, {Name: "next", Type: to, Offset: 192},
		{Name: "list", Type: array(long, 2), Offset: 256}, {Type: either, Offset: 384}, {Name: "text", Type: text, Offset: 448},
	}
	f := &btf.Func{Name: "f", Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: number, Params: []btf.FuncParam{
		{Name: "t", Type: to}, {Name: "n", Type: number}, {Name: "c", Type: uchar}, {Name: "s", Type: text},
	}}}
	b, err := btf.NewBuilder([]btf.Type{f, &btf.Typedef{Name: "thing_t", Type: thing}}, nil)
	if err != nil {
		return host.Kernel{}, err
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		return host.Kernel{}, err
	}
	file, err := source.OfBTF(raw, nil, []source.Symbol{{Name: "f", Start: Function, End: Function + 64, Func: true}})
	return host.Kernel{Source: file, HZ: 250, Functions: func(pattern string) []host.Function {
		if pattern == "f" {
			return []host.Function{{Name: "f", Addr: Function}}
		}
		return nil
	}}, err
}
