package machine_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	. "kprobelab/machine"
)

// privileged are instructions by which kernel code changes the processor
// itself, reads it, or leaves the mode that it is in.
var privileged = []string{
	"\x0f\x20\xc0", "\x0f\x22\xc0", "\x0f\x20\xd0", "\x0f\x22\xd0", "\x0f\x22\xd8", "\x0f\x20\xe0", "\x0f\x22\xe0",
	"\x44\x0f\x22\xc0", "\x44\x0f\x20\xc0", "\x0f\x21\xf8", "\x0f\x23\xc0", "\x0f\x23\xc8", "\x0f\x23\xf0", // cr, dr
	"\x0f\x32", "\x0f\x30", "\x0f\x31", "\x0f\x33", "\x0f\xa2", "\x0f\x01\xf9", "\x0f\x01\xd0", "\x0f\x01\xd1", // msr, cpuid, xcr
	"\x0f\x01\x10", "\x0f\x01\x18", "\x0f\x01\x00", "\x0f\x01\x08", "\x0f\x01\x20", "\x0f\x01\x30", "\x0f\x01\x38", // lgdt…
	"\x0f\x00\xd0", "\x0f\x00\xd8", "\x0f\x00\xc8", "\x0f\x00\xe0", "\x0f\x02\xc0", "\x0f\x03\xc0", // lldt, ltr, verr, lar, lsl
	"\x0f\x06", "\x0f\x08", "\x0f\x09", "\x0f\x01\xf8", "\x0f\xaa", "\x0f\x05", "\x0f\x07", "\x48\x0f\x07", "\x0f\x34", "\x0f\x35",
	"\x0f\x01\xd8", "\x0f\x01\xd9", "\x0f\x01\xda", "\x0f\x01\xdb", "\x0f\x01\xdc", "\x0f\x01\xdd", "\x0f\x01\xde", "\x0f\x01\xdf", // svm
	"\x0f\x01\xc1", "\x0f\x01\xc2", "\x0f\x01\xc8", "\x0f\x01\xc9", "\x0f\x01\xca", "\x0f\x01\xcb", "\x66\x0f\x38\x82\x00", // vmx, monitor, smap, invpcid
	"\x8e\xd0", "\x8e\xd8", "\x8e\xe0", "\x8e\xe8", "\x0f\xa1", "\x0f\xa9", "\x0f\xb4\x20", "\xcb", "\x48\xcb", "\xcf", "\x48\xcf", // segments
	"\x48\xca\x08\x00", "\xff\x28", "\xff\x18", "\x48\xff\x28", "\xcd\x03", "\xcd\x80", "\xcd\x0e", "\xcc", "\xf1", "\xce", "\x0f\x0b",
	"\x9d", "\x66\x9d", "\xfa", "\xfb", "\xf4", "\xec", "\xee", "\x6c", "\x6e", "\xf3\x6c", "\xf3\x6e", "\xe4\xe0", "\xe6\xe1", "\xe6\xe4", // flags, ports
	"\x0f\xae\x00", "\x0f\xae\x08", "\x0f\xae\x10", "\x0f\xae\x20", "\x0f\xae\x28", "\x0f\xae\x30", "\x0f\xc7\x18", "\xdb\xe3", "\x9b\xdd\x30", "\xdd\x20",
	"\xf3\xaa", "\xf3\xa4", "\xf3\xa6", "\xf2\xae", "\xfd", "\xf3\x48\xab", "\xc8\xff\xff\x1f", "\xc9", "\xf3\x0f\xae\xd8", "\xf3\x0f\xae\xc0",
	"\x0f\xc7\xf0", "\x0f\xc7\xf8", "\x0f\x0d\x08", "\x0f\x18\x00", "\xe2\xfe", "\xff\xe0", "\xff\xd0", "\xc3", "\x0f\x01\xee", "\x0f\x01\xef",
}

// privilegedCode returns a few privileged instructions, with prepared registers for some.
func privilegedCode(rng *rand.Rand) []byte {
	var code []byte
	for range 1 + rng.IntN(5) {
		for range rng.IntN(4) {
			code = append(code, 0x48, 0xb8|byte(rng.IntN(8))) // mov $imm64,%reg
			code = binary.LittleEndian.AppendUint64(code, privilegedWord(rng))
		}
		if rng.IntN(4) == 0 {
			code = append(code, 0x50|byte(rng.IntN(8)), 0x50|byte(rng.IntN(8)), 0x50|byte(rng.IntN(8)))
		}
		code = append(code, privileged[rng.IntN(len(privileged))]...)
	}
	return code
}

func privilegedWord(rng *rand.Rand) uint64 {
	msr := []uint64{0xc0000080, 0xc0000081, 0xc0000082, 0xc0000084, 0xc0000100, 0xc0000101, 0xc0000102, 0xc0010117, 0x1b, 0x174, 0x175, 0x176, 0x277, 0x10, 0xda0, 0xc0000103}
	switch rng.IntN(7) {
	case 0:
		return msr[rng.IntN(len(msr))]
	case 1:
		return 1 << rng.IntN(64)
	case 2:
		return uint64(dataBase+PageSize) + uint64(rng.IntN(2*PageSize))
	case 3:
		return uint64(textBase) + uint64(rng.IntN(128))
	case 4:
		return 0x80050033 ^ 1<<rng.IntN(32)
	case 5:
		return uint64(rng.IntN(256))
	}
	return rng.Uint64() >> rng.IntN(64)
}

// Whatever kernel code does to the processor, the process lives, every run ends,
// and other machines work.
func TestPrivilegedCode(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 100
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range n {
		runBytes(t, privilegedCode(rng))
	}
}
