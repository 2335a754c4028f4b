package kimage

import (
	"bytes"
	"fmt"
)

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

// bzPayload returns the compressed kernel of a bzImage, its offset in the file
// and the size it unpacks to (0 if the file does not say).
func bzPayload(file string, b []byte) (payload []byte, off int64, size int, err error) {
	version := le.Uint16(b[bzVersion:])
	if version < 0x208 {
		return nil, 0, 0, badFormat(file, bzVersion, "boot protocol 2.08 or later is wanted, this image has %d.%02d", version>>8, version&0xff)
	}
	if len(b) < bzHeaderEnd {
		return nil, 0, 0, badFormat(file, int64(len(b)), "the setup header is cut off")
	}
	if version >= 0x20c && le.Uint16(b[bzXLoadFlags:])&1 == 0 {
		return nil, 0, 0, badFormat(file, bzXLoadFlags, "an x86-64 kernel is wanted, this image has no 64-bit entry")
	}
	sects := int64(b[bzSetupSects])
	if sects == 0 {
		sects = 4 // "for backwards compatibility"
	}
	off = (sects+1)*bzSector + int64(le.Uint32(b[bzPayloadOff:]))
	n := int64(le.Uint32(b[bzPayloadLen:]))
	if n < 8 || off+n > int64(len(b)) {
		return nil, 0, 0, badFormat(file, bzPayloadOff, "the payload is cut off: %d bytes at %#x in a file of %d bytes", n, off, len(b))
	}
	payload = b[off : off+n]
	size = int(le.Uint32(payload[n-4:]))
	// gzip ends with the size by itself; to the others the build appends it.
	if c := compressionOf(payload); c != nil && c.name != "gzip" {
		payload = payload[:n-4]
	}
	return payload, off, size, nil
}

// unpackBzImage returns the ELF in a bzImage.
func unpackBzImage(file string, b []byte, report func(string, int64, int64)) ([]byte, error) {
	payload, off, size, err := bzPayload(file, b)
	if err != nil {
		return nil, err
	}
	if isELF(payload) {
		return bytes.Clone(payload), nil // CONFIG_KERNEL_UNCOMPRESSED
	}
	elf, err := decompress(file, off, payload, size, report)
	if err != nil {
		return nil, err
	}
	if !isELF(elf) {
		return nil, badFormat(file, off, "the payload unpacks to %d bytes that are no ELF", len(elf))
	}
	return elf, nil
}

// describe says what a file is that is no image, for the error's text.
func describe(b []byte) string {
	switch {
	case len(b) == 0:
		return "the file is empty"
	case len(b) >= 0x3c && string(b[0x38:0x3c]) == "ARM\x64":
		return "this is an arm64 kernel image"
	case bytes.HasPrefix(b, []byte("MZ")):
		return "this is a PE file without the Linux boot header"
	case bytes.HasPrefix(b, []byte("!<arch>\n")):
		return "this is an archive"
	case isText(b):
		return "this is a text file"
	}
	return fmt.Sprintf("it begins with % x", b[:min(len(b), 8)])
}

func isText(b []byte) bool {
	b = b[:min(len(b), 512)]
	for _, c := range b {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}
