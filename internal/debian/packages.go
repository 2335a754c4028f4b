package debian

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// Package is an entry of a list of packages.
type Package struct {
	Name, Version, Architecture string
	// Base is the address of the archive, Filename the package's path below it.
	Filename, Base string
	Sum
	// Needs are its Pre-Depends and Depends; Provides lists further names for it.
	Needs, Provides string `json:",omitempty"`
}

// List has the packages of suites, the newest of each name first.
type List struct {
	named    map[string][]*Package
	provided map[string][]*Package
}

// NewList makes an empty list.
func NewList() *List { return &List{map[string][]*Package{}, map[string][]*Package{}} }

var packageFields = []string{"package", "version", "architecture", "filename", "sha256", "size", "depends", "pre-depends", "provides"}

// ReadPackages reads the wanted entries of a list of packages; base is the address of the archive.
func ReadPackages(r io.Reader, base string, wanted func(name string) bool) ([]*Package, error) {
	var list []*Package
	err := stanzas(bounded.Reader(r, bounded.PackageIndex), func(f string) bool { return slices.Contains(packageFields, f) }, func(f map[string]string) error {
		if !wanted(f["package"]) {
			return nil
		}
		sum, ok := parseSum(f["sha256"], f["size"])
		if name := f["filename"]; !ok || name == "" || path.Clean("/"+name) != "/"+strings.TrimPrefix(name, "./") {
			return fmt.Errorf("%w: what it says of the package %.60q is damaged", ErrIndex, f["package"])
		}
		needs := f["pre-depends"]
		if needs != "" && f["depends"] != "" {
			needs += ", "
		}
		list = append(list, &Package{
			Name: f["package"], Version: f["version"], Architecture: f["architecture"], Filename: f["filename"], Base: base,
			Sum: sum, Needs: needs + f["depends"], Provides: f["provides"],
		})
		return nil
	})
	return list, err
}

// Add puts packages into the list.
func (l *List) Add(packages []*Package) {
	for _, p := range packages {
		put(l.named, p.Name, p)
		for _, r := range relations(p.Provides) {
			for _, one := range r {
				put(l.provided, one.name, p)
			}
		}
	}
}

func put(m map[string][]*Package, name string, p *Package) {
	at, _ := slices.BinarySearchFunc(m[name], p, func(a, b *Package) int { return Compare(b.Version, a.Version) })
	m[name] = slices.Insert(m[name], at, p)
}

// Newest is the newest package of a name, nil without one.
func (l *List) Newest(name string) *Package {
	if of := l.named[name]; len(of) > 0 {
		return of[0]
	}
	return nil
}

// Names are the names of all packages, in order.
func (l *List) Names() []string { return slices.Sorted(maps.Keys(l.named)) }

// Needed returns the names in the package's dependencies, alternatives included.
func (p *Package) Needed() (names []string) {
	for _, of := range relations(p.Needs) {
		for _, one := range of {
			names = append(names, one.name)
		}
	}
	return names
}
