package container

import "kprobelab/internal/bounded"

// Bootable returns the bzImage that a loader would start: the file itself, or the one in a unified kernel image. The error
// is an *Error.
func Bootable(b []byte) ([]byte, error) {
	at := int64(0)
	for range bounded.Wraps {
		var err error
		switch {
		case isBzImage(b):
			return b, nil
		case IsELF(b):
			return nil, bad(at, "a vmlinuz is wanted, which a loader can start; this is a vmlinux or another ELF file")
		case isPE(b):
			b, at, err = peKernel(b)
		case Packed(b):
			b, err = decompressImage(at, b, nil)
		default:
			err = bad(at, "a Linux x86-64 bzImage is wanted; %s", describe(b))
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, bad(at, "a bzImage is wanted, there are only files in files")
}
