package report

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"

	"kprobelab/internal/bounded"
)

// IsScan tells an output of scan --json, plain or gzip, from an image: it begins with a brace.
// Standard input is no image.
func IsScan(name string) (bool, error) {
	if name == "-" {
		return true, nil
	}
	f, err := bounded.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return false, err
		}
		return false, nil // an image may be what is no plain file
	}
	defer f.Close()
	var head [2]byte
	n, _ := io.ReadFull(f, head[:])
	if !bytes.Equal(head[:n], []byte{0x1f, 0x8b}) {
		return n > 0 && head[0] == '{', nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return false, nil
	}
	n, _ = io.ReadFull(z, head[:1])
	return n == 1 && head[0] == '{', nil
}

// OpenScan reads what scan --json has written; - is standard input.
func OpenScan(name string) (*ScanFile, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = bounded.Open(name); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	return ReadScan(name, f)
}
