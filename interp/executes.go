package interp

import (
	"kprobelab/internal/cpumodel"
	"kprobelab/machine"
)

// Executes reports whether the engine executes the instruction at the start of code, in a model of
// CPUModels. All other instructions, and instructions that the model lacks, are #UD.
func Executes(model string, code []byte) (bool, error) {
	m, err := cpumodel.Named(model)
	if err != nil {
		return false, err
	}
	i, err := m.Reads.Decode(code)
	if err != nil || !m.Knows(&i) {
		return false, nil
	}
	c := cpu{e: &engine{opt: &machine.Options{}}, has: m}
	var o op
	c.translate(&o, code, new(uint64))
	return o.name == "", nil
}
