package hostfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
)

// Set collects the files that a guest is to get. The zero value is empty, and takes interpreters and libraries from the host.
type Set struct {
	// Root, if not empty, is a folder with an unpacked system, whose interpreters and libraries are taken instead of
	// the host's.
	Root string
	// Libraries are folders where libraries are looked for first, as LD_LIBRARY_PATH has them.
	Libraries []string

	files map[string]File
	bytes int64
	// libraryCache is ld.so's, nil before it is read.
	libraryCache map[string][]string
}

// Files are the collected files, each after the folder it lies in.
func (s *Set) Files() []File {
	var list []File
	for _, f := range s.files {
		if f.Link == "" || !s.belowLink(f.Path) {
			list = append(list, f)
		}
	}
	return Ordered(list)
}

// belowLink reports whether a path leads through a link of the set: a second link there would replace the file itself.
func (s *Set) belowLink(p string) bool {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if s.files[dir].Link != "" {
			return true
		}
	}
	return false
}

// put adds a file. Of two of one path, the later one counts.
func (s *Set) put(f File) error {
	if len(f.Path) > bounded.GuestPath || len(f.Link) > bounded.GuestPath {
		return fmt.Errorf("the path %.60s… has %d bytes; %d are possible", f.Path, max(len(f.Path), len(f.Link)), bounded.GuestPath)
	}
	if s.files == nil {
		s.files = map[string]File{}
	}
	old := s.files[f.Path]
	if s.bytes += f.Size - old.Size; s.bytes > bounded.GuestBytes {
		return fmt.Errorf("the files have more than %d MiB with %s", bounded.GuestBytes>>20, f.Path)
	}
	if s.files[f.Path] = f; len(s.files) > bounded.GuestFiles {
		return fmt.Errorf("there are more than %d files", bounded.GuestFiles)
	}
	return nil
}

// place adds a file of a tree at the path that names it. If links lead from this path to the file, place adds the file at
// its real path, and a link at this path.
func (s *Set) place(p place, real string, info fs.FileInfo) error {
	f := File{Path: guestPath(real), Mode: info.Mode().Perm(), From: p.in.host(real), Size: info.Size(), Modified: info.ModTime().Unix()}
	if err := s.put(f); err != nil {
		return err
	}
	if at := guestPath(path.Clean(p.path)); at != f.Path {
		return s.put(File{Path: at, Mode: fs.ModeSymlink | 0o777, Link: f.Path})
	}
	return nil
}

// kernels are the folders that belong to the guest's own kernel.
var kernels = []string{"/proc/", "/sys/", "/dev/"}

// guestPath is the path for a file of the host: the same, but not in a folder that the guest's kernel has.
func guestPath(p string) string {
	for _, k := range kernels {
		if strings.HasPrefix(p, k) {
			return "/tmp/" + path.Base(p)
		}
	}
	return p
}

// Program adds a program, as a shell finds it, with the interpreter and the libraries that it needs to start, and
// returns its path in the guest: the one that it has on the host, or in the tree. A script brings the program that its
// first line names. The error is an ErrProgram if the file cannot be run, and a *MissingError if something is not there.
func (s *Set) Program(name string) (guest string, err error) {
	p, err := s.named(name)
	if err != nil {
		return "", err
	}
	return s.program(p, name, 0)
}

// named finds the file of a program. With a tree (Root), it searches the tree first, then the host.
func (s *Set) named(name string) (place, error) {
	if s.Root != "" {
		for _, dir := range searchPath(name) {
			if _, _, err := tree(s.Root).regular(path.Join(dir, name)); err == nil {
				return place{tree(s.Root), path.Join(dir, name)}, nil
			}
		}
	}
	file, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		if e := (*exec.Error)(nil); errors.As(err, &e) {
			err = e.Err
		}
		if _, is := os.Stat(name); is == nil && strings.Contains(name, "/") {
			return place{}, fmt.Errorf("%s: %w: %w", name, ErrProgram, notExecutable(name))
		}
		return place{}, fmt.Errorf("%s: %w: %w", name, ErrProgram, err)
	}
	if file, err = filepath.Abs(file); err != nil {
		return place{}, err
	}
	if s.Root != "" {
		if root, err := filepath.Abs(s.Root); err == nil {
			if inside, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(inside) {
				return place{tree(s.Root), "/" + filepath.ToSlash(inside)}, nil
			}
		}
	}
	return place{"/", filepath.ToSlash(file)}, nil
}

