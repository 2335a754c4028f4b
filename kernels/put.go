package kernels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/debian"
	"kprobelab/internal/unpack"
)

// put makes a kernel's folder by do.
func (s *Store) put(k *Kernel, do func(dir string) error) (*Kernel, error) {
	clean(filepath.Join(s.o.Dir, kernelsDir))
	staged, err := s.stage()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(staged)
	if err := do(staged); err != nil {
		return nil, err
	}
	image := filepath.Join(staged, "vmlinuz-"+k.Release)
	switch st, err := os.Lstat(image); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: the package %s has no image of %s", ErrKernel, k.Package, k.Release)
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%w: the image of %s is no plain file", ErrKernel, k.Release)
	}
	if k.SHA256, err = fileSum(image); err != nil {
		return nil, err
	}
	if err := k.write(staged); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.o.Dir, k.folder())
	if err := os.Rename(staged, dir); err != nil {
		// The same image came in another package: that package's other files stay, and this one's
		// are added.
		if err := merge(staged, dir); err != nil {
			return nil, err
		}
	}
	return readKernel(dir)
}

// stage makes a folder for a kernel that is being unpacked.
func (s *Store) stage() (string, error) {
	dir := filepath.Join(s.o.Dir, kernelsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	staged, err := os.MkdirTemp(dir, ".new-*")
	if err != nil {
		return "", err
	}
	return staged, os.Chmod(staged, 0o755)
}

// merge moves the content of a folder into another one. A file of the same name is replaced.
func merge(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		here, there := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if st, err := os.Lstat(there); err == nil && st.IsDir() && e.IsDir() {
			if err := merge(here, there); err != nil {
				return err
			}
			continue
		}
		if err := os.RemoveAll(there); err != nil {
			return err
		}
		if err := os.Rename(here, there); err != nil {
			return err
		}
	}
	return nil
}

// fileSum is a file's SHA-256.
func fileSum(name string) (string, error) {
	f, err := bounded.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, bounded.Reader(f, bounded.PackageBytes)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// kernelFiles keeps the image and the configuration of a release, under the names that /boot uses. The modules, nine tenths of a
// package, are left.
func kernelFiles(release string) unpack.Wanted {
	return func(name string) string {
		for _, kind := range []string{"vmlinuz", "config"} {
			if name == "boot/"+kind+"-"+release || name == "usr/lib/modules/"+release+"/"+kind || name == "lib/modules/"+release+"/"+kind {
				return kind + "-" + release
			}
		}
		return ""
	}
}

// moduleFiles keeps the modules of a release.
func moduleFiles(release string) unpack.Wanted {
	return func(name string) string {
		name = strings.TrimPrefix(name, "usr/")
		if !strings.HasPrefix(name, "lib/modules/"+release+"/") || path.Base(name) == "build" || path.Base(name) == "source" || path.Base(name) == "vmlinuz" {
			return ""
		}
		return name
	}
}

// debugFiles keeps the vmlinux with debugging information. The modules' own, most of the package, is left.
func debugFiles(release string) unpack.Wanted {
	return func(name string) string {
		switch name {
		case "usr/lib/debug/boot/vmlinux-" + release, "usr/lib/debug/lib/modules/" + release + "/vmlinux":
			return "vmlinux-" + release
		}
		return ""
	}
}

func (s *Store) sayPackage(p *debian.Package) {
	s.say("fetching the package %s %s (%.1f MB)", p.Name, p.Version, float64(p.Size)/1e6)
}

// unpackDeb fetches a package, and unpacks the wanted files into a folder.
func (s *Store) unpackDeb(ctx context.Context, p *debian.Package, dir string, wanted unpack.Wanted) error {
	return s.unpackDebTo(ctx, p, dir, wanted, "")
}

// unpackDebTo is unpackDeb up to a file of the folder, "" for all: for debugging information the
// rest would take minutes to unpack.
func (s *Store) unpackDebTo(ctx context.Context, p *debian.Package, dir string, wanted unpack.Wanted, last string) error {
	if s.o.Offline {
		return fmt.Errorf("the package %s: %w", p.Name, ErrOffline)
	}
	if p.Size > bounded.PackageFile {
		return fmt.Errorf("%w: the package %s has %d bytes", ErrKernel, p.Name, p.Size)
	}
	file, err := s.client.Fetch(ctx, strings.TrimSuffix(p.Base, "/")+"/"+p.Filename, p.SHA256, p.Size, filepath.Join(s.o.Dir, partsDir), p.Name)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	f, err := bounded.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := debian.OpenDeb(s.watch(ctx, f, p.Size, "unpack "+p.Name))
	if err == nil {
		defer d.Close()
		err = unpack.Tree(dir, &upTo{d, dir, last}, wanted)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path.Base(p.Filename), err)
	}
	return nil
}

// upTo is a package up to a file that was unpacked.
type upTo struct {
	unpack.Package
	dir, last string
}

// Next implements unpack.Package.
func (u *upTo) Next() (*unpack.Entry, error) {
	if u.last != "" {
		if _, err := os.Lstat(filepath.Join(u.dir, u.last)); err == nil {
			return nil, io.EOF
		}
	}
	return u.Package.Next()
}

// watch reports progress in a file, and ends with the context.
func (s *Store) watch(ctx context.Context, r io.Reader, size int64, stage string) io.Reader {
	return &watched{ctx: ctx, r: r, size: size, stage: stage, tell: s.o.Progress}
}

type watched struct {
	ctx        context.Context
	r          io.Reader
	done, size int64
	stage      string
	tell       func(string, int64, int64)
}

func (w *watched) Read(p []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	if w.done += int64(n); w.tell != nil {
		w.tell(w.stage, w.done, w.size)
	}
	return n, err
}
