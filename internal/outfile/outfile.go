// Package outfile writes files that get their name once all of their content is there.
//
// It must not know what is written.
package outfile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file that is being written. It gets its name once it is whole: a full disk leaves no half of it,
// and the old file of that name stays. A device or a pipe is written directly.
type File struct {
	*os.File
	// name is the name that the file gets at the end, "" where it is written in its place.
	name string
}

// Create makes a file to write to. The caller ends with Done.
func Create(name string) (*File, error) {
	mode, exists := os.FileMode(0o666), false
	switch st, err := os.Stat(name); {
	case err == nil && !st.Mode().IsRegular():
		f, err := os.Create(name)
		return &File{File: f}, err
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
			return &File{f, name}, nil
		}
	}
	f, err := os.Create(name) // a link that leads nowhere yet, or a folder that takes no other file
	return &File{File: f}, err
}

// Done closes the file and gives it its name, unless err says that it is not complete. It returns err, or what went wrong.
func (o *File) Done(err error) error {
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

// Write writes a whole file.
func Write(name string, b []byte) error {
	o, err := Create(name)
	if err != nil {
		return err
	}
	_, err = o.Write(b)
	return o.Done(err)
}

// Append adds a text to a file, all of it or nothing: a full disk leaves no half of a row.
func Append(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	before, failed := f.Stat()
	if failed != nil {
		return errors.Join(failed, f.Close())
	}
	if _, err = io.WriteString(f, text); err != nil && before.Mode().IsRegular() {
		_ = f.Truncate(before.Size()) // the first error says more
	}
	return errors.Join(err, f.Close())
}
