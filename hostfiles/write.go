package hostfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ErrWrite is a place of the host that files are not written to.
var ErrWrite = errors.New("it is not written")

// Write writes files that came out of a guest, with their content in Data: the first one becomes the file or the folder
// named host, the others lie in it. Nothing is written through a link, nor outside of host. A file that is there is
// replaced, a folder is added to.
func Write(host string, files []File) error {
	if len(files) == 0 {
		return nil
	}
	top := files[0]
	if !top.Mode.IsDir() {
		dir, err := os.OpenRoot(filepath.Dir(host))
		if err != nil {
			return err
		}
		defer dir.Close()
		return write(dir, filepath.Base(host), top)
	}
	if info, err := os.Lstat(host); err == nil && !info.IsDir() {
		return fmt.Errorf("%s: %w: it is there, and no folder", host, ErrWrite)
	} else if err != nil {
		if err := os.Mkdir(host, 0o777); err != nil {
			return err
		}
	}
	dir, err := os.OpenRoot(host)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, f := range files[1:] {
		inside, ok := strings.CutPrefix(f.Path, strings.TrimSuffix(top.Path, "/")+"/")
		if !ok || path.Clean(inside) != inside || !filepath.IsLocal(inside) {
			return fmt.Errorf("%s: %w: the path %q leads out of it", host, ErrWrite, f.Path)
		}
		if err := write(dir, inside, f); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file or makes a folder.
func write(dir *os.Root, name string, f File) error {
	info, err := dir.Lstat(name)
	switch there := err == nil; {
	case there && f.Mode.IsDir() && info.IsDir():
		return nil
	case there && (f.Mode.IsDir() || !info.Mode().IsRegular()):
		return fmt.Errorf("%s: %w: it is there, and no file", filepath.Join(dir.Name(), name), ErrWrite)
	case f.Mode.IsDir():
		return dir.Mkdir(name, 0o777)
	case !f.Mode.IsRegular():
		return fmt.Errorf("%s: %w: it is neither a file nor a folder", f.Path, ErrWrite)
	case there:
		if err := dir.Remove(name); err != nil {
			return err
		}
	}
	perm := fs.FileMode(0o666)
	if f.Mode.Perm()&0o111 != 0 {
		perm = 0o777
	}
	to, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = to.Write(f.Data)
	return errors.Join(err, to.Close())
}
