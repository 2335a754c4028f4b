package kernels

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"kprobelab/hostfiles"
	"kprobelab/internal/bounded"
)

// ErrBuild: a module is not built.
var ErrBuild = errors.New("the module is not built")

// BuildModule builds the module of a folder, by kbuild and the host's compiler, with the headers of a kernel's release, and
// returns the name and the content of its file. The folder stays as it is: a copy is built.
func (s *Store) BuildModule(ctx context.Context, release, folder string) (name string, code []byte, err error) {
	for _, program := range []string{"make", "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", nil, fmt.Errorf("%w: %s is not on PATH", ErrBuild, program)
		}
	}
	work, err := os.MkdirTemp("", "kprobelab-module-*")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(work)
	if err := copyFolder(folder, work); err != nil {
		return "", nil, err
	}
	headers, err := s.Headers(ctx, release)
	if err != nil {
		return "", nil, err
	}
	s.say("building the module of %s for %s", folder, release)
	if err := kbuild(ctx, headers, work); err != nil {
		return "", nil, fmt.Errorf("%w for %s: %w", ErrBuild, release, err)
	}
	return builtModule(work)
}

// Builder returns a function that builds the module of a folder for a kernel (Store.BuildModule). open is called when there is a folder.
func Builder(open func() (*Store, error)) func(ctx context.Context, release, folder string) (name string, code []byte, err error) {
	return func(ctx context.Context, release, folder string) (string, []byte, error) {
		if err := CheckModuleFolder(folder); err != nil {
			return "", nil, err
		}
		s, err := open()
		if err != nil {
			return "", nil, err
		}
		return s.BuildModule(ctx, release, folder)
	}
}

// CheckModuleFolder refuses a path at which no folder is, before anything is fetched or written for a build.
func CheckModuleFolder(folder string) error {
	if st, err := os.Stat(folder); err != nil || !st.IsDir() {
		return fmt.Errorf("%w: %s is no folder", ErrBuild, folder)
	}
	return nil
}

// copyFolder copies the sources of a module: files, folders and links.
func copyFolder(folder, to string) error {
	if err := CheckModuleFolder(folder); err != nil {
		return err
	}
	var size int64
	rules := false
	err := hostfiles.Walk(folder, "/", func(f hostfiles.File) error {
		at := filepath.Join(to, f.Path)
		if f.Path == "/Makefile" || f.Path == "/Kbuild" {
			rules = true
		}
		switch {
		case f.Mode.IsDir():
			return os.MkdirAll(at, 0o755)
		case f.Link != "":
			return os.Symlink(f.Link, at)
		}
		if size += f.Size; size > bounded.ModuleSources {
			return fmt.Errorf("%w: %s has more than %d MiB", ErrBuild, folder, bounded.ModuleSources>>20)
		}
		b, err := bounded.ReadFile(f.From, bounded.ModuleSources)
		if err != nil {
			return err
		}
		return os.WriteFile(at, b, 0o644|f.Mode.Perm()&0o111)
	})
	if err == nil && !rules {
		err = fmt.Errorf("%w: %s has no Makefile and no Kbuild", ErrBuild, folder)
	}
	return err
}

// kbuild builds the modules of a folder. Neither path may have a space: make takes it for two.
func kbuild(ctx context.Context, headers, folder string) error {
	compiler := compilerOf(headers)
	// BTF would take pahole.
	args := []string{"-s", "-C", headers, "M=" + folder, "CC=" + compiler, "CONFIG_DEBUG_INFO_BTF_MODULES="}
	if exec.CommandContext(ctx, compiler, "-fmin-function-alignment=16", "-xc", "-c", os.DevNull, "-o", os.DevNull).Run() != nil {
		args = append(args, "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=") // the compiler is older than the kernel's own
	}
	cmd := exec.CommandContext(ctx, "make", append(args, "modules")...)
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "LC_ALL=C")
	var said head
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make: %w: %s", err, said.first())
	}
	return nil
}

// theirCompiler is the kernel's own compiler in the headers' .kernelvariables.
var theirCompiler = regexp.MustCompile(`(?m)^CC = .*\)(gcc-[0-9]+)$`)

// compilerOf is the kernel's own compiler, or gcc where that is missing.
func compilerOf(headers string) string {
	b, _ := bounded.ReadFile(filepath.Join(headers, ".kernelvariables"), bounded.Configuration)
	if m := theirCompiler.FindSubmatch(b); m != nil {
		if path, err := exec.LookPath(string(m[1])); err == nil {
			return path
		}
	}
	return "gcc"
}

// builtModule finds the module that was built.
func builtModule(folder string) (name string, code []byte, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.ko"))
	if err != nil {
		return "", nil, err
	}
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	if len(names) != 1 {
		return "", nil, fmt.Errorf("%w: one module is needed, and these are built: [%s]", ErrBuild, strings.Join(names, " "))
	}
	code, err = bounded.ReadFile(files[0], bounded.ModuleMemory)
	return names[0], code, err
}

// head keeps the beginning of what make says.
type head []byte

func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), bounded.BuildOutput-len(*h))]...)
	return len(p), nil
}

// first is the first line with an error, or else the first line.
func (h head) first() string {
	lines := strings.Split(strings.TrimSpace(string(h)), "\n")
	for _, line := range lines {
		if strings.Contains(line, "error") {
			return line
		}
	}
	return lines[0]
}
