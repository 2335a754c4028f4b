package kernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/debian"
	"kprobelab/internal/rpm"
	"kprobelab/internal/unpack"
	"kprobelab/kimage"
)

// ErrPackage is a file that is no package, or a package without anything of a kernel.
var ErrPackage = errors.New("there is no kernel in it")

// places are the paths in packages of the files that belong to a kernel. The group in parentheses
// is the release.
var places = []struct {
	path *regexp.Regexp
	// name is the file's name in the store, with %s for the release.
	name string
}{
	{regexp.MustCompile(`^boot/vmlinuz-([^/]+)$`), "vmlinuz-%s"},
	{regexp.MustCompile(`^(?:usr/)?lib/modules/([^/]+)/vmlinuz$`), "vmlinuz-%s"},
	{regexp.MustCompile(`^boot/config-([^/]+)$`), "config-%s"},
	{regexp.MustCompile(`^(?:usr/)?lib/modules/([^/]+)/config$`), "config-%s"},
	{regexp.MustCompile(`^usr/lib/debug/boot/vmlinux-([^/]+)$`), "vmlinux-%s"},
	{regexp.MustCompile(`^usr/lib/debug/(?:usr/)?lib/modules/([^/]+)/vmlinux$`), "vmlinux-%s"},
	{regexp.MustCompile(`^boot/vmlinux-([^/]+)$`), "vmlinuz-%s"},
}

var moduleTree = regexp.MustCompile(`^(?:usr/)?(lib/modules/([^/]+)/.+)$`)

// ofKernel selects the files of one kernel, and records its release.
type ofKernel struct {
	release string
	err     error
}

func (o *ofKernel) wanted(name string) string {
	for _, p := range places {
		if m := p.path.FindStringSubmatch(name); m != nil && o.is(m[1]) {
			return fmt.Sprintf(p.name, o.release)
		}
	}
	if m := moduleTree.FindStringSubmatch(name); m != nil && o.is(m[2]) {
		return moduleFiles(o.release)(name)
	}
	return ""
}

func (o *ofKernel) is(release string) bool {
	switch {
	case !isRelease(release):
		o.err = fmt.Errorf("%w: %.40q is no release", ErrPackage, release)
	case o.release == "":
		o.release = release
	case o.release != release:
		o.err = fmt.Errorf("%w: it has files of %s and of %s", ErrPackage, o.release, release)
	}
	return o.err == nil
}

// Add takes a kernel of any vendor's from a file: a .deb, an .rpm, or an image. A package without an image, of modules or of
// debugging information, belongs to the kernel of its release that is there. modules, if it is not "", is a folder of the
// kernel's modules, or a package with them.
func (s *Store) Add(ctx context.Context, file, modules string) (*Kernel, error) {
	k, err := s.addFile(ctx, file)
	if err != nil || modules == "" {
		return k, err
	}
	st, err := os.Stat(modules)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return k, s.addModules(ctx, k, modules)
	}
	more, err := s.addFile(ctx, modules)
	if err == nil && more.Dir != k.Dir {
		err = fmt.Errorf("%s: %w of %s: it is of %s", modules, ErrPackage, k.Release, more.Release)
	}
	return more, err
}

