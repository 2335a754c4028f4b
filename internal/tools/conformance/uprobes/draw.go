package uprobes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"kprobelab/decoder"
	"kprobelab/profile"
	"kprobelab/uprobes"
)

const pageSize = 4096

// corpus is the file that is asked about.
type corpus struct {
	code []byte
	// instructions holds the offset of each instruction's first occurrence in the programs. stands holds,
	// by this offset, the number of boundaries with the same instruction.
	instructions []uint32
	stands       map[uint32]int
	seen         map[instruction]uint32
	boundaries   int
	inside       []uint32 // places that are no boundaries
	random       []uint32
}

// instruction holds the facts that a kernel's decision depends on: the bytes, and whether they cross a page's end.
type instruction struct {
	bytes   string
	crosses bool
}

// bound counts a boundary with the first one that has its instruction; n is its length.
func (c *corpus) bound(at uint32, n int) {
	c.boundaries++
	i := instruction{string(c.code[at:min(len(c.code), int(at)+n)]), at/pageSize != (at+uint32(n)-1)/pageSize}
	first, again := c.seen[i]
	if !again {
		first = at
		c.seen[i] = at
		c.instructions = append(c.instructions, at)
	}
	c.stands[first]++
}

// add appends a program with the boundaries of its executable sections.
func (c *corpus) add(name string, rules *profile.Config) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	at, before, known := len(c.code), c.boundaries, len(c.instructions)
	c.code = append(c.code, b...)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS {
			continue
		}
		code := b[s.Offset:min(uint64(len(b)), s.Offset+s.Size)]
		for i := 0; i < len(code); {
			place := uint32(at) + uint32(s.Offset) + uint32(i)
			n, decides := 1, uprobes.InsnSize
			if k, err := decoder.DecodeKernel(code[i:], &rules.Decoder); err == nil {
				n, decides = k.Length, k.Length
			}
			c.bound(place, decides)
			for inside := 1; inside < n; inside++ {
				c.inside = append(c.inside, place+uint32(inside))
			}
			i += n
		}
	}
	c.code = append(c.code, make([]byte, -len(c.code)&(pageSize-1))...)
	fmt.Printf("%s: %d boundaries, %d more instructions\n", name, c.boundaries-before, len(c.instructions)-known)
	return nil
}

// invent appends random instructions: samples of every row of the decoder's tables, with and without a prefix,
// and random bytes. Some end at a page's end, or past it.
func (c *corpus) invent(n int, r *rand.Rand) {
	var samples [][]byte
	for e := decoder.EncPrimary; e < decoder.EncNone; e++ {
		samples = append(samples, decoder.Samples(e, 60)...)
	}
	prefixes := []byte{0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x65, 0xf0, 0x48, 0x41, 0x44, 0x4d}
	likely := [][]byte{{0x0f, 0x1f}, {0x90}, {0x66, 0x2e, 0x0f, 0x1f, 0x84}, {0x0f, 0x1f, 0x44, 0, 0}, {0x48, 0x8d}, {0x48, 0x89}, {0xeb}, {0xff}, {0x8e}, {0x49, 0x8b, 0x05}}
	for range n {
		b := make([]byte, uprobes.InsnSize)
		for i := range b {
			if r.IntN(3) > 0 {
				b[i] = byte(r.Uint32())
			}
		}
		switch r.IntN(4) {
		case 0, 1:
			var prefix []byte
			if r.IntN(2) == 0 {
				prefix = prefixes[r.IntN(len(prefixes)):][:1]
			}
			b = append(append(slices.Clone(prefix), samples[r.IntN(len(samples))]...), b...)[:uprobes.InsnSize]
		case 2:
			copy(b, likely[r.IntN(len(likely))])
		}
		if r.IntN(8) == 0 { // at odds with the end of a page
			c.code = append(c.code, make([]byte, (pageSize-1-r.IntN(uprobes.InsnSize)-len(c.code))&(pageSize-1))...)
		}
		c.random = append(c.random, uint32(len(c.code)))
		c.code = append(c.code, b...)
	}
	c.code = append(c.code, make([]byte, pageSize)...)
}

// drawn is n of a list, all for 0.
func drawn(list []uint32, n int, r *rand.Rand) []uint32 {
	if n == 0 || n >= len(list) {
		return list
	}
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}

func numbers(list []uint32) (b []byte) {
	for _, n := range list {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// write writes code, list, stands, which says for how many boundaries each place of the list is asked, and where all
// instructions are the first time.
func (c *corpus) write(dir string, places, random int, r *rand.Rand, w io.Writer) error {
	chosen := drawn(c.instructions, places, r)
	inside := drawn(c.inside, max(1, random), r)
	stand := 0
	for _, at := range chosen {
		stand += c.stands[at]
	}
	fmt.Fprintf(w, "%d of %d instructions, which are at %d of %d boundaries; %d places inside instructions, %d random instructions\n",
		len(chosen), len(c.instructions), stand, c.boundaries, len(inside), len(c.random))
	list := slices.Concat(chosen, inside, c.random)
	slices.Sort(list)
	var stands []uint32
	for _, at := range list {
		stands = append(stands, uint32(c.stands[at]))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		"code": c.code, "list": numbers(list), "stands": numbers(stands), "instructions": numbers(c.instructions),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
