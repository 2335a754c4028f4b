package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// outputFile is a file that a command writes. It gets its name once all of it is there: a full disk leaves no half of it, and
// what had the name before stays. A device or a pipe is written as it is.
type outputFile struct {
	*os.File
	// name is the name that the file gets at the end, "" where it is written in its place.
	name string
}

// createOutput makes a file to write to. The caller ends with done.
func createOutput(name string) (*outputFile, error) {
	mode, exists := os.FileMode(0o666), false
	switch st, err := os.Stat(name); {
	case err == nil && !st.Mode().IsRegular():
		f, err := os.Create(name)
		return &outputFile{File: f}, err
	case err == nil:
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
		if f, err := os.OpenFile(name, os.O_WRONLY, 0); err != nil {
			return nil, err // which cannot be written
		} else if err := f.Close(); err != nil {
			return nil, err
		}
		mode, exists = st.Mode().Perm(), true
	}
	if _, err := os.Lstat(name); err != nil || exists {
		f, err := os.OpenFile(filepath.Join(filepath.Dir(name), ".kprobelab-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err == nil {
			return &outputFile{f, name}, nil
		}
	}
	f, err := os.Create(name) // a link that leads nowhere yet, or a folder that takes no other file
	return &outputFile{File: f}, err
}

// done closes the file and gives it its name, unless err says that it is not complete. It returns err, or what went wrong.
func (o *outputFile) done(err error) error {
	if err = errors.Join(err, o.Close()); o.name == "" {
		return err
	}
	if err == nil {
		err = os.Rename(o.Name(), o.name)
	}
	if err == nil {
		return nil
	}
	_ = os.Remove(o.Name()) // the first error says more
	if p := new(fs.PathError); errors.As(err, &p) && p.Path == o.Name() {
		p.Path = o.name
	}
	return err
}

// writeOutput writes a whole file.
func writeOutput(name string, b []byte) error {
	o, err := createOutput(name)
	if err != nil {
		return err
	}
	_, err = o.Write(b)
	return o.done(err)
}