func (s *Store) addFile(ctx context.Context, file string) (*Kernel, error) {
	f, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: it is no plain file", file, ErrPackage)
	}
	if st.Size() > bounded.PackageFile {
		return nil, fmt.Errorf("%s: %w: it has more than %d GiB", file, ErrPackage, bounded.PackageFile>>30)
	}
	head := make([]byte, 8)
	n, _ := io.ReadFull(f, head)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := s.watch(ctx, bounded.Reader(f, bounded.PackageFile), st.Size(), "unpack "+filepath.Base(file))
	k := &Kernel{From: filepath.Base(file)}
	var p unpack.Package
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("!<arch>\n")):
		d, err := debian.OpenDeb(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		defer d.Close()
		p, k.Package, k.Version = d, d.Name, d.Version
	case bytes.HasPrefix(head, []byte(rpm.Magic)):
		d, err := rpm.Open(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		defer d.Close()
		p, k.Package, k.Version = d, d.Name, d.Version
	default:
		return s.addImage(k, file, f)
	}
	if k, err = s.addPackage(ctx, k, p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

// addPackage unpacks a package's files of a kernel.
func (s *Store) addPackage(ctx context.Context, k *Kernel, p unpack.Package) (*Kernel, error) {
	staged, err := s.stage()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(staged)
	found := &ofKernel{}
	if err := unpack.Tree(staged, p, found.wanted); err != nil {
		return nil, err
	}
	if found.err != nil {
		return nil, found.err
	}
	if k.Release = found.release; k.Release == "" {
		return nil, fmt.Errorf("%w: the package %s has neither an image, modules nor debugging information", ErrPackage, k.Package)
	}
	image := filepath.Join(staged, "vmlinuz-"+k.Release)
	if st, err := os.Lstat(image); err == nil && st.Mode().IsRegular() {
		if _, err := kimage.Open(image, nil); err != nil {
			return nil, fmt.Errorf("its image: %w", at(err, image, "vmlinuz-"+k.Release))
		}
		unlock, err := s.lock(ctx, "kernel-"+k.Release)
		if err != nil {
			return nil, err
		}
		defer unlock()
		return s.put(k, func(dir string) error { return merge(staged, dir) })
	}
	there, err := s.ofRelease(k.Release)
	if err != nil {
		return nil, err
	}
	return there, s.extend(ctx, there, func(dir string) error { return merge(staged, dir) })
}

// at names a file in an error as the reader knows it.
func at(err error, path, name string) error {
	return errors.New(strings.ReplaceAll(err.Error(), path, name))
}

// ofRelease is the newest kernel of a release.
func (s *Store) ofRelease(release string) (*Kernel, error) {
	list, err := s.Kept()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if k.Release == release {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: it has no image, and the cache has no kernel %s that it could belong to", ErrPackage, release)
}

// addImage adds an image: its banner has the kernel's release.
func (s *Store) addImage(k *Kernel, file string, f io.Reader) (*Kernel, error) {
	img, err := kimage.Open(file, &kimage.Options{Progress: s.o.Progress})
	if err != nil {
		return nil, err
	}
	words := strings.Fields(img.Banner())
	if len(words) < 3 || !isRelease(words[2]) {
		return nil, fmt.Errorf("%s: %w: the image does not say which release it is of", file, ErrPackage)
	}
	k.Release = words[2]
	return s.put(k, func(dir string) error {
		return copyFile(f, filepath.Join(dir, "vmlinuz-"+k.Release), bounded.ImageFile)
	})
}

// copyFile copies up to a limit.
func copyFile(from io.Reader, to string, limit int64) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, bounded.Reader(from, limit))
	return errors.Join(err, out.Close())
}

// addModules copies a folder of modules: lib/modules/RELEASE, or a folder above it.
func (s *Store) addModules(ctx context.Context, k *Kernel, dir string) error {
	for _, below := range []string{"lib/modules/" + k.Release, "usr/lib/modules/" + k.Release, k.Release} {
		if st, err := os.Stat(filepath.Join(dir, below)); err == nil && st.IsDir() {
			dir = filepath.Join(dir, below)
			break
		}
	}
	return s.extend(ctx, k, func(into string) error {
		return unpack.Tree(into, &folder{dir: dir, ctx: ctx, at: "lib/modules/" + k.Release}, unpack.All)
	})
}

// folder is a folder of files as a package: its plain files.
type folder struct {
	ctx     context.Context
	dir, at string
	walked  bool
	names   []string
	open    *os.File
}

// Next implements unpack.Package.
func (d *folder) Next() (*unpack.Entry, error) {
	if !d.walked {
		if err := d.walk(); err != nil {
			return nil, err
		}
	}
	if d.open != nil {
		d.open.Close()
		d.open = nil
	}
	if err := context.Cause(d.ctx); err != nil {
		return nil, err
	}
	if len(d.names) == 0 {
		return nil, io.EOF
	}
	name := d.names[0]
	d.names = d.names[1:]
	f, err := bounded.Open(filepath.Join(d.dir, name))
	if err != nil {
		return nil, err
	}
	d.open = f
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &unpack.Entry{Name: path.Join(d.at, filepath.ToSlash(name)), Kind: unpack.File, Mode: 0o644, Size: st.Size(), Data: io.LimitReader(f, st.Size())}, nil
}

func (d *folder) walk() error {
	d.walked = true
	err := filepath.WalkDir(d.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Type().IsRegular() && filepath.Base(name) != "vmlinuz" {
			rel, err := filepath.Rel(d.dir, name)
			if err != nil {
				return err
			}
			d.names = append(d.names, rel)
		}
		if len(d.names) > bounded.PackageEntries {
			return fmt.Errorf("%s: %w: it has more than %d files", d.dir, ErrPackage, bounded.PackageEntries)
		}
		return nil
	})
	if err == nil && len(d.names) == 0 {
		err = fmt.Errorf("%s: %w: the folder has no modules", d.dir, ErrPackage)
	}
	return err
}
