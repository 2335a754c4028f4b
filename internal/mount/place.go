//go:build linux

package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrPlace is a place where the real kernel's files belong.
var ErrPlace = errors.New("the real kernel's tracing files belong there")

// realPlaces lists the directories in which trace-cmd, perf and libtracefs look for the
// real kernel's tracing files. These tools check the file system's type, and FUSE cannot
// have that type. As root they then mount the real file system over the directory, and
// all later accesses reach the real kernel.
var realPlaces = []string{"/sys/kernel/tracing", "/sys/kernel/debug", "/tracing", "/trace"}

// isReal reports whether the directory is one of these places, or below one.
func isReal(dir string) bool {
	return slices.ContainsFunc(realPlaces, func(place string) bool {
		return dir == place || strings.HasPrefix(dir, place+"/")
	})
}

// CheckPlace returns the error that New has for this directory on every host.
func CheckPlace(dir string) error {
	_, err := target(dir)
	return err
}

// target returns the directory's absolute path if it can be mounted at.
func target(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	through, err := filepath.EvalSymlinks(dir)
	if err != nil {
		through = dir // it is not there, or dead: Stat says so
	}
	if isReal(dir) || isReal(through) {
		return "", fmt.Errorf("%s: %w, and tools that run as root mount them over others; take another directory", dir, ErrPlace)
	}
	i, err := os.Stat(dir)
	switch {
	case errors.Is(err, syscall.ENOTCONN):
		return "", fmt.Errorf("%s: a mount whose server has died is there; unmount it first: %s", dir, hint(dir))
	case err != nil:
		return "", err
	case !i.IsDir():
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	if inside, err := os.ReadDir(dir); err == nil && len(inside) > 0 {
		return "", fmt.Errorf("%s is not empty, and what is in it could not be seen: take another directory", dir)
	}
	return dir, nil
}

func hint(dir string) string {
	if root() {
		return "umount -l " + dir
	}
	return "fusermount3 -uz " + dir
}
