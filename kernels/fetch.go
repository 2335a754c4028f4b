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
	"regexp"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/debian"
	"kprobelab/internal/unpack"
)

// suites are those of Debian's that have kernels; each brings its security updates. Experimental is none that the word
// newest means.
var suites = []string{"bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid"}

const experimental = "experimental"

// kernelPackage is a package that has something of a kernel, or names one.
var kernelPackage = regexp.MustCompile(`^linux-(image|binary|base|modules|headers|kbuild)-.*`)

// kernelImage is a package with a kernel. To 6.18 it is linux-image-RELEASE, with its configuration; from 6.19 on that package is
// empty, linux-binary-RELEASE has the image, and linux-base-RELEASE the configuration.
var kernelImage = regexp.MustCompile(`^linux-(?:image|binary)-([0-9].*amd64)(?:-unsigned)?$`)

// emptyPackage is the size of a package, in bytes, up to which it only names another.
const emptyPackage = 1_000_000

// kernelList has all packages of kernels in suites.
func (s *Store) kernelList(ctx context.Context, of []string) (*debian.List, error) {
	return s.list(ctx, of, "linux", kernelPackage.MatchString)
}

// Available are the releases of all kernels that the suites have, the newest first.
func (s *Store) Available(ctx context.Context) ([]string, error) {
	l, err := s.kernelList(ctx, append(slices.Clone(suites), experimental))
	if err != nil {
		return nil, err
	}
	return releases(l), nil
}

// releases are those of the kernels in a list, the newest first.
func releases(l *debian.List) (list []string) {
	for _, name := range l.Names() {
		if m := kernelImage.FindStringSubmatch(name); m != nil && l.Newest(name).Size > emptyPackage && releaseName.MatchString(m[1]) {
			list = append(list, m[1])
		}
	}
	slices.SortFunc(list, newer)
	return slices.Compact(list)
}

// Resolve says which release a word means: a release, a series of releases (6.12), a suite (trixie, bookworm-backports), newest; perhaps
// with a flavour (trixie/rt-amd64). For "" it is the newest of the system's own suite. The second result has its packages.
func (s *Store) Resolve(ctx context.Context, text string) (string, error) {
	release, _, err := s.resolve(ctx, text)
	return release, err
}

func (s *Store) resolve(ctx context.Context, text string) (string, *debian.List, error) {
	if text == "" {
		text = s.SystemSuite()
	}
	w, err := parseWord(text)
	if err != nil {
		return "", nil, err
	}
	if w.suite != "" {
		l, err := s.kernelList(ctx, []string{w.suite})
		if err != nil {
			return "", nil, err
		}
		release := namedBy(l, "linux-image-"+w.flavour)
		if release == "" {
			return "", nil, fmt.Errorf("%w: %s has no linux-image-%s", ErrKernel, w.suite, w.flavour)
		}
		return release, l, nil
	}
	of := slices.Clone(suites)
	if w.release != "" || w.series != "" {
		of = append(of, experimental)
	}
	l, err := s.kernelList(ctx, of)
	if err != nil {
		return "", nil, err
	}
	for _, release := range releases(l) {
		if w.means(release) {
			return release, l, nil
		}
	}
	return "", nil, fmt.Errorf("%w: no suite of Debian's has %s (kprobelab kernels list --available says which there are)", ErrKernel, text)
}

// namedBy is the release of the kernel that a package without files names.
func namedBy(l *debian.List, name string) string {
	p := l.Newest(name)
	if p == nil {
		return ""
	}
	for _, need := range p.Needed() {
		if m := kernelImage.FindStringSubmatch(need); m != nil {
			return m[1]
		}
	}
	return ""
}

// packageOf is the first of some packages that has files.
func packageOf(l *debian.List, least int64, names ...string) *debian.Package {
	for _, name := range names {
		if p := l.Newest(name); p != nil && p.Size > least {
			return p
		}
	}
	return nil
}

