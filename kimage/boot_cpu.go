package kimage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// feature is a CPU feature as alternatives name it: word * 32 + bit
// (cpufeatures.h). Words that CPUID fills are the same in every release;
// the kernel's own words moved now and then, and carry their release here.
type feature uint16

func feat(word, bit feature) feature { return word*32 + bit }

// Features that the boot-time patches ask for by name.
const (
	featAlways   feature = 3*32 + 21
	featRethunk  feature = 11*32 + 14
	featUnret    feature = 11*32 + 15
	featSRSO     feature = 11*32 + 24
	featLfence61 feature = 3*32 + 18
	featLfence63 feature = 20*32 + 2
)

// cpuModel is the processor that the boot-time text is made for.
type cpuModel struct {
	name string
	has  map[feature]bool
	// k8Nops: to 5.12 this processor's long nops are made of 66 prefixes
	// (AMD up to family 15), not of NOPL.
	k8Nops bool
}

// featureNames are the features that "+name" and "-name" can change, by their
// names in /proc/cpuinfo.
var featureNames = map[string]feature{
	"clflush": feat(0, 19), "self-snoop": feat(0, 27), "nx": feat(1, 20), "rdtscp": feat(1, 27),
	"rep_good": feat(3, 16), "cx16": feat(4, 13), "pcid": feat(4, 17), "popcnt": feat(4, 23),
	"xsave": feat(4, 26), "rdrand": feat(4, 30), "hypervisor": feat(4, 31), "3dnowprefetch": feat(6, 8),
	"vmmcall": feat(8, 15), "fsgsbase": feat(9, 0), "erms": feat(9, 9), "invpcid": feat(9, 10),
	"rdseed": feat(9, 18), "smap": feat(9, 20), "clflushopt": feat(9, 23), "clwb": feat(9, 24),
	"xsaveopt": feat(10, 0), "xsavec": feat(10, 1), "xsaves": feat(10, 3), "la57": feat(16, 16),
	"fsrm": feat(18, 4),
}

// qemu64 is QEMU's default processor as the kernel sees it: what CPUID says,
// and what the kernel derives for an AMD processor of family 15 that it knows
// no microcode of (retpolines without return thunks).
func qemu64() cpuModel {
	m := cpuModel{name: "qemu64", has: make(map[feature]bool), k8Nops: true}
	for word, bits := range map[feature][]feature{
		0:  {0, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 19, 23, 24, 25, 26, 28},
		1:  {11, 20, 29},
		3:  {4, 14, 16, 20, 21, 25, 26},
		4:  {0, 13, 31},
		6:  {0, 1, 2, 8},
		7:  {19},    // return stack filled at a context switch
		8:  {15},    // VMMCALL is the hypercall
		11: {5, 12}, // fence after swapgs in kernel entries; retpolines
		// Bugs follow the 22 words: fxsave leak, sysret ss, null segment, swapgs fence.
		22: {6, 8, 10, 11},
	} {
		for _, b := range bits {
			m.has[feat(word, b)] = true
		}
	}
	return m
}

// epyc is QEMU's EPYC (a first-generation one) as the kernel sees it under
// emulation: besides its features, the mitigations that the kernel chooses for
// it, of which returns through a thunk change most of the text.
func epyc() cpuModel {
	m := qemu64()
	m.name, m.k8Nops = "EPYC", false
	for word, bits := range map[feature][]feature{
		1:  {26, 27},
		4:  {23, 26, 30},
		7:  {24, 28},
		9:  {0, 20, 23},
		10: {0},
		11: {14, 15, 24}, // return thunk, untrained return, safe return (SRSO)
		23: {1},          // the divider's leak
	} {
		for _, b := range bits {
			m.has[feat(word, b)] = true
		}
	}
	m.has[feat(22, 11)] = false
	return m
}

// cpuModels are the processors known by name.
var cpuModels = map[string]func() cpuModel{"qemu64": qemu64, "EPYC": epyc}

// CPUModels lists the names that Options.CPU takes, sorted.
func CPUModels() []string { return slices.Sorted(maps.Keys(cpuModels)) }

// parseCPU reads "MODEL[,+feature][,-feature]"; empty means qemu64.
func parseCPU(s string) (cpuModel, error) {
	name, rest, _ := strings.Cut(s, ",")
	if name == "" {
		name = "qemu64"
	}
	build, ok := cpuModels[name]
	if !ok {
		return cpuModel{}, fmt.Errorf("CPU model %q is not known; known: %s", name, strings.Join(CPUModels(), ", "))
	}
	m := build()
	for _, f := range strings.Split(rest, ",") {
		if f == "" {
			continue
		}
		number, ok := featureNames[f[1:]]
		if !ok || (f[0] != '+' && f[0] != '-') {
			return cpuModel{}, fmt.Errorf("CPU feature %q is not known; write +name or -name with one of: %s",
				f, strings.Join(slices.Sorted(maps.Keys(featureNames)), ", "))
		}
		m.has[number] = f[0] == '+'
	}
	return m, nil
}
