package kernels

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"kprobelab/internal/debian"
	"kprobelab/internal/unpack"
)

// suites are Debian's suites with kernels; each includes its security updates. The word newest
// never selects a kernel of experimental.
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

// releases returns the releases of the kernels in a list, the newest first.
func releases(l *debian.List) (list []string) {
	for _, name := range l.Names() {
		if m := kernelImage.FindStringSubmatch(name); m != nil && l.Newest(name).Size > emptyPackage && isRelease(m[1]) {
			list = append(list, m[1])
		}
	}
	slices.SortFunc(list, newer)
	return slices.Compact(list)
}

// Resolve returns the release that a word means: a release, a series of releases (6.12), a suite
// (trixie, bookworm-backports), newest; perhaps with a flavour (trixie/rt-amd64). "" means the
// newest of the system's own suite.
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

// Fetch has the kernel that a word means, as Resolve reads it, or that the lock has for it; then the error is ErrLock if that
// kernel cannot be had. What the store has of that package is not fetched again.
func (s *Store) Fetch(ctx context.Context, text string) (*Kernel, error) {
	if p := s.Pin(text); p != nil {
		return s.pinned(ctx, p)
	}
	if s.loose(text) {
		return nil, s.errLoose(ctx, text)
	}
	return s.fetch(ctx, text, nil)
}

// fetch is Fetch of a word without a pin, or of a pin's release.
func (s *Store) fetch(ctx context.Context, text string, pin *Pin) (*Kernel, error) {
	if w, err := parseWord(text); s.o.Offline || pin == nil && err == nil && w.release != "" && !s.o.Refresh {
		if k, err := s.Find(text); err == nil {
			return k, nil
		} else if s.o.Offline {
			return nil, fmt.Errorf("%s: %w", cmp.Or(text, "a kernel"), ErrOffline)
		}
	}
	release, l, err := s.resolve(ctx, text)
	if err != nil {
		return nil, err
	}
	w, _ := parseWord(cmp.Or(text, s.SystemSuite()))
	p := packageOf(l, emptyPackage, "linux-binary-"+release, "linux-image-"+release, "linux-image-"+release+"-unsigned")
	if p == nil {
		return nil, fmt.Errorf("%w: no package has %s", ErrKernel, release)
	}
	if pin != nil && pin.Packaged != "" && pin.Packaged != p.SHA256 {
		return nil, fmt.Errorf("%w: the archive has another build of it, %s", ErrKernel, p.Version)
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
			k.fetchedAs(w)
			return k, nil
		}
	}
	k := &Kernel{Release: release, Package: p.Name, Version: p.Version, From: p.Base, Packaged: p.SHA256}
	k.fetchedAs(w)
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

// Debuginfo has the vmlinux of a kernel with its debugging information, from Debian's package of 300 MB to 1 GB.
func (s *Store) Debuginfo(ctx context.Context, k *Kernel) (string, error) {
	if k.Debuginfo != "" {
		return k.Debuginfo, nil
	}
	if err := s.more(ctx, k, debugFiles(k.Release), "vmlinux-"+k.Release, "linux-image-"+k.Release+"-dbg"); err != nil {
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
	if err := s.more(ctx, k, moduleFiles(k.Release), "", "linux-modules-"+k.Release, "linux-image-"+k.Release, "linux-image-"+k.Release+"-unsigned"); err != nil {
		return "", err
	}
	if k.Modules == "" {
		return "", fmt.Errorf("%w: no package has the modules of %s", ErrKernel, k.Release)
	}
	return k.Modules, nil
}

// more adds files of the first of some packages that is there to a kernel, up to a file, "" for all.
func (s *Store) more(ctx context.Context, k *Kernel, wanted unpack.Wanted, last string, names ...string) error {
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
	return s.extend(ctx, k, func(dir string) error { return s.unpackDebTo(ctx, p, dir, wanted, last) })
}

// extend adds to a kernel's folder the files that do puts into another one.
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
