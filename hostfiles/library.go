package hostfiles

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
)

// MissingError is a library, or an interpreter, that the host or the tree has not.
type MissingError struct {
	// Name is the library's, or the interpreter's path. Of needs it.
	Name, Of string
	// Searched are the folders that were looked through.
	Searched []string
}

// Error is one sentence.
func (e *MissingError) Error() string {
	if path.IsAbs(e.Name) {
		return fmt.Sprintf("%s needs %s, which is not there", e.Of, e.Name)
	}
	return fmt.Sprintf("%s needs the library %s, which is in none of %s", e.Of, e.Name, strings.Join(e.Searched, ", "))
}

// Is makes it an ErrProgram.
func (e *MissingError) Is(target error) bool { return target == ErrProgram }

// defaults lists the default folders of ld.so, which it searches last: Debian's, then the folders of other distributions.
// muslDefaults lists the folders of musl's interpreter.
var (
	defaults     = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}
	muslDefaults = []string{"/lib", "/usr/local/lib", "/usr/lib"}
)

// muslPaths has the folders of musl's ld.so instead, where it is there.
const muslPaths = "/etc/ld-musl-x86_64.path"

// musl reports whether an interpreter is musl's. Its own names are no files that have to be found.
func musl(interpreter string) bool { return strings.HasPrefix(path.Base(interpreter), "ld-musl-") }

// place is a file of a tree.
type place struct {
	in   tree
	path string
}

// loading is one program with its libraries, as ld.so loads them.
type loading struct {
	s       *Set
	program *object
	// loaded are the names of the libraries that are there.
	loaded map[string]bool
}

// libraries adds the libraries of an object, theirs, and so on.
func (l *loading) libraries(first *object) error {
	for todo := []*object{first}; len(todo) > 0; todo = todo[1:] {
		o := todo[0]
		for _, name := range o.needed {
			if l.loaded[name] || musl(l.program.interpreter) && (name == "libc.so" || strings.HasPrefix(name, "libc.musl-")) {
				continue
			}
			lib, err := l.find(o, name)
			if err != nil {
				return err
			}
			l.loaded[name] = true
			if lib.soname != "" {
				l.loaded[lib.soname] = true
			}
			if len(l.loaded) > 2*bounded.Libraries {
				return fmt.Errorf("%w: %s needs more than %d libraries", ErrProgram, l.program.path, bounded.Libraries)
			}
			todo = append(todo, lib)
		}
	}
	return nil
}

// find finds a library of an object, and adds it.
func (l *loading) find(o *object, name string) (*object, error) {
	if strings.Contains(name, "/") {
		p := l.expand(o, name)
		lib, err := l.s.library(p, o)
		if err == nil && lib == nil {
			err = &MissingError{Name: p.path, Of: o.path}
		}
		return lib, err
	}
	var searched []string
	for _, dir := range l.folders(o) {
		p := place{dir.in, path.Join(dir.path, name)}
		if lib, err := l.s.library(p, o); lib != nil || err != nil {
			return lib, err
		}
		searched = append(searched, dir.path)
	}
	system := tree(l.s.Root)
	if !o.noDefault && !musl(l.program.interpreter) {
		for _, file := range l.s.cache()[name] {
			if lib, err := l.s.library(place{system, file}, o); lib != nil || err != nil {
				l.s.cacheUsed()
				return lib, err
			}
		}
	}
	for _, dir := range l.defaultFolders(o) {
		if lib, err := l.s.library(place{system, path.Join(dir, name)}, o); lib != nil || err != nil {
			return lib, err
		}
		searched = append(searched, dir)
	}
	return nil, &MissingError{Name: name, Of: o.path, Searched: searched}
}

// folders returns the folders that ld.so searches before its cache, in its order (ld.so(8), "Searching for shared libraries").
func (l *loading) folders(o *object) (list []place) {
	add := func(o *object, dirs []string) {
		for _, d := range dirs {
			if d != "" {
				list = append(list, l.expand(o, d))
			}
		}
	}
	if len(o.runpath) == 0 {
		for from := o; from != nil; from = from.loader {
			if len(from.runpath) == 0 {
				add(from, from.rpath)
			}
		}
	}
	for _, d := range l.s.Libraries {
		list = append(list, place{tree(l.s.Root), d})
	}
	add(o, o.runpath)
	return list
}

func (l *loading) defaultFolders(o *object) []string {
	switch {
	case o.noDefault:
		return nil
	case !musl(l.program.interpreter):
		return defaults
	}
	real, err := tree(l.s.Root).real(muslPaths)
	if err != nil {
		return muslDefaults
	}
	b, err := bounded.ReadFile(tree(l.s.Root).host(real), bounded.GuestPath)
	if err != nil {
		return muslDefaults
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == ':' || r == '\n' })
}

// expand puts the values of ld.so's tokens into a path (ld.so(8), "Dynamic string tokens"). What begins with the
// object's own folder is in the object's tree.
func (l *loading) expand(o *object, text string) place {
	in := tree(l.s.Root)
	if strings.HasPrefix(text, "$ORIGIN") || strings.HasPrefix(text, "${ORIGIN}") {
		in = o.from
	}
	for token, value := range map[string]string{"ORIGIN": path.Dir(o.path), "LIB": "lib/x86_64-linux-gnu", "PLATFORM": "x86_64"} {
		text = strings.NewReplacer("${"+token+"}", value, "$"+token, value).Replace(text)
	}
	return place{in, path.Clean("/" + text)}
}

// library adds a library at a place; nil without an error if there is none for x86-64, which ld.so passes over.
func (s *Set) library(p place, loader *object) (*object, error) {
	real, info, err := p.in.regular(p.path)
	if err != nil {
		return nil, nil
	}
	o, err := s.object(p.in.host(real))
	if errors.Is(err, errNotELF) || errors.Is(err, ErrProgram) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o.path, o.from, o.loader = p.path, p.in, loader
	return o, s.place(p, real, info)
}

// object reads the ELF headers of a file of the host.
func (s *Set) object(file string) (*object, error) {
	f, err := bounded.Open(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readObject(f)
}
