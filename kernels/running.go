package kernels

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Running is the running kernel's files under /boot, as far as they can be
// read. System.map is not among them: it is a stub in Debian, and the image has
// the symbols that the kernel looks at.
type Running struct {
	Release       string
	Image, Config string
	// said is a line about each that was looked for.
	said []string
}

// runningRelease returns uname -r, "" if there is no such file.
func runningRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// ErrNoRelease: the running kernel's release is unknown.
var ErrNoRelease = errors.New("the running kernel's release cannot be told")

// FindRunning looks for the running kernel's image and configuration in /boot. The error says why the image cannot be read.
func FindRunning() (*Running, error) { return findRunning("/boot", runningRelease()) }

// findRunning looks for a release's files in a directory. Without the image the result is an error;
// the other files only add to the image's own facts.
func findRunning(dir, release string) (*Running, error) {
	if release == "" {
		return nil, fmt.Errorf("%w", ErrNoRelease)
	}
	b := &Running{Release: release}
	var err error
	if b.Image, err = b.look(dir, "vmlinuz-"+release); err != nil {
		return nil, fmt.Errorf("the running kernel's image cannot be read: %w", err)
	}
	b.Config, _ = b.look(dir, "config-"+release)
	return b, nil
}

// look returns the file's path if it can be read.
func (b *Running) look(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if err != nil {
		b.said = append(b.said, fmt.Sprintf("%s not (%s)", name, reasonOf(err)))
		return "", err
	}
	defer f.Close()
	b.said = append(b.said, name)
	return path, nil
}

// reasonOf is a file error without the path and the operation.
func reasonOf(err error) string {
	switch {
	case os.IsNotExist(err):
		return "there is none"
	case os.IsPermission(err):
		return "permission denied"
	}
	return err.Error()
}

// String lists the files that could be read.
func (b *Running) String() string {
	return "running kernel " + b.Release + ", read from /boot: " + strings.Join(b.said, ", ")
}
