// Package cpumodel knows which instructions a processor executes: by what CPUID answers in
// the models that the engines can be, or by the flags that a kernel has of the processor it
// runs on; and how it reads the few bytes in which makers differ. It knows no engine and no
// kernel.
package cpumodel

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// cpuidText has the answers of cpuid in each model: model, leaf, subleaf, eax, ebx,
// ecx, edx, all numbers in hexadecimal. A leaf that is missing is all zero. It was
// asked of emu (internal/integration/engines, -update).
//
//go:embed cpuid.txt
var cpuidText string

// Default is the model that a machine emulates by default. (Unicorn's own default
// differs between its releases.)
const Default = "qemu64"

// Model is a processor that a machine can be.
type Model struct {
	Processor
	leaves map[[2]uint32][4]uint32
	// BMI1 and LZCNT: F3 makes bsf tzcnt, bsr lzcnt.
	BMI1, LZCNT bool
}

var models = sync.OnceValue(func() map[string]*Model {
	all := map[string]*Model{}
	for line := range strings.Lines(cpuidText) {
		var name string
		var leaf, sub uint32
		var r [4]uint32
		if n, err := fmt.Sscanf(line, "%s %x %x %x %x %x %x", &name, &leaf, &sub, &r[0], &r[1], &r[2], &r[3]); n != 7 {
			panic(fmt.Sprintf("BUG: cpuid.txt: %q: %v", line, err))
		}
		if all[name] == nil {
			all[name] = &Model{leaves: map[[2]uint32][4]uint32{}}
		}
		all[name].leaves[[2]uint32{leaf, sub}] = r
	}
	for _, m := range all {
		m.Processor = newProcessor(m.amd(), func(e *extension) bool { return e.byCPUID(m) })
		m.BMI1, m.LZCNT = m.Executes("BMI1"), m.Executes("LZCNT")
	}
	return all
})

// amd: its vendor reads instructions as AMD does.
func (m *Model) amd() bool {
	v := m.CPUID(0, 0)
	var name []byte
	for _, r := range []uint32{v[1], v[3], v[2]} {
		name = binary.LittleEndian.AppendUint32(name, r)
	}
	return readsAsAMD(string(name))
}

// Names lists the models, sorted.
func Names() []string {
	var list []string
	for name := range models() {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Named is the model of that name; "" is the default one.
func Named(name string) (*Model, error) {
	if name == "" {
		name = Default
	}
	m := models()[strings.ToLower(name)]
	if m == nil {
		return nil, fmt.Errorf("cpu model %q is not one of %s", name, strings.Join(Names(), ", "))
	}
	return m, nil
}

// CPUID returns the instruction's answer. A leaf past the last is the last basic
// one (SDM Vol. 2, "CPUID"). The two of hypervisors are there, and say nothing.
func (m *Model) CPUID(leaf, sub uint32) [4]uint32 {
	const hypervisor = 0x40000000
	if leaf&^1 == hypervisor {
		return [4]uint32{}
	}
	if !m.has(leaf) {
		leaf = m.leaves[[2]uint32{}][0]
	}
	if !slices.Contains([]uint32{4, 7, 0xb, 0xd, 0x12, 0x14, 0x19, 0x1e, 0x24, 0x8000001d}, leaf) {
		sub = 0
	}
	return m.leaves[[2]uint32{leaf, sub}]
}

// has reports whether a leaf is there: the first of its range names the last.
func (m *Model) has(leaf uint32) bool {
	return leaf <= m.leaves[[2]uint32{leaf & 0xffff0000, 0}][0]
}
