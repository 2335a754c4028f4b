package kimage

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/kimage/evidence"
)

// packaged records which modules of a package were loaded.
type packaged struct {
	// names are the loaded ones in the order of loading; failed maps the others to
	// the reason why they could not be loaded.
	names  []string
	failed map[string]error
}

// Packaged are the modules that Options.Package has brought, by the order of
// loading.
func (img *Image) Packaged() []string { return img.packaged.names }

var moduleName = regexp.MustCompile(`\.ko(\.(gz|xz|zst))?$`)

// packageFile is a module of a package on its way.
type packageFile struct {
	f       *elfFile
	name    string
	depends []string
}

// loadPackage loads the modules of the package. One that cannot be loaded is left
// out, and a fact says so: others do not need it.
func (img *Image) loadPackage() error {
	if img.opts.Package == "" {
		return nil
	}
	files, err := img.packageFiles(img.opts.Package, bounded.PackageModules)
	if err != nil {
		return err
	}
	byName := map[string]*packageFile{}
	for _, p := range files {
		if _, twice := byName[p.name]; !twice {
			byName[p.name] = p
		}
	}
	for i, p := range files {
		img.loadPackaged(byName, p.name)
		if img.opts.Progress != nil {
			img.opts.Progress("modules", int64(i+1), int64(len(files)))
		}
	}
	value := fmt.Sprintf("%d of the package", len(img.packaged.names))
	for name, err := range img.packaged.failed {
		value = fmt.Sprintf("%s, %d are left out (%s: %v)", value, len(img.packaged.failed), name, err)
		break
	}
	img.facts.Add(evidence.Fact{Name: "modules", Value: value, Evidence: img.opts.Package})
	return nil
}

// loadPackaged loads a module after the modules on which it depends.
func (img *Image) loadPackaged(byName map[string]*packageFile, name string) {
	p := byName[name]
	if p == nil {
		return
	}
	delete(byName, name) // each once, whatever it depends on
	for _, d := range p.depends {
		img.loadPackaged(byName, d)
	}
	err := img.loadModuleELF(p.f)
	p.f = nil // hundreds of megabytes in all
	if err != nil {
		if img.packaged.failed == nil {
			img.packaged.failed = map[string]error{}
		}
		img.packaged.failed[name] = err
		return
	}
	img.packaged.names = append(img.packaged.names, name)
}

// packageFiles reads the modules below a folder that were made for the kernel and are
// not loaded, by the order of their paths. They have at most so many bytes, unpacked.
func (img *Image) packageFiles(dir string, most int64) (list []*packageFile, err error) {
	loaded := map[string]bool{}
	for _, name := range img.Modules() {
		loaded[name] = true
	}
	total := int64(0)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !moduleName.MatchString(path) {
			return err
		}
		b, err := readFile(path)
		if err != nil {
			return err
		}
		if b, err = unwrap(path, b, nil); err != nil {
			return err
		}
		f, err := parseModule(path, b)
		if err != nil {
			return err
		}
		p := newPackageFile(f)
		magic, _, _ := strings.Cut((&moduleFile{f: f}).modinfo("vermagic"), " ")
		if loaded[p.name] || magic != img.facts.Value("release") {
			return nil
		}
		if total += int64(len(b)); total > most {
			return badFormat(dir, -1, "its modules have more than %d bytes", most)
		}
		list = append(list, p)
		return nil
	})
	return list, err
}

func newPackageFile(f *elfFile) *packageFile {
	m := &moduleFile{f: f}
	return &packageFile{f: f, name: m.nameOf(), depends: m.depends()}
}

// depends are the modules that the module needs, by the kernel's names of them.
func (m *moduleFile) depends() (list []string) {
	for _, d := range strings.Split(m.modinfo("depends"), ",") {
		if d != "" {
			list = append(list, strings.ReplaceAll(d, "-", "_"))
		}
	}
	return list
}

// ModuleDepends returns the modules on which the module of a file depends, as its .modinfo names them.
func ModuleDepends(file string, code []byte) ([]string, error) {
	f, err := parseModule(file, code)
	if err != nil {
		return nil, err
	}
	return (&moduleFile{f: f}).depends(), nil
}
