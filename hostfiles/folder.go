package hostfiles

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"kprobelab/internal/bounded"
)

// Walk calls fn with a file or a folder of the host, and with everything in the folder, for a path of the guest.
// Permissions are kept. If fn returns fs.SkipDir for a folder, the walk leaves out what is in it. Devices, pipes and sockets are left out.
func Walk(host, guest string, fn func(File) error) error {
	if !path.IsAbs(guest) {
		return fmt.Errorf("%q is no absolute path of the guest", guest)
	}
	// The file that is named may be a link; links in a folder stay links.
	root, err := filepath.EvalSymlinks(host)
	if err != nil {
		if _, plain := os.Stat(host); plain != nil {
			err = plain // it has the name
		}
		return err
	}
	n := 0
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f := File{Path: path.Join(guest, filepath.ToSlash(inside)), Mode: info.Mode().Perm(), Modified: info.ModTime().Unix()}
		switch {
		case info.IsDir():
			f.Mode |= fs.ModeDir
			f.Modified = 0
		case info.Mode().IsRegular():
			f.From, f.Size = name, info.Size()
		case info.Mode()&fs.ModeSymlink != 0:
			if f.Link, err = os.Readlink(name); err != nil {
				return err
			}
			f.Mode = fs.ModeSymlink | 0o777
		case name == root:
			return fmt.Errorf("%s is %s, neither a file nor a folder", host, kind(info.Mode()))
		default:
			return nil
		}
		if n++; n > bounded.GuestFiles {
			return fmt.Errorf("%s has more than %d files", host, bounded.GuestFiles)
		}
		return fn(f)
	})
}
