package kernels

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/debian"
	"kprobelab/internal/unpack"
)

// headerPlaces are the places where a package's Makefile looks for the other packages' files, if they are installed.
var headerPlaces = regexp.MustCompile(`( |^KBUILD_OUTPUT=)/usr/src/`)

// Headers has the folder for make -C that builds modules for a kernel's release: Debian's packages linux-headers and
// linux-kbuild, unpacked below the store's folder.
func (s *Store) Headers(ctx context.Context, release string) (string, error) {
	if !isRelease(release) {
		return "", fmt.Errorf("%w: %q is no release of a kernel", ErrKernel, release)
	}
	unlock, err := s.lock(ctx, "headers-"+release)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(toolsDir, "headers-"+release)
	at := filepath.Join(s.o.Dir, dir, "usr", "src", "linux-headers-"+release)
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	if s.o.Offline {
		return "", fmt.Errorf("the headers of %s: %w", release, ErrOffline)
	}
	list, err := s.headerPackages(ctx, release)
	if err != nil {
		return "", err
	}
	clean(filepath.Join(s.o.Dir, toolsDir))
	return at, s.build(dir, func(into string) error {
		for _, p := range list {
			s.sayPackage(p)
			if err := s.unpackDeb(ctx, p, into, unpack.All); err != nil {
				return err
			}
		}
		own := filepath.Join(into, "usr", "src", "linux-headers-"+release)
		if err := unpacked(own); err != nil {
			return err
		}
		return s.runnable(ctx, own)
	})
}

// headerPackages are the packages that modules are built with: the headers of a release, and of these needs the common
// headers and kbuild's programs.
func (s *Store) headerPackages(ctx context.Context, release string) ([]*debian.Package, error) {
	l, err := s.kernelList(ctx, append(slices.Clone(suites), experimental))
	if err != nil {
		return nil, err
	}
	own := l.Newest("linux-headers-" + release)
	if own == nil {
		return nil, fmt.Errorf("%w: Debian has no headers of %s (older ones leave the archive)", ErrKernel, release)
	}
	list := []*debian.Package{own}
	for _, prefix := range []string{"linux-headers-", "linux-kbuild-"} {
		i := slices.IndexFunc(own.Needed(), func(name string) bool { return strings.HasPrefix(name, prefix) })
		if i < 0 || l.Newest(own.Needed()[i]) == nil {
			return nil, fmt.Errorf("%w: the headers of %s need a package %s…, which Debian has not", ErrKernel, release, prefix)
		}
		list = append(list, l.Newest(own.Needed()[i]))
	}
	return list, nil
}

// unpacked changes the headers' Makefile, which names folders of installed packages, for packages that lie elsewhere.
func unpacked(headers string) error {
	name := filepath.Join(headers, "Makefile")
	b, err := bounded.ReadFile(name, bounded.Configuration)
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "KBUILD_OUTPUT=/usr/src/") {
			lines[i] = "KBUILD_OUTPUT=."
		} else {
			lines[i] = headerPlaces.ReplaceAllString(line, "$1../")
		}
	}
	return replace(name, []byte(strings.Join(lines, "\n")))
}

// hostPrograms are the programs of linux-kbuild that build a module.
var hostPrograms = []string{"tools/objtool/objtool", "scripts/mod/modpost", "scripts/basic/fixdep"}

// newerLibrary matches the loader's complaint about a program of a newer system.
var newerLibrary = regexp.MustCompile(`version .GLIBC_.* not found`)

// runnable has the programs of linux-kbuild run by Debian 13's C library, if the system's is older than theirs.
func (s *Store) runnable(ctx context.Context, headers string) error {
	for _, program := range hostPrograms {
		file := filepath.Join(headers, program)
		real := file
		for _, chosen := range []string{".real-x86", ".real-lsb-64"} { // the program itself chooses by the architecture
			if _, err := os.Stat(file + chosen); err == nil {
				real = file + chosen
			}
		}
		said, _ := exec.CommandContext(ctx, real).CombinedOutput()
		if !newerLibrary.Match(said) {
			continue
		}
		dir, err := s.Tool(ctx, "kbuild-libc", []string{"trixie"}, "libelf1t64")
		if err != nil {
			return err
		}
		own := filepath.Base(file) + ".elf"
		if err := os.Rename(real, filepath.Join(filepath.Dir(file), own)); err != nil {
			return err
		}
		text := fmt.Sprintf("#!/bin/sh\nexec %s --library-path %s \"${0%%/*}/%s\" \"$@\"\n", quoted(loaderIn(dir)), quoted(libraryPath(dir)), own)
		if err := replace(file, []byte(text)); err != nil {
			return err
		}
		if err := os.Chmod(file, 0o755); err != nil {
			return err
		}
	}
	return nil
}
