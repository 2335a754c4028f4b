package kimage

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/container"
)

// readFile reads a file, an ELF without its debugging information. It fails at once on
// a file that would never end, such as a terminal.
func readFile(path string) ([]byte, error) {
	f, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, badFormat(path, -1, "this is a directory, not a file")
	case st.Mode()&os.ModeDevice != 0:
		return nil, badFormat(path, -1, "this is a device, not a file")
	case st.Size() > bounded.ImageFile:
		return nil, badFormat(path, -1, "the file has %d bytes, at most 8 GiB are opened", st.Size())
	case st.Mode().IsRegular() && st.Size() >= sparseFrom:
		if b, err := readSparse(path, f, st.Size()); b != nil || err != nil {
			return b, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
	}
	if st.Size() > maxImage {
		return nil, badFormat(path, -1, "the file has %d bytes, at most 1 GiB is read", st.Size())
	}
	size := st.Size() // 0 of a pipe, or a file of procfs
	if size > 0 {
		size++ // the end shows without growing
	}
	return container.Read(f, size, maxImage, badFormat(path, -1, "the file has more than 1 GiB"))
}

// sparseFrom is the size from which it pays to leave sections out.
const sparseFrom = 32 << 20

// readSparse reads an ELF without its sections of debugging information, which are
// most of its bytes: there, the file's content is zeros that take no memory. It
// returns nil for a file that is no ELF, or has no such sections.
func readSparse(path string, f *os.File, size int64) ([]byte, error) {
	var head [ehdrSize]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || !container.IsELF(head[:]) {
		return nil, nil
	}
	off, n, names := int64(le.Uint64(head[40:])), int64(le.Uint16(head[60:])), int64(le.Uint16(head[62:]))
	if off <= 0 || off+n*shdrSize > size || names >= n || le.Uint16(head[58:]) != shdrSize {
		return nil, nil // parseELF says what is wrong
	}
	table := make([]byte, n*shdrSize)
	if _, err := f.ReadAt(table, off); err != nil {
		return nil, nil
	}
	h := table[names*shdrSize:]
	at, length := int64(le.Uint64(h[24:])), int64(le.Uint64(h[32:]))
	if at < 0 || length < 0 || length > 1<<20 || at > size-length {
		return nil, nil
	}
	strs := make([]byte, length)
	if _, err := f.ReadAt(strs, at); err != nil {
		return nil, nil
	}
	holes, left := debugHoles(table, string(strs), size)
	if len(holes) == 0 {
		return nil, nil
	}
	if left > maxImage {
		return nil, badFormat(path, -1, "%d bytes of the file are no debugging information, at most 1 GiB is read", left)
	}
	if err := bounded.Room(size); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	return b, readAround(f, b, holes)
}

// span is a part of a file.
type span struct{ from, to int64 }

// debugHoles returns the sections to leave out, in the order of the file, and the
// number of bytes that remain.
func debugHoles(table []byte, strs string, size int64) (holes []span, left int64) {
	var all []span
	for ; len(table) > 0; table = table[shdrSize:] {
		name := cstring(strs, le.Uint32(table))
		s := span{int64(le.Uint64(table[24:])), 0}
		s.to = s.from + int64(le.Uint64(table[32:]))
		if !isDebug(name, le.Uint64(table[8:])) || le.Uint32(table[4:]) == shtNobits || s.from < 0 || s.to < s.from || s.to > size {
			continue
		}
		all = append(all, s)
	}
	// The relocations of a section are far after it.
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	left, end := size, int64(0)
	for _, s := range all {
		if s.from >= end {
			holes, end = append(holes, s), s.to
			left -= s.to - s.from
		}
	}
	return holes, left
}

// isDebug tells sections that describe the sources; the kernel's own tables are
// not among them.
func isDebug(name string, flags uint64) bool {
	name = strings.TrimPrefix(name, ".rela")
	return flags&shfAlloc == 0 && (strings.HasPrefix(name, ".debug_") || strings.HasPrefix(name, ".zdebug_"))
}

// readAround fills b, except the holes.
func readAround(f *os.File, b []byte, holes []span) error {
	at := int64(0)
	for _, h := range append(holes, span{int64(len(b)), 0}) {
		if _, err := f.ReadAt(b[at:h.from], at); err != nil && err != io.EOF {
			return err
		}
		at = h.to
	}
	return nil
}
