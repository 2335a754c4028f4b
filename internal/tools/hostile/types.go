//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// BTF's kinds (linux/btf.h).
const (
	btfInt   = 1
	btfPtr   = 2
	btfArray = 3
	btfFunc  = 12
	btfProto = 13
)

// drawnTypes is BTF with a function gcd whose parameters have types that are drawn: they lead to themselves, to each other,
// and on for ever. Some of it is damaged.
func drawnTypes(rng *rand.Rand) []byte {
	const strings = "\x00gcd\x00p\x00s\x00a\x00z\x00"
	names := []uint32{0, 5, 7, 9, 11}
	n := 1 << rng.IntN(14)
	var types []uint32
	other := func() uint32 {
		switch rng.IntN(4) {
		case 0:
			return 3 + uint32(rng.IntN(3)) // mostly the first ones
		case 1:
			return uint32(rng.IntN(n + 4))
		}
		return uint32(min(3+len(types)/3, n+3)) // about the next one
	}
	params := 1 + rng.IntN(3)
	if rng.IntN(8) == 0 {
		params = rng.IntN(1 << 16)
	}
	types = append(types, 1, btfFunc<<24|1, 2, 0, uint32(btfProto<<24|params), 3)
	for range params {
		types = append(types, 5, 3)
	}
	one := []uint32{btfPtr, btfPtr, 8, 9, 10, 11, 18, btfArray, 4, 4, 5, btfProto, btfInt, 6}
	only := uint32(0)
	if rng.IntN(3) == 0 {
		only = one[rng.IntN(len(one))] // a chain
	}
	for range n {
		kind := one[rng.IntN(len(one))]
		if only != 0 {
			kind = only
		}
		name := names[rng.IntN(len(names))]
		switch kind {
		case btfInt:
			types = append(types, name, kind<<24, 4, 32)
		case btfArray:
			types = append(types, 0, kind<<24, 0, other(), other(), uint32(odd[rng.IntN(len(odd))]))
		case 4, 5, 6, btfProto:
			parts := rng.IntN(4)
			if rng.IntN(200) == 0 {
				parts = rng.IntN(1 << 16)
			}
			types = append(types, name, kind<<24|uint32(parts), []uint32{0, 8, 16, 0xffffffff}[rng.IntN(4)])
			for i := range parts {
				types = append(types, []uint32{0, name, 9}[rng.IntN(3)], other())
				if kind == 4 || kind == 5 {
					types = append(types, uint32(64*i))
				}
			}
		default:
			types = append(types, name, kind<<24, other())
		}
	}
	le := binary.LittleEndian
	b := append(le.AppendUint16(nil, 0xeb9f), 1, 0)
	for _, w := range []uint32{24, 0, uint32(4 * len(types)), uint32(4 * len(types)), uint32(len(strings))} {
		b = le.AppendUint32(b, w)
	}
	for _, w := range types {
		b = le.AppendUint32(b, w)
	}
	b = append(b, strings...)
	if rng.IntN(4) == 0 {
		b = mutate(rng, b)
	}
	return b
}

// withBTF is an ELF whose section .BTF has other bytes: at its end.
func withBTF(image, btf []byte) []byte {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return image
	}
	at := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Name == ".BTF" })
	if at < 0 {
		return image
	}
	b := append(slices.Clone(image), btf...)
	le := binary.LittleEndian
	const header, offset, size = 64, 24, 32
	table := le.Uint64(image[40:]) + uint64(at)*header
	le.PutUint64(b[table+offset:], uint64(len(image)))
	le.PutUint64(b[table+size:], uint64(len(btf)))
	return b
}

// oddTypes asks all that one can ask of types, of BTF.
func oddTypes(c *tryOut) {
	c.askTypes(c.file("types.elf", withBTF(c.seeds.guest, drawnTypes(c.rng))))
}

// askTypes asks of an image's types in every command that reads them.
func (c *tryOut) askTypes(image string) {
	call := "gcd(buf[64], 18)"
	all := [][]string{
		{"probe", image, "-V", "gcd"}, {"probe", image, "-D", "gcd p->a"}, {"probe", image, "-D", "gcd p->z.a[3]"},
		{"stap", "-r", image, "-L", `kernel.function("gcd")`}, {"bpftrace", "-r", image, "-lv", "fentry:gcd"},
		{"run", image, "-e", "p:x gcd a=p->a b=$arg1", "--call", call}, {"run", image, "--kprobe", "gcd", "--call", call},
		{"stap", "-r", image, "-e", `probe kernel.function("gcd") { println($$parms$$) println($p$) println(@cast($p, "s")->z) }`, "--call", call},
		{"stap", "-r", image, "-e", `probe kernel.function("gcd").return { println($$return$$, $p->a[2]) }`, "--call", call},
		{"bpftrace", "-r", image, "-e", `fentry:gcd { print(args); print(args.p); print(*args.p); @[args.p] = 1; }`, "--call", call},
		{"bpftrace", "-r", image, "-e", `kprobe:gcd { print(*(struct s *)arg0); @a = *(struct s *)arg0; print(((struct s *)arg0)->a); print(sizeof(struct s)); }`, "--call", call},
		{"probe", image, "-L", "gcd"}, {"probe", image, "-F"}, {"stap", "-r", image, "-L", `kernel.function("gcd").inline`}, {"stap", "-r", image, "-L", `kernel.statement("gcd@*:*")`},
		{"info", image}, {"explain", image, "gcd"}, {"check", c.file("points", []byte("gcd\np:g/e gcd a=p->a\n")), image}, {"pack", "-o", "packed", image},
	}
	for range 4 {
		args := slices.Clone(all[c.rng.IntN(len(all))])
		args = append(args[:1], append([]string{"--timeout", "20s", "--max-output", "1000000"}, args[1:]...)...)
		c.exits(255).run(nil, args...)
	}
}
