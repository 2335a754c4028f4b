package kernels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/internal/debian"
)

// Kernel is a kernel in the store.
type Kernel struct {
	// Release is the kernel's release, as uname -r prints it.
	Release string `json:"release"`
	// Package and Version are the package that it came in, From the file or the suite; Packaged is the package's checksum.
	Package  string `json:"package,omitempty"`
	Version  string `json:"version,omitempty"`
	From     string `json:"from,omitempty"`
	Packaged string `json:"package_sha256,omitempty"`
	// SHA256 is the checksum of its image.
	SHA256 string `json:"sha256"`
	// Suites are the suites that it was fetched as the kernel of, with its flavour: trixie/cloud-amd64.
	Suites []string `json:"suites,omitempty"`
	// Booted is the machine of the dump; nil if it was not noted.
	Booted *Machine `json:"booted,omitempty"`

	// Dir is its folder. The others are files and folders there, "" if absent: the image, its
	// configuration, the vmlinux with debugging information, the folder that has lib/modules, the
	// memory of the booted kernel.
	Dir           string `json:"dir,omitempty"`
	Image         string `json:"image,omitempty"`
	Configuration string `json:"config,omitempty"`
	Debuginfo     string `json:"debuginfo,omitempty"`
	Modules       string `json:"modules,omitempty"`
	Dump          string `json:"dump,omitempty"`
}

// ErrKernel is a kernel that cannot be had.
var ErrKernel = errors.New("the kernel cannot be had")

// releaseName matches a release that can be part of a file name. (A bound in the pattern would make each start of the
// program a millisecond slower.)
var releaseName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+~-]*$`)

func isRelease(name string) bool { return len(name) <= 128 && releaseName.MatchString(name) }

// manifest is the file in a kernel's folder that describes the kernel.
const manifest = "kernel.json"

// folder is the name of a kernel's folder: one release may have been built several times.
func (k *Kernel) folder() string { return filepath.Join(kernelsDir, k.Release+"-"+k.SHA256[:12]) }

// write puts the manifest into a folder.
func (k *Kernel) write(dir string) error {
	b, err := k.manifest()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifest), b, 0o644)
}

func (k *Kernel) manifest() ([]byte, error) {
	said := *k
	said.Dir, said.Image, said.Configuration, said.Debuginfo, said.Modules, said.Dump = "", "", "", "", "", ""
	b, err := json.MarshalIndent(said, "", "  ")
	return append(b, '\n'), err
}

// fetchedAs notes that the kernel is the one of a word's suite, so that the word means it without a network, too.
func (k *Kernel) fetchedAs(w word) {
	if w.suite == "" || slices.Contains(k.Suites, w.of()) {
		return
	}
	k.Suites = append(k.Suites, w.of())
	if k.Dir == "" {
		return
	}
	// A folder that cannot be written has the kernel all the same.
	if b, err := k.manifest(); err == nil && replace(filepath.Join(k.Dir, manifest), b) == nil {
		_ = os.Chmod(filepath.Join(k.Dir, manifest), 0o644)
	}
}

// readKernel reads a kernel's folder.
func readKernel(dir string) (*Kernel, error) {
	b, err := bounded.ReadFile(filepath.Join(dir, manifest), bounded.ListLine)
	if err != nil {
		return nil, err
	}
	k := &Kernel{}
	if err := json.Unmarshal(b, k); err != nil || !isRelease(k.Release) || !sum.MatchString(k.SHA256) {
		return nil, fmt.Errorf("%w: %s does not say which kernel it is", ErrKernel, filepath.Join(dir, manifest))
	}
	k.Dir = dir
	for _, f := range []struct {
		name string
		path *string
	}{
		{"vmlinuz-" + k.Release, &k.Image},
		{"config-" + k.Release, &k.Configuration},
		{"vmlinux-" + k.Release, &k.Debuginfo},
		{filepath.Join("lib", "modules", k.Release), &k.Modules},
		{k.Release + ".core", &k.Dump},
	} {
		*f.path = ""
		if _, err := os.Stat(filepath.Join(dir, f.name)); err == nil {
			*f.path = filepath.Join(dir, f.name)
		}
	}
	if k.Image == "" {
		return nil, fmt.Errorf("%w: %s has no image", ErrKernel, dir)
	}
	return k, nil
}

// sum is a checksum, SHA-256.
var sum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Kept lists the kernels of the store, the newest first. Damaged ones are left out.
func (s *Store) Kept() ([]*Kernel, error) {
	entries, err := os.ReadDir(filepath.Join(s.o.Dir, kernelsDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*Kernel
	for _, e := range entries {
		if e.Name()[0] == '.' {
			continue
		}
		if k, err := readKernel(filepath.Join(s.o.Dir, kernelsDir, e.Name())); err == nil {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *Kernel) int {
		return cmp.Or(debian.Compare(b.Release, a.Release), debian.Compare(b.Version, a.Version), cmp.Compare(a.SHA256, b.SHA256))
	})
	return list, nil
}

// Find returns the newest kernel of the store that a word means, with the words of Fetch, or the kernel that the lock has for
// it; the error is ErrKernel if there is none. A suite means the newest kernel that it was fetched as, or, with Options.Offline, that
// the cached index names. The empty word is the system's own suite.
func (s *Store) Find(word string) (*Kernel, error) {
	if word == "" {
		word = s.SystemSuite()
	}
	list, err := s.Kept()
	if err != nil {
		return nil, err
	}
	w, err := parseWord(word)
	if err != nil {
		return nil, err
	}
	pin := s.Pin(word)
	for _, k := range list {
		if pin != nil && pin.allows(k) || pin == nil && !s.loose(word) && (w.means(k.Release) || slices.Contains(k.Suites, w.of())) {
			return k, nil
		}
	}
	if w.suite != "" && pin == nil && !s.loose(word) && s.o.Offline { // fetched by another word: the cached index tells
		if release, _, err := s.resolve(context.Background(), word); err == nil {
			for _, k := range list {
				if k.Release == release {
					return k, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("%w: the cache has no %s", ErrKernel, word)
}

// Remove removes all builds of a release, and returns them.
func (s *Store) Remove(release string) ([]*Kernel, error) {
	list, err := s.Kept()
	if err != nil {
		return nil, err
	}
	var gone []*Kernel
	for _, k := range list {
		if k.Release != release {
			continue
		}
		if err := os.RemoveAll(k.Dir); err != nil {
			return gone, err
		}
		gone = append(gone, k)
	}
	if gone == nil {
		return nil, fmt.Errorf("%w: the cache has no %s", ErrKernel, release)
	}
	return gone, nil
}
