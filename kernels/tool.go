package kernels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"kprobelab/internal/debian"
	"kprobelab/internal/unpack"
)

// Tool has a folder with a program's package and all that it needs, from suites; of several suites the newest versions
// count. Nothing there is installed: no script of a package has run.
func (s *Store) Tool(ctx context.Context, name string, suites []string, packages ...string) (string, error) {
	unlock, err := s.lock(ctx, "tool-"+name)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(toolsDir, name+"-"+toolKey(suites, packages))
	at := filepath.Join(s.o.Dir, dir)
	if _, err := os.Stat(at); err == nil && !s.o.Refresh {
		return at, nil
	}
	if s.o.Offline {
		return "", fmt.Errorf("%s: %w", name, ErrOffline)
	}
	l, err := s.list(ctx, suites, allPackages, func(string) bool { return true })
	if err != nil {
		return "", err
	}
	list, err := l.With(packages...)
	if err != nil {
		return "", err
	}
	var size int64
	for _, p := range list {
		size += p.Size
	}
	s.say("fetching %s and what it needs: %d packages (%.1f MB)", strings.Join(packages, ", "), len(list), float64(size)/1e6)
	clean(filepath.Dir(at))
	return at, s.build(dir, func(into string) error {
		for _, p := range list {
			if err := s.unpackDeb(ctx, p, into, unpack.All); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(into, "packages"), []byte(listed(list)), 0o644)
	})
}

// toolKey names the requested packages.
func toolKey(suites, packages []string) string {
	h := sha256.Sum256([]byte(strings.Join(suites, " ") + "\n" + strings.Join(packages, " ")))
	return hex.EncodeToString(h[:6])
}

// listed lists the packages of a tool.
func listed(list []*debian.Package) string {
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%s %s %s\n", p.SHA256, p.Name, p.Version)
	}
	return b.String()
}

// qemuSuites have a QEMU that kernels run on: 7.2 of bookworm has a bug, by which a kernel dies now and then after cmpxchg16b.
var qemuSuites = []string{"trixie", "trixie-backports"}

// shell runs the script that Wrap writes; an image for containers may have none.
const shell = "/bin/sh"

// QEMU has the program that starts Debian's qemu-system-x86_64, with the libraries and the firmware beside it.
func (s *Store) QEMU(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", errors.New("QEMU is not fetched: Debian's is for Linux/amd64")
	}
	if _, err := os.Stat(shell); err != nil {
		return "", fmt.Errorf("QEMU is not fetched: %s, which starts it, is not here", shell)
	}
	dir, err := s.Tool(ctx, "qemu", qemuSuites, "qemu-system-x86")
	if err != nil {
		return "", err
	}
	share := filepath.Join(dir, "usr", "share")
	return s.Wrap(dir, "usr/bin/qemu-system-x86_64", "-L", filepath.Join(share, "qemu"), "-L", filepath.Join(share, "seabios"))
}

// busyboxSuites have the busybox of the guests.
var busyboxSuites = []string{"trixie"}

// Busybox has Debian's busybox, which needs no libraries: the shell and the usual commands of a guest.
func (s *Store) Busybox(ctx context.Context) (string, error) {
	dir, err := s.Tool(ctx, "busybox", busyboxSuites, "busybox-static")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"usr/bin/busybox", "bin/busybox"} {
		at := filepath.Join(dir, name)
		if st, err := os.Lstat(at); err == nil && st.Mode().IsRegular() {
			return at, nil
		}
	}
	return "", fmt.Errorf("%w: %s has no busybox", ErrKernel, dir)
}

// Wrap makes a program that runs a program of a tool's folder with these arguments before its own,
// by the loader and the libraries in the folder.
func (s *Store) Wrap(dir, program string, args ...string) (string, error) {
	loader := loaderIn(dir)
	for _, name := range []string{loader, filepath.Join(dir, program)} {
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("%w: %s has no %s", ErrKernel, dir, program)
		}
	}
	path := libraryPath(dir)
	llvm, _ := filepath.Glob(filepath.Join(dir, "usr/lib/llvm-*/lib"))
	for _, name := range llvm {
		path += ":" + name
	}
	words := []string{quoted(loader), "--library-path", quoted(path), quoted(filepath.Join(dir, program))}
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	text := fmt.Sprintf("#!"+shell+"\nexport QEMU_MODULE_DIR=%s\nexec %s \"$@\"\n", quoted(filepath.Join(dir, "usr", libraries, "qemu")), strings.Join(words, " "))
	at := filepath.Join(dir, filepath.Base(program)+".sh")
	if err := replace(at, []byte(text)); err != nil {
		return "", err
	}
	return at, os.Chmod(at, 0o755)
}

// loaderIn finds the loader of programs in an unpacked system; "" for none.
func loaderIn(dir string) string {
	for _, name := range []string{"lib64", "usr/lib64", "usr/lib/x86_64-linux-gnu"} {
		name = filepath.Join(dir, name, "ld-linux-x86-64.so.2")
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return ""
}

// libraries is the folder of libraries in a system.
const libraries = "lib/x86_64-linux-gnu"

// libraryPath has the folders of libraries in an unpacked system, as its loader takes them.
func libraryPath(dir string) string {
	return filepath.Join(dir, libraries) + ":" + filepath.Join(dir, "usr", libraries)
}

// quoted is a text as one word of the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
