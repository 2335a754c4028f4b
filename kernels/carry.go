package kernels

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"kprobelab/internal/bounded"
	"kprobelab/internal/unpack"
)

// ErrExported is a file that Export has not written, or that has changed since.
var ErrExported = errors.New("it is no exported kernel")

// exported is the first entry of an exported file.
type exported struct {
	Kernel Kernel `json:"kernel"`
	// Files are the checksums (SHA-256) of the files that follow.
	Files map[string]string `json:"files"`
}

const exportedName = "exported.json"

// SaveDump keeps the memory of a kernel that was booted on a machine. save must write it to the file that it gets.
func (s *Store) SaveDump(ctx context.Context, k *Kernel, m Machine, save func(file string) error) error {
	return s.extend(ctx, k, func(dir string) error {
		noted := *k
		noted.Booted = &m
		return errors.Join(save(filepath.Join(dir, k.Release+".core")), noted.write(dir))
	})
}

// carried are the files of a kernel that run it elsewhere: its memory, its image and its configuration.
func (k *Kernel) carried() (names []string) {
	for _, path := range []string{k.Dump, k.Image, k.Configuration} {
		if path != "" {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// Export writes a booted kernel as one file, which Import takes on systems without QEMU and without a network.
func (s *Store) Export(ctx context.Context, k *Kernel, w io.Writer) error {
	if k.Dump == "" {
		return fmt.Errorf("%w: %s was not booted (kprobelab kernels boot %s)", ErrKernel, k.Release, k.Release)
	}
	e := exported{*k, map[string]string{}}
	e.Kernel.Dir, e.Kernel.Image, e.Kernel.Configuration, e.Kernel.Debuginfo, e.Kernel.Modules, e.Kernel.Dump = "", "", "", "", "", ""
	for _, name := range k.carried() {
		var err error
		if e.Files[name], err = fileSum(filepath.Join(k.Dir, name)); err != nil {
			return err
		}
	}
	head, err := json.Marshal(e)
	if err != nil {
		return err
	}
	z, err := zstd.NewWriter(w)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	err = t.WriteHeader(&tar.Header{Name: exportedName, Mode: 0o644, Size: int64(len(head))})
	if err == nil {
		_, err = t.Write(head)
	}
	for _, name := range k.carried() {
		if err == nil {
			err = s.exportFile(ctx, t, filepath.Join(k.Dir, name))
		}
	}
	return errors.Join(err, t.Close(), z.Close())
}

func (s *Store) exportFile(ctx context.Context, t *tar.Writer, path string) error {
	f, err := bounded.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, s.watch(ctx, f, st.Size(), "export "+name))
	return err
}

// Import reads a file of Export. Each file in it is compared with its checksum.
func (s *Store) Import(ctx context.Context, file string) (*Kernel, error) {
	k, err := s.importFile(ctx, file)
	var path *os.PathError
	if err != nil && !errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return k, err
}

func (s *Store) importFile(ctx context.Context, file string) (*Kernel, error) {
	f, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > bounded.PackageFile {
		return nil, fmt.Errorf("%w: it has more than %d GiB", ErrExported, bounded.PackageFile>>30)
	}
	z, err := unpack.Stream(s.watch(ctx, bounded.Reader(f, bounded.PackageFile), st.Size(), "import "+filepath.Base(file)))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	staged, err := s.stage()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(staged)
	// Plain names alone are kept; all else is an error below.
	if err := unpack.Tree(staged, unpack.Tar(z), func(name string) string {
		if filepath.Base(name) != name {
			return ""
		}
		return name
	}); err != nil {
		return nil, err
	}
	e, err := readExported(staged)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(staged, exportedName)); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, "kernel-"+e.Kernel.Release)
	if err != nil {
		return nil, err
	}
	defer unlock()
	k, err := s.put(&e.Kernel, func(dir string) error { return merge(staged, dir) })
	if err == nil && k.Dump == "" {
		err = fmt.Errorf("%w: it has no dump", ErrExported)
	}
	return k, err
}

// readExported reads the description in an exported file, and checks the other files.
func readExported(dir string) (*exported, error) {
	b, err := bounded.ReadFile(filepath.Join(dir, exportedName), bounded.ListLine)
	if err != nil {
		return nil, ErrExported
	}
	var e exported
	if err := json.Unmarshal(b, &e); err != nil || !isRelease(e.Kernel.Release) {
		return nil, fmt.Errorf("%w: it does not say which kernel it has", ErrExported)
	}
	r := e.Kernel.Release
	known := map[string]bool{"vmlinuz-" + r: true, "config-" + r: true, r + ".core": true}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range entries {
		if f.Name() == exportedName {
			continue
		}
		if !known[f.Name()] || !f.Type().IsRegular() {
			return nil, fmt.Errorf("%w: it has a file %.60q", ErrExported, f.Name())
		}
		if got, err := fileSum(filepath.Join(dir, f.Name())); err != nil || got != e.Files[f.Name()] {
			return nil, fmt.Errorf("%w: the checksum of %s differs", ErrExported, f.Name())
		}
		delete(known, f.Name())
	}
	if known[r+".core"] || known["vmlinuz-"+r] {
		return nil, fmt.Errorf("%w: it lacks the dump or the image of %s", ErrExported, r)
	}
	return &e, nil
}
