package kimage

import "kprobelab/internal/bounded"

// ReadBootable reads the bzImage that a loader would start: the file itself, or the one in
// a unified kernel image.
func ReadBootable(path string) ([]byte, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	at := int64(0)
	for range bounded.Wraps {
		switch {
		case isBzImage(b):
			return b, nil
		case isELF(b):
			return nil, badFormat(path, at, "a vmlinuz is wanted, which a loader can start; this is a vmlinux or another ELF file")
		case isPE(b):
			b, at, err = peKernel(path, b)
		case compressionOf(b) != nil:
			b, err = decompressImage(path, at, b, nil)
		default:
			err = badFormat(path, at, "a Linux x86-64 bzImage is wanted; %s", describe(b))
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, badFormat(path, at, "a bzImage is wanted, there are only files in files")
}

// ReadUnpacked reads a file that may be packed, such as a module.
func ReadUnpacked(path string) ([]byte, error) { return readMaybePacked(path, nil) }
