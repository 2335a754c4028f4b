package decoder

// Processor selects the reading of the few bytes that processors read differently. The zero
// Processor reads them as Intel's do, with MPX. Its extensions do not matter: instructions of Intel
// and of AMD are known to either.
type Processor struct {
	// AMD: 66 gives a near branch a target of 16 bits, 0F FF has no ModRM, LOCK before
	// mov of cr0 makes it cr8, sysenter and sysexit are #UD. APM Vol. 2, 3.1.5 and
	// Vol. 3, "JMP", "UD0", "MOV CRn", "SYSENTER".
	AMD bool
	// NoMPX: 0F 1A and 0F 1B are nops.
	NoMPX bool
}

// amd applies a row's differences on AMD's processors.
func (d *procDecoder) amd(flags *formFlags) error {
	switch f := *flags; {
	case f&intelOnly != 0:
		return ErrUnknown
	case f&bareOnAMD != 0:
		*flags &^= hasModRM
	case f&cr8 != 0 && d.lock:
		if d.i.REX&4 != 0 {
			return ErrOperands
		}
		*flags |= lockable
	}
	return nil
}
