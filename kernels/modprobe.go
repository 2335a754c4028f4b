package kernels

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
)

// ErrModule is a module that a kernel's package does not have.
var ErrModule = errors.New("the module cannot be had")

// ModuleFiles gives the modules of these names from the package of a kernel's release to each, after the modules on which
// they depend, every module once. The package is fetched if it is not kept. A name may have - for _, and modules that the
// kernel has built in are passed over.
func (s *Store) ModuleFiles(ctx context.Context, release string, names []string, each func(name string, code []byte) error) error {
	k, err := s.Find(release)
	if errors.Is(err, ErrKernel) {
		k, err = s.Fetch(ctx, release)
	}
	if err != nil {
		return err
	}
	dir, err := s.FetchModules(ctx, k)
	if err != nil {
		return err
	}
	p, err := readModuleFolder(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := p.give(moduleKey(name), each); err != nil {
			return fmt.Errorf("%s for %s: %w", name, release, err)
		}
	}
	return nil
}

// Modules is ModuleFiles of the store that open opens, when modules are asked for.
func Modules(open func() (*Store, error)) func(ctx context.Context, release string, names []string, each func(name string, code []byte) error) error {
	return func(ctx context.Context, release string, names []string, each func(name string, code []byte) error) error {
		s, err := open()
		if err != nil {
			return err
		}
		return s.ModuleFiles(ctx, release, names, each)
	}
}

// moduleFolder is the folder of a package's modules: their files by the kernel's names of them, and what is built in.
type moduleFolder struct {
	files   map[string]string
	builtin map[string]bool
	given   map[string]bool
}

// moduleKey is the kernel's name of a module, or of a module's file.
func moduleKey(name string) string {
	name, _, _ = strings.Cut(filepath.Base(name), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func readModuleFolder(dir string) (*moduleFolder, error) {
	p := &moduleFolder{files: map[string]string{}, builtin: map[string]bool{}, given: map[string]bool{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(d.Name(), ".ko") {
			p.files[moduleKey(path)] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	list, err := bounded.ReadFile(filepath.Join(dir, "modules.builtin"), bounded.ListLine)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		p.builtin[moduleKey(lines.Text())] = true
	}
	return p, nil
}

// give gives a module after those on which it depends.
func (p *moduleFolder) give(name string, each func(name string, code []byte) error) error {
	if p.given[name] || p.builtin[name] {
		return nil
	}
	p.given[name] = true // first: a circle in a damaged package ends here
	file, ok := p.files[name]
	if !ok {
		return fmt.Errorf("%w: its package has no %s%s", ErrModule, name, p.near(name))
	}
	code, err := kimage.ReadUnpacked(file)
	if err != nil {
		return err
	}
	depends, err := kimage.ModuleDepends(file, code)
	if err != nil {
		return err
	}
	for _, d := range depends {
		if err := p.give(d, each); err != nil {
			return err
		}
	}
	return each(name, code)
}

// near names modules whose names have the name in them.
func (p *moduleFolder) near(name string) string {
	var list []string
	for n := range p.files {
		if strings.Contains(n, name) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return ", but " + strings.Join(list[:min(len(list), 5)], ", ")
}
