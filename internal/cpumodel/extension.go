package cpumodel

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// extensionsText says by what a processor has each extension.
//
//go:embed extensions.txt
var extensionsText string

// extension is by what a processor has an instruction set extension. Both lists are
// needed whole; never is one that no answer or flag says.
type extension struct {
	bits                  []feature
	flags                 [][]string // of each, one
	neverBits, neverFlags bool
}

// feature is a part of a cpuid answer: a bit, or with least the register's low byte,
// which has to be that at least. Registers 0 to 3 are eax to edx.
type feature struct {
	leaf, sub uint32
	register  int
	bit       int
	least     uint32
}

// extensions are the rows of extensions.txt by name, a mnemonic's with = before it.
var extensions = sync.OnceValue(func() map[string]*extension {
	all := map[string]*extension{}
	for line := range strings.Lines(extensionsText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, " : ")
		if len(columns) != 3 {
			panic("BUG: extensions.txt: " + line)
		}
		e := &extension{neverBits: columns[1] == "none", neverFlags: columns[2] == "none"}
		for _, word := range needed(columns[1]) {
			e.bits = append(e.bits, parseFeature(word))
		}
		for _, word := range needed(columns[2]) {
			e.flags = append(e.flags, strings.Split(word, "|"))
		}
		for _, name := range strings.Fields(columns[0]) {
			if all[name] != nil {
				panic("BUG: extensions.txt has " + name + " twice")
			}
			all[name] = e
		}
	}
	return all
})

// needed are the parts of a column.
func needed(column string) []string {
	if column == "-" || column == "none" {
		return nil
	}
	return strings.Split(column, "+")
}

func parseFeature(word string) feature {
	var f feature
	place, least, ok := strings.Cut(word, ">=")
	parts := strings.Split(place, ".")
	if ok {
		parts = append(parts, "0")
		f.least = uint32(number(least, 10))
	}
	if len(parts) != 4 {
		panic("BUG: extensions.txt: " + word)
	}
	f.leaf, f.sub, f.bit = uint32(number(parts[0], 16)), uint32(number(parts[1], 16)), int(number(parts[3], 10))
	f.register = slices.Index([]string{"eax", "ebx", "ecx", "edx"}, parts[2])
	return f
}

func number(s string, base int) uint64 {
	n, err := strconv.ParseUint(s, base, 32)
	if err != nil {
		panic(fmt.Sprintf("BUG: extensions.txt: %q: %v", s, err))
	}
	return n
}

// always: every processor has it.
func (e *extension) always() bool {
	return len(e.bits)+len(e.flags) == 0 && !e.neverBits && !e.neverFlags
}

// byCPUID reports whether a model's answers have it. A leaf that is not there says no,
// though cpuid answers with another one's numbers.
func (e *extension) byCPUID(m *Model) bool {
	for _, f := range e.bits {
		if !m.has(f.leaf) {
			return false
		}
		r := m.CPUID(f.leaf, f.sub)[f.register]
		if f.least > 0 && r&0xff < f.least || f.least == 0 && r>>f.bit&1 == 0 {
			return false
		}
	}
	return !e.neverBits
}

// byFlags reports whether a kernel's flags have it.
func (e *extension) byFlags(has func(flag string) bool) bool {
	for _, either := range e.flags {
		if !slices.ContainsFunc(either, has) {
			return false
		}
	}
	return !e.neverFlags
}

// Flags lists the kernel's flags by which a processor has an extension, sorted.
func Flags() []string {
	var list []string
	for _, e := range extensions() {
		list = append(list, slices.Concat(e.flags...)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
