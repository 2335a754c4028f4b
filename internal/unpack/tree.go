package unpack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
)

// ErrHostile is a package that would reach outside of its folder, or that no packager makes.
var ErrHostile = errors.New("the package is refused")

// Kind is the type of an entry of a package.
type Kind int

// The kinds that are unpacked. All else, such as a device, is Other.
const (
	Other Kind = iota
	File
	Folder
	Link // symbolic
	Hard // another name of a file
)

// Entry is a file of a package.
type Entry struct {
	// Name is its path below the folder of the package, Target where a link leads, as the package says them.
	Name, Target string
	Kind         Kind
	// Mode has its permissions.
	Mode fs.FileMode
	Size int64
	// Data is a file's.
	Data io.Reader
}

// Package has entries in order. After the last, the error is io.EOF.
type Package interface{ Next() (*Entry, error) }

// Wanted says under which path a file of the package is kept, "" for not at all.
type Wanted func(name string) string

// All keeps each file under its own path.
func All(name string) string { return name }

// Tree puts the wanted files of a package into the existing folder dir. After an error the folder's
// content is of no use; the caller removes it.
func Tree(dir string, p Package, wanted Wanted) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := &tree{root: root, wanted: wanted}
	for {
		e, err := p.Next()
		if err == io.EOF {
			return t.audit()
		}
		if err != nil {
			return err
		}
		if t.entries++; t.entries > bounded.PackageEntries {
			return fmt.Errorf("%w: it has more than %d files", ErrHostile, bounded.PackageEntries)
		}
		if err := t.add(e); err != nil {
			return err
		}
	}
}

type tree struct {
	root    *os.Root
	wanted  Wanted
	entries int
	bytes   int64
	// links are the symbolic links that were made.
	links []string
}

// audit follows each link once all are there: one can lead out of the folder by way of another, which its own text
// does not show.
func (t *tree) audit() error {
	for _, at := range t.links {
		if _, err := t.root.Stat(at); err != nil && strings.Contains(err.Error(), "escapes") {
			return fmt.Errorf("%w: the link %s leads out of it", ErrHostile, shown(at))
		}
	}
	return nil
}

// add checks an entry, and makes it if it is wanted. An unwanted entry is checked, too: nothing of a hostile
// package is kept.
func (t *tree) add(e *Entry) error {
	name, err := local(e.Name)
	if err != nil || name == "." {
		return err
	}
	if t.bytes += max(e.Size, 0); t.bytes > bounded.PackageBytes {
		return fmt.Errorf("%w: its files have more than %d GiB", ErrHostile, bounded.PackageBytes>>30)
	}
	target := e.Target
	switch e.Kind {
	case Hard:
		target, err = local(e.Target)
	case Link:
		target, err = inside(name, e.Target)
	case Other:
		err = fmt.Errorf("%w: %s is neither a file, a folder nor a link", ErrHostile, shown(e.Name))
	}
	if err != nil {
		return err
	}
	at := t.wanted(name)
	// A link is relative to its place in the package.
	if at == "" || e.Kind == Link && at != name {
		return nil
	}
	if err := t.make(at, e, target); err != nil {
		if errors.Is(err, ErrPacked) || errors.Is(err, ErrHostile) {
			return err
		}
		return fmt.Errorf("%s cannot be unpacked: %w", shown(e.Name), err)
	}
	return nil
}

func (t *tree) make(at string, e *Entry, target string) error {
	if e.Kind == Folder {
		return t.folder(at)
	}
	if err := t.folder(path.Dir(at)); err != nil {
		return err
	}
	// As dpkg does: a folder that is there stays where a package has a link.
	if old, err := t.root.Lstat(at); err == nil && old.IsDir() {
		if e.Kind == Link {
			return nil
		}
		return fmt.Errorf("%w: %s is a folder and a file", ErrHostile, shown(e.Name))
	} else if err == nil {
		if err := t.root.Remove(at); err != nil {
			return err
		}
	}
	switch e.Kind {
	case Link:
		t.links = append(t.links, at)
		return t.root.Symlink(target, at)
	case Hard:
		from := t.wanted(target)
		if from == "" {
			return nil
		}
		// A link to a link would lead wherever that does.
		if st, err := t.root.Lstat(from); err != nil || !st.Mode().IsRegular() {
			return fmt.Errorf("%w: %s is another name of %s, which is no file of it", ErrHostile, shown(e.Name), shown(e.Target))
		}
		return t.root.Link(from, at)
	}
	return t.file(at, e)
}

func (t *tree) file(at string, e *Entry) error {
	f, err := t.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.Mode.Perm()&0o755|0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, e.Data)
	if err == nil && n != e.Size {
		err = fmt.Errorf("%w: %s is cut off", ErrPacked, shown(e.Name))
	}
	return errors.Join(err, f.Close())
}

// folder makes a folder and those above it. A link to a folder of the tree is one.
func (t *tree) folder(at string) error { return t.folderBy(at, 0) }

func (t *tree) folderBy(at string, links int) error {
	if at == "." {
		return nil
	}
	if st, err := t.root.Stat(at); err == nil && st.IsDir() {
		return nil
	}
	if err := t.folderBy(path.Dir(at), links); err != nil {
		return err
	}
	// A link whose folder comes later in the package.
	to, err := t.root.Readlink(at)
	switch {
	case err != nil:
		return t.root.Mkdir(at, 0o755)
	case links == bounded.PackageLinks:
		return fmt.Errorf("%w: the link %s leads to itself", ErrHostile, shown(at))
	}
	return t.folderBy(path.Join(path.Dir(at), to), links+1)
}

// local is an entry's path below the package's folder.
func local(name string) (string, error) {
	clean := path.Clean(name)
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%w: a file of it has no name", ErrHostile)
	case len(name) > bounded.PackagePath || strings.Count(name, "/") > bounded.PackageDepth:
		return "", fmt.Errorf("%w: a path of it has more than %d bytes or %d folders", ErrHostile, bounded.PackagePath, bounded.PackageDepth)
	case path.IsAbs(name):
		return "", fmt.Errorf("%w: the path %s is absolute", ErrHostile, shown(name))
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "", fmt.Errorf("%w: the path %s leads upwards", ErrHostile, shown(name))
	}
	return clean, nil
}

// inside returns the target of a symbolic link, as the tree stores it. An absolute path means the
// package's own folder, which is the system's root once it is installed.
func inside(name, target string) (string, error) {
	if target == "" || strings.ContainsRune(target, 0) || len(target) > bounded.PackagePath {
		return "", fmt.Errorf("%w: the link %s leads nowhere", ErrHostile, shown(name))
	}
	if path.IsAbs(target) {
		up := strings.Repeat("../", strings.Count(name, "/"))
		return path.Clean(up + "./" + strings.TrimPrefix(path.Clean(target), "/")), nil
	}
	if to := path.Join(path.Dir(name), target); to == ".." || strings.HasPrefix(to, "../") {
		return "", fmt.Errorf("%w: the link %s leads out of it, to %s", ErrHostile, shown(name), shown(target))
	}
	return target, nil
}

// shown is a path in a message, short and without control characters.
func shown(name string) string {
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	return printable.Name(name)
}
