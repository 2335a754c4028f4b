package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file or a folder of an archive.
type entry struct {
	name string
	mode int64
	// text is nil for a folder.
	text []byte
	// user owns it; 0 is root.
	user int
}

// packFile writes the archive OUT, .tar.gz or .zip by its name, with all files in one folder.
func packFile(out, folder string, files []string) error {
	when, err := epoch()
	if err != nil {
		return err
	}
	list, err := entries(folder, files)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if strings.HasSuffix(out, ".zip") {
		err = zipped(&b, list, when)
	} else {
		err = gzipped(&b, list, when)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// entries reads files, each FILE or FILE=NAME, as entries below a folder.
func entries(folder string, files []string) ([]entry, error) {
	var list []entry
	for _, f := range files {
		file, name, ok := strings.Cut(f, "=")
		if !ok {
			name = filepath.Base(file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		list = append(list, entry{path.Join(folder, name), mode, text, 0})
	}
	return list, nil
}

// sorted is the list by names, so that the order of arguments does not matter.
func sorted(list []entry) []entry {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return list
}

// tarred writes a tar archive in which nothing is of the machine that made it.
func tarred(w io.Writer, list []entry, when time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range sorted(list) {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.text)), ModTime: when, Typeflag: tar.TypeReg, Uid: e.user, Gid: e.user, Format: tar.FormatUSTAR}
		if e.text == nil {
			h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := t.Write(e.text); err != nil {
			return err
		}
	}
	return t.Close()
}

func gzipped(w io.Writer, list []entry, when time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := tarred(z, list, when); err != nil {
		return err
	}
	return z.Close()
}

func zipped(w io.Writer, list []entry, when time.Time) error {
	z := zip.NewWriter(w)
	for _, e := range sorted(list) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		h.SetMode(os.FileMode(e.mode))
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.text); err != nil {
			return err
		}
	}
	return z.Close()
}
