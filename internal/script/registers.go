package script

import "kprobelab/x86"

// Flags is the number of the flags register: the next after DWARF's.
const Flags = len(x86.DWARF)

// Params are the registers of a function's parameters, by number.
var Params = func() (list [x86.RegArgs]int) {
	for i, name := range x86.Params {
		list[i], _ = x86.DWARFNumber(name)
	}
	return list
}()

// RegisterNumber is the number of a register in scripts: DWARF's, and Flags.
func RegisterNumber(name string) (n int, ok bool) {
	if name == "flags" {
		return Flags, true
	}
	return x86.DWARFNumber(name)
}