// Fetch has the kernel that a word means, as Resolve reads it. What the store has of that package is not fetched again.
func (s *Store) Fetch(ctx context.Context, text string) (*Kernel, error) {
	if w, err := parseWord(text); s.o.Offline || err == nil && w.release != "" && !s.o.Refresh {
		if k, err := s.Find(text); err == nil {
			return k, nil
		} else if s.o.Offline {
			return nil, fmt.Errorf("%s: %w", text, ErrOffline)
		}
	}
	release, l, err := s.resolve(ctx, text)
	if err != nil {
		return nil, err
	}
	p := packageOf(l, emptyPackage, "linux-binary-"+release, "linux-image-"+release, "linux-image-"+release+"-unsigned")
	if p == nil {
		return nil, fmt.Errorf("%w: no package has %s", ErrKernel, release)
	}
	unlock, err := s.lock(ctx, "kernel-"+release)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list, err := s.Kept()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if k.Packaged == p.SHA256 {
			return k, nil
		}
	}
	k := &Kernel{Release: release, Package: p.Name, Version: p.Version, From: p.Base, Packaged: p.SHA256}
	return s.put(k, func(dir string) error {
		s.sayPackage(p)
		if err := s.unpackDeb(ctx, p, dir, kernelFiles(release)); err != nil {
			return err
		}
		base := packageOf(l, 0, "linux-base-"+release)
		if _, err := os.Stat(filepath.Join(dir, "config-"+release)); err == nil || base == nil {
			return nil
		}
		return s.unpackDeb(ctx, base, dir, kernelFiles(release))
	})
}

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
		// The same image came in another package: what that had beside it stays, and what this has comes to it.
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

// merge moves what a folder has into another one. A file of the same name is replaced.
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

// unpackDeb fetches a package, and unpacks what is wanted of it into a folder.
func (s *Store) unpackDeb(ctx context.Context, p *debian.Package, dir string, wanted unpack.Wanted) error {
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
		err = unpack.Tree(dir, d, wanted)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path.Base(p.Filename), err)
	}
	return nil
}

// watch tells of progress in a file, and ends with the context.
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

// Debuginfo has the vmlinux of a kernel with its debugging information, from Debian's package of 300 MB to 1 GB.
func (s *Store) Debuginfo(ctx context.Context, k *Kernel) (string, error) {
	if k.Debuginfo != "" {
		return k.Debuginfo, nil
	}
	if err := s.more(ctx, k, debugFiles(k.Release), "linux-image-"+k.Release+"-dbg"); err != nil {
		return "", err
	}
	if k.Debuginfo == "" {
		return "", fmt.Errorf("%w: the package with the debugging information of %s has no vmlinux", ErrKernel, k.Release)
	}
	return k.Debuginfo, nil
}

// FetchModules has the folder of a kernel's modules. To 6.18 they are in the image's package, from 6.19 on in their own.
func (s *Store) FetchModules(ctx context.Context, k *Kernel) (string, error) {
	if k.Modules != "" {
		return k.Modules, nil
	}
	if err := s.more(ctx, k, moduleFiles(k.Release), "linux-modules-"+k.Release, "linux-image-"+k.Release, "linux-image-"+k.Release+"-unsigned"); err != nil {
		return "", err
	}
	if k.Modules == "" {
		return "", fmt.Errorf("%w: no package has the modules of %s", ErrKernel, k.Release)
	}
	return k.Modules, nil
}

// more adds files of the first of some packages that is there to a kernel.
func (s *Store) more(ctx context.Context, k *Kernel, wanted unpack.Wanted, names ...string) error {
	l, err := s.kernelList(ctx, append(slices.Clone(suites), experimental))
	if err != nil {
		return err
	}
	p := packageOf(l, emptyPackage, names...)
	if p == nil {
		return fmt.Errorf("%w: Debian has no package %s (older ones leave the archive)", ErrKernel, names[0])
	}
	if k.Version != "" && p.Version != k.Version {
		return fmt.Errorf("%w: the package %s is of version %s, and this kernel of %s", ErrKernel, p.Name, p.Version, k.Version)
	}
	s.sayPackage(p)
	return s.extend(ctx, k, func(dir string) error { return s.unpackDeb(ctx, p, dir, wanted) })
}

// extend adds to a kernel's folder what do puts into another.
func (s *Store) extend(ctx context.Context, k *Kernel, do func(dir string) error) error {
	unlock, err := s.lock(ctx, "kernel-"+k.Release)
	if err != nil {
		return err
	}
	defer unlock()
	staged, err := s.stage()
	if err != nil {
		return err
	}
	defer os.RemoveAll(staged)
	if err := do(staged); err != nil {
		return err
	}
	if err := merge(staged, k.Dir); err != nil {
		return err
	}
	now, err := readKernel(k.Dir)
	if err == nil {
		*k = *now
	}
	return err
}
