// Package cpumodel knows the processors that the engines can be: what CPUID answers, which
// extensions they execute, and how they read the few bytes in which makers differ. It knows
// no engine and no kernel.
package cpumodel

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kprobelab/decoder"
	"kprobelab/machine"
)

// cpuidText has the answers of cpuid in each model: model, leaf, subleaf, eax, ebx,
// ecx, edx, all numbers in hexadecimal. A leaf that is missing is all zero. It was
// asked of emu (internal/integration/engines, -update).
//
//go:embed cpuid.txt
var cpuidText string

// Model is a processor that a machine can be.
type Model struct {
	leaves map[[2]uint32][4]uint32
	// BMI1 and LZCNT: F3 makes bsf tzcnt, bsr lzcnt.
	BMI1, LZCNT bool
	// Reads says by which maker's rules it reads bytes in which processors differ.
	Reads decoder.Processor
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
		m.BMI1, m.LZCNT = m.Executes("BMI1"), m.Executes("LZCNT")
		m.Reads = decoder.Processor{AMD: m.amd(), NoMPX: !m.Executes("MPX")}
	}
	return all
})

// amd: its vendor reads instructions as AMD does; Hygon's processors are AMD's design.
func (m *Model) amd() bool {
	const authenticAMD, hygonGenuine = 0x68747541, 0x6f677948
	vendor := m.CPUID(0, 0)[1]
	return vendor == authenticAMD || vendor == hygonGenuine
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
		name = machine.DefaultCPUModel
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
	last := m.leaves[[2]uint32{leaf & 0x80000000, 0}][0]
	if leaf&0x7fffffff > last&0x7fffffff {
		leaf = m.leaves[[2]uint32{}][0]
	}
	if !slices.Contains([]uint32{4, 7, 0xb, 0xd, 0x14, 0x8000001d}, leaf) {
		sub = 0
	}
	return m.leaves[[2]uint32{leaf, sub}]
}

// feature is a bit of a cpuid answer: register 0 to 3 is eax to edx.
type feature struct {
	leaf     uint32
	register uint8
	bit      uint8
}

// features are the bits of the instruction set extensions that a model may lack,
// by the decoder's names.
var features = map[string]feature{
	"CMOV": {1, 3, 15}, "MMX": {1, 3, 23}, "SSE": {1, 3, 25}, "SSE2": {1, 3, 26}, "SSEMXCSR": {1, 3, 25},
	"SSE3": {1, 2, 0}, "PCLMULQDQ": {1, 2, 1}, "MONITOR": {1, 2, 3}, "SSSE3": {1, 2, 9}, "CMPXCHG16B": {1, 2, 13},
	"SSE4": {1, 2, 19}, "SSE42": {1, 2, 20}, "MOVBE": {1, 2, 22}, "POPCNT": {1, 2, 23}, "AES": {1, 2, 25},
	"XSAVE": {1, 2, 26}, "RDRAND": {1, 2, 30}, "RDTSCP": {0x80000001, 3, 27},
	"LZCNT": {0x80000001, 2, 5}, "LAHF": {0x80000001, 2, 0}, "SSE4A": {0x80000001, 2, 6},
	"RDWRFSGS": {7, 1, 0}, "BMI1": {7, 1, 3}, "BMI2": {7, 1, 8}, "SMAP": {7, 1, 20}, "ADOX_ADCX": {7, 1, 19},
	"RDSEED": {7, 1, 18}, "CLFLUSHOPT": {7, 1, 23}, "CLWB": {7, 1, 24}, "SHA": {7, 1, 29}, "RDPID": {7, 2, 22},
	"WAITPKG": {7, 2, 5}, "VTX": {1, 2, 5}, "SVM": {0x80000001, 2, 2}, "SEV_ES": {0x8000001f, 0, 3}, "SMX": {1, 2, 6}, "MPX": {7, 1, 14}, "RTM": {7, 1, 11},
	"PKU": {7, 2, 3}, "SGX": {7, 1, 2}, "INVPCID": {7, 1, 10}, "MONITORX": {0x80000001, 2, 29}, "CLZERO": {0x80000008, 1, 0},
	"SERIALIZE": {7, 3, 14}, "PTWRITE": {0x14, 1, 4}, "FSGSBASE": {7, 1, 0}, "PCONFIG": {7, 3, 18}, "AVX": {1, 2, 28}, "AVX2": {7, 1, 5},
}

// subleafFeatures are the features of subleaf 1.
var subleafFeatures = map[string]feature{"APX_F": {7, 3, 21}}

// Executes reports whether the model has an extension. One without a bit is always
// there.
func (m *Model) Executes(extension string) bool {
	if f, ok := subleafFeatures[extension]; ok {
		return m.CPUID(f.leaf, 1)[f.register]>>f.bit&1 != 0
	}
	f, ok := features[extension]
	return !ok || m.CPUID(f.leaf, 0)[f.register]>>f.bit&1 != 0
}

// Knows reports whether the model executes an instruction. Where it has not tzcnt
// and lzcnt, they are bsf and bsr.
func (m *Model) Knows(i *decoder.Inst) bool {
	return m.Executes(i.Extension()) || i.Encoding == decoder.Enc0F && (i.Opcode == 0xbc || i.Opcode == 0xbd)
}
