package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/process"
)

// Files are the files of the host that a program without a kernel has.
type Files struct {
	program *process.File
	host    string // the program's file
	others  []*process.File
	bytes   int // that all have
}

// OpenFiles reads the program.
func OpenFiles(program string) (*Files, error) {
	f := &Files{host: program}
	var err error
	f.program, err = f.load(program, program)
	return f, err
}

// Add reads FILE, or NAME=FILE: then the program opens it as NAME. If FILE is a folder, Add reads all files in it and in
// its folders.
func (f *Files) Add(text string) error {
	name, from, renamed := strings.Cut(text, "=")
	if !renamed {
		from = name
	}
	if st, err := os.Stat(from); err == nil && st.IsDir() {
		return f.folder(name, from)
	}
	one, err := f.load(name, from)
	if err != nil {
		return err
	}
	f.others = append(f.others, one)
	return nil
}

// GuestName is the name that the program knows a file of the host by.
func GuestName(name string) (string, error) {
	abs, err := filepath.Abs(name)
	return filepath.ToSlash(abs), err
}

func (f *Files) all() []*process.File { return append([]*process.File{f.program}, f.others...) }

// load reads one file of the host.
func (f *Files) load(name, from string) (*process.File, error) {
	name, err := GuestName(name)
	if err != nil {
		return nil, unusable(err)
	}
	b, err := bounded.ReadFile(from, bounded.ProgramFile)
	if err != nil {
		return nil, unusable(err)
	}
	if f.bytes += len(b); f.bytes > bounded.ProgramBytes {
		return nil, unusable(fmt.Errorf("the files of --file have more than %d MB", bounded.ProgramBytes>>20))
	}
	return &process.File{Name: name, Data: b}, nil
}

// folder reads the files in a folder and in its folders. It follows links to files, not to folders. It leaves out
// other kinds of files, and files that cannot be read.
func (f *Files) folder(name, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is not there for the program
		}
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			return nil
		}
		if len(f.others) >= bounded.ProgramFiles {
			return unusable(fmt.Errorf("%s: --file takes %d files at most", from, bounded.ProgramFiles))
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return unusable(err)
		}
		one, err := f.load(filepath.Join(name, rel), path)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		}
		f.others = append(f.others, one)
		return nil
	})
}

// named is the file of a probe.
func (f *Files) named(name string) (*process.File, error) {
	guest, err := GuestName(name)
	if err != nil {
		return nil, err
	}
	for _, one := range f.all() {
		if one.Name == guest {
			return one, nil
		}
	}
	return nil, refused(fmt.Errorf("%s is neither the program nor a file of --file: %w", name, errno.ENOENT))
}
