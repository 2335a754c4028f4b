package decoder

import "kprobelab/x86"

// Text disassembles the instruction at the start of b, which is at that address: one line in GNU
// syntax, "(bad)" for bytes that are no instruction.
func Text(b []byte, at x86.Addr) string {
	i, err := Decode(b)
	if err != nil {
		return "(bad)"
	}
	return i.Text(at)
}

// signedAt is a little-endian signed number of up to 8 bytes, 0 for none.
func signedAt(b []byte) int64 {
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(v<<shift) >> shift
}
