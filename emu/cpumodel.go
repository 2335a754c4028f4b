//go:build unicorn && cgo && linux && amd64

package emu

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/machine"
)

// cpuModels are the engine's models that know 64-bit mode: QEMU's name, and the
// number in the enum uc_cpu_x86.
var cpuModels = map[string]int{
	"qemu64": 0, "phenom": 1, "core2duo": 2, "kvm64": 3, "conroe": 13,
	"penryn": 14, "nehalem": 15, "westmere": 16, "sandybridge": 17,
	"ivybridge": 18, "haswell": 19, "broadwell": 20, "skylake-client": 21,
	"skylake-server": 22, "cascadelake-server": 23, "cooperlake": 24,
	"icelake-client": 25, "icelake-server": 26, "denverton": 27,
	"snowridge": 28, "knightsmill": 29, "opteron_g1": 30, "opteron_g2": 31,
	"opteron_g3": 32, "opteron_g4": 33, "opteron_g5": 34, "epyc": 35,
	"dhyana": 36, "epyc-rome": 37,
}

// CPUModels lists the models that a machine can emulate, sorted.
func CPUModels() []string {
	list := make([]string, 0, len(cpuModels))
	for name := range cpuModels {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func cpuModel(name string) (int, error) {
	if name == "" {
		name = machine.DefaultCPUModel
	}
	n, ok := cpuModels[strings.ToLower(name)]
	if !ok {
		return 0, fmt.Errorf("cpu model %q is not one of %s", name, strings.Join(CPUModels(), ", "))
	}
	return n, nil
}
