package container

import "bytes"

// Offsets in the header of an EFI zboot image, a PE program that unpacks the kernel
// it has with it (drivers/firmware/efi/libstub/zboot-header.S).
const (
	zbootMagic = 4 // after "MZ" and two zeros
	zbootAt    = 8
	zbootLen   = 12
	zbootPack  = 24 // the compression's name
	zbootEnd   = 0x38
)

func isZboot(b []byte) bool {
	return len(b) >= zbootEnd && isPE(b) && string(b[zbootMagic:zbootMagic+4]) == "zimg"
}

// zbootPayload returns the kernel in a zboot image, and its offset in the file.
func zbootPayload(b []byte) (payload []byte, off int64, err error) {
	off, n := int64(le.Uint32(b[zbootAt:])), int64(le.Uint32(b[zbootLen:]))
	if off > int64(len(b)) || n > int64(len(b))-off {
		return nil, 0, bad(zbootAt, "the payload is cut off: %d bytes at %#x in a file of %d bytes", n, off, len(b))
	}
	payload = b[off : off+n]
	if compressionOf(payload) == nil && !IsELF(payload) && !isBzImage(payload) {
		name, _, _ := bytes.Cut(b[zbootPack:zbootEnd], []byte{0})
		return nil, 0, bad(off, "the payload, packed by %q, is wanted in a format that is known here (gzip, zstd, xz, lz4, bzip2, lzma or lzo)", name)
	}
	return payload, off, nil
}
