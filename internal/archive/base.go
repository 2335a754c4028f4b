package archive

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
)

// A file of a kernel can be a difference from the file of another kernel, its base: two
// levels of one series are nearly equal. A section that is a difference is a zstd frame
// with the base's section as its dictionary.

// maxChain is the most files that a file may need beside it: the head of its series,
// and the file from which this one is a difference.
const maxChain = 2

// dictionary is the number of each frame's only dictionary.
const dictionary = 1

// ErrBase: the file from which a file is a difference is missing, or was made anew.
var ErrBase = errors.New("a difference from a file that is not beside it as it was: pack the kernel again")

// readChain reads a file as readFile does, and at most so many others that it needs.
func readChain(name string, more int) (*file, error) {
	b, err := readWhole(name)
	if err != nil {
		return nil, err
	}
	f, err := parse(b)
	if err == nil && f.Base != "" {
		err = f.readBase(filepath.Dir(name), more)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return f, nil
}

// readWhole reads a file that begins as one of ours. Of another one, a device among them, it reads the beginning alone.
func readWhole(name string) ([]byte, error) {
	f, err := bounded.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: damaged("a regular file is wanted")}
	}
	if err != nil {
		return nil, err
	}
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(f, head); err != nil || string(head) != magic {
		return head[:n], nil // parse says what is wrong
	}
	return bounded.ReadFile(name, bounded.ArchiveFile)
}

// readBase reads a file's base. Of several bases that are wrong the error is about the last.
func (f *file) readBase(dir string, more int) error {
	if filepath.Base(f.Base) != f.Base || !strings.HasSuffix(f.Base, Suffix) {
		return damaged("%q is no file of an archive", f.Base)
	}
	if more == 0 {
		return fmt.Errorf("%w (it needs more than %d other files)", ErrBase, maxChain)
	}
	base, err := readChain(filepath.Join(dir, f.Base), more-1)
	if errors.Is(err, ErrBase) {
		return reason(err)
	}
	if err != nil {
		return fmt.Errorf("%w (%s: %v)", ErrBase, f.Base, reason(err))
	}
	f.base = base
	return nil
}

// reason is an error without the name of the file that it is about.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// before returns the base's data from which a section of the file is a difference.
func (f *file) before(p *part) ([]byte, error) {
	if f.base == nil {
		return nil, ErrBase
	}
	b, err := f.base.like(p.Name)
	if err != nil {
		return nil, fmt.Errorf("%w (%s: %v)", ErrBase, f.Base, err)
	}
	if crc32.Checksum(b, castagnoli) != *p.From {
		return nil, fmt.Errorf("%w (%s was packed again)", ErrBase, f.Base)
	}
	return b, nil
}

// like returns the data that the file has for a section of that name in another kernel.
// Text moves between kernels: for a piece of text it is that piece with its neighbours.
func (f *file) like(name string) ([]byte, error) {
	i, ok := windowNumber(name)
	if !ok {
		return f.section(name)
	}
	prefix, _, _ := strings.Cut(name, windowName(i))
	var all []byte
	for j := max(i-1, 0); j <= i+1; j++ {
		b, err := f.section(prefix + windowName(j))
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

// checkBase reports whether the base is the file that this one was made from.
func (f *file) checkBase() error {
	for _, s := range f.Sections {
		if s.From == nil {
			continue
		}
		p := f.parts[s.Name]
		if _, err := f.before(&p); err != nil {
			return err
		}
	}
	return nil
}
