package container

// Offsets in the x86 boot protocol's setup header (Documentation/arch/x86/
// boot.rst, "The Real-Mode Kernel Header").
const (
	bzSetupSects = 0x1f1
	bzBootFlag   = 0x1fe
	bzMagic      = 0x202
	bzVersion    = 0x206
	bzXLoadFlags = 0x236
	bzPayloadOff = 0x248
	bzPayloadLen = 0x24c
	bzHeaderEnd  = 0x250

	bzSector = 512
)

// isBzImage reports whether b has the boot sector of a Linux x86 kernel.
func isBzImage(b []byte) bool {
	return len(b) > bzVersion+2 && le.Uint16(b[bzBootFlag:]) == 0xaa55 && string(b[bzMagic:bzMagic+4]) == "HdrS"
}

// bzPayload returns the kernel in a bzImage, packed or not, and its offset in the
// file. What follows it, padding or a signature, is not looked at.
func bzPayload(b []byte) (payload []byte, off int64, err error) {
	version := le.Uint16(b[bzVersion:])
	if version < 0x208 {
		return nil, 0, bad(bzVersion, "boot protocol 2.08 or later is wanted, this image has %d.%02d", version>>8, version&0xff)
	}
	if len(b) < bzHeaderEnd {
		return nil, 0, bad(int64(len(b)), "the setup header is cut off")
	}
	if version >= 0x20c && le.Uint16(b[bzXLoadFlags:])&1 == 0 {
		return nil, 0, bad(bzXLoadFlags, "an x86-64 kernel is wanted, this image has no 64-bit entry")
	}
	off, n := bzPlace(b)
	if n < 8 || off+n > int64(len(b)) {
		return nil, 0, bad(bzPayloadOff, "the payload is cut off: %d bytes at %#x in a file of %d bytes", n, off, len(b))
	}
	payload = b[off : off+n]
	// gzip ends with the unpacked size by itself; to the others the build appends it.
	if c := compressionOf(payload); c != nil && c.name != "gzip" {
		payload = payload[:n-4]
	}
	return payload, off, nil
}

// bzPlace returns the payload's offset in the file and its length, in bytes.
func bzPlace(b []byte) (off, n int64) {
	sects := int64(b[bzSetupSects])
	if sects == 0 {
		sects = 4 // "for backwards compatibility"
	}
	return (sects+1)*bzSector + int64(le.Uint32(b[bzPayloadOff:])), int64(le.Uint32(b[bzPayloadLen:]))
}