// notExecutable says why a file that is there is no program.
func notExecutable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is %s, no file", kind(info.Mode()))
	}
	return errors.New("it is not executable (chmod +x)")
}

// searchPath are the folders that a program of a tree is looked for in.
func searchPath(name string) []string {
	switch {
	case path.IsAbs(name):
		return []string{"/"}
	case strings.Contains(name, "/"):
		return nil
	}
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// program adds the program at a place. depth counts the scripts that lead to it.
func (s *Set) program(p place, name string, depth int) (guest string, err error) {
	real, info, err := p.in.regular(p.path)
	if err != nil {
		return "", fmt.Errorf("%s: %w: %w", name, ErrProgram, err)
	}
	guest = guestPath(p.path)
	o, err := s.object(p.in.host(real))
	switch {
	case errors.Is(err, errNotELF):
		if err := s.script(p.in.host(real), name, depth); err != nil {
			return "", err
		}
	case err != nil:
		return "", fmt.Errorf("%s: %w", name, err)
	case o.end > uint64(info.Size()):
		return "", fmt.Errorf("%s: %w: it is cut off: it has %d bytes, its segments reach to byte %d", name, ErrProgram, info.Size(), o.end)
	default:
		o.path, o.from = real, p.in
		if err := s.needs(o); err != nil {
			return "", err
		}
	}
	if info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%s: %w: it is not executable (chmod +x)", name, ErrProgram)
	}
	return guest, s.place(p, real, info)
}

// needs adds the interpreter and the libraries of an object.
func (s *Set) needs(o *object) error {
	system := tree(s.Root)
	if o.interpreter != "" {
		real, info, err := system.regular(o.interpreter)
		if err != nil {
			return &MissingError{Name: o.interpreter, Of: o.path}
		}
		if err := s.place(place{system, o.interpreter}, real, info); err != nil {
			return err
		}
	}
	l := &loading{s: s, program: o, loaded: map[string]bool{path.Base(o.interpreter): true}}
	return l.libraries(o)
}

// Add adds a file or a folder of the host for a path of the guest. Programs and libraries among the files bring the
// libraries that they need.
func (s *Set) Add(host, guest string) error {
	return s.AddSome(host, guest, func(string) bool { return true })
}

// AddFolder adds an empty folder of the guest.
func (s *Set) AddFolder(guest string) error {
	if f := (File{Path: guest, Mode: fs.ModeDir | 0o755}); s.files[guest].Path == "" {
		return s.put(f)
	}
	return nil
}

// AddSome is Add without the folders below that want refuses by their paths.
func (s *Set) AddSome(host, guest string, want func(inside string) bool) error {
	return Walk(host, guest, func(f File) error {
		if inside, below := strings.CutPrefix(f.Path, strings.TrimSuffix(guest, "/")+"/"); below && f.Mode.IsDir() && !want(inside) {
			return fs.SkipDir
		}
		if err := s.put(f); err != nil || f.From == "" {
			return err
		}
		o, err := s.object(f.From)
		if err != nil || !o.dynamic {
			return nil // data, or what a kernel does not run
		}
		o.path, o.from = filepath.ToSlash(f.From), "/"
		missing := (*MissingError)(nil)
		if err := s.needs(o); err != nil && !(errors.As(err, &missing) && o.interpreter == "") {
			return err
		}
		return nil
	})
}

// cache is ld.so's.
func (s *Set) cache() map[string][]string {
	if s.libraryCache == nil {
		s.libraryCache = map[string][]string{}
		if real, _, err := tree(s.Root).regular(cachePath); err == nil {
			if b, err := bounded.ReadFile(tree(s.Root).host(real), bounded.LibraryCache); err == nil {
				s.libraryCache = readCache(b)
			}
		}
	}
	return s.libraryCache
}

// cacheUsed takes the cache along: the guest's ld.so finds a library by it.
func (s *Set) cacheUsed() {
	system := tree(s.Root)
	if real, info, err := system.regular(cachePath); err == nil {
		_ = s.place(place{system, cachePath}, real, info) // without it ld.so looks through its folders
	}
}
