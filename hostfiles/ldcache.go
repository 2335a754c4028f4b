package hostfiles

import (
	"bytes"
	"encoding/binary"

	"kprobelab/internal/bounded"
)

// cachePath is the path of ld.so's cache.
const cachePath = "/etc/ld.so.cache"

// What ld.so's cache begins with: the form before glibc 2.2, which may stand before the usual one.
var (
	oldCache = []byte("ld.so-1.7.0\x00")
	newCache = []byte("glibc-ld.so.cache1.1")
)

// The sizes of the cache's headers and entries, and the flags of a library for x86-64.
const (
	oldHeader, oldEntry = 16, 12
	newHeader, newEntry = 48, 24
	flagsX8664          = 0x0303
)

// readCache reads ld.so's cache: the paths of x86-64 libraries by their name, in the cache's order. Libraries for
// processors with more instructions (glibc-hwcaps) are left out. What is damaged reads as an empty cache, as for ld.so.
func readCache(b []byte) map[string][]string {
	if bytes.HasPrefix(b, oldCache) && len(b) >= oldHeader {
		n := uint64(binary.LittleEndian.Uint32(b[12:]))
		at := (oldHeader + n*oldEntry + 7) &^ 7
		if at > uint64(len(b)) {
			return nil
		}
		b = b[at:]
	}
	if !bytes.HasPrefix(b, newCache) || len(b) < newHeader {
		return nil
	}
	n := uint64(binary.LittleEndian.Uint32(b[20:]))
	if n > bounded.LibraryCache/newEntry || newHeader+n*newEntry > uint64(len(b)) {
		return nil
	}
	text := func(at uint32) string {
		if uint64(at) >= uint64(len(b)) {
			return ""
		}
		s, _, _ := bytes.Cut(b[at:], []byte{0})
		return string(s)
	}
	list := map[string][]string{}
	for e := b[newHeader : newHeader+n*newEntry]; len(e) > 0; e = e[newEntry:] {
		word := func(at int) uint32 { return binary.LittleEndian.Uint32(e[at:]) }
		name, file := text(word(4)), text(word(8))
		if word(0) != flagsX8664 || binary.LittleEndian.Uint64(e[16:]) != 0 || name == "" || file == "" {
			continue
		}
		list[name] = append(list[name], file)
	}
	return list
}
