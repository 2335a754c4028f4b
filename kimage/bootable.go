package kimage

import (
	"errors"

	"kprobelab/internal/container"
)

// ReadBootable reads the bzImage that a loader would start: the file itself, or the one in
// a unified kernel image.
func ReadBootable(path string) ([]byte, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	b, err = container.Bootable(b)
	return b, named(path, err)
}

// ReadUnpacked reads a file that may be packed, such as a module.
func ReadUnpacked(path string) ([]byte, error) { return readMaybePacked(path, nil) }

// unwrap returns the ELF that a file is or contains.
func unwrap(file string, b []byte, report func(string, int64, int64)) ([]byte, error) {
	b, err := container.Unwrap(b, report)
	return b, named(file, err)
}

// decompressBeside unpacks a file that is beside an image.
func decompressBeside(file string, b []byte, report func(string, int64, int64)) ([]byte, error) {
	b, err := container.Beside(b, report)
	return b, named(file, err)
}

// named puts the file's name into an error of its container.
func named(file string, err error) error {
	var e *container.Error
	if errors.As(err, &e) {
		return &FormatError{file, e.Offset, e.Want}
	}
	return err
}
