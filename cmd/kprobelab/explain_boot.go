package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"
)

// bootFiles are the running kernel's files under /boot, as far as they can be
// read. System.map is not among them: it is a stub in Debian, and the image has
// the symbols that the kernel looks at.
type bootFiles struct {
	release       string
	image, config string
	// said is a line about each that was looked for.
	said []string
}

// runningRelease is uname -r, "" where there is no such file.
func runningRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// findBoot looks for the release's files in a directory. Without the image
// there is nothing to explain; the others only add to what it tells itself.
func findBoot(dir, release string) (*bootFiles, error) {
	if release == "" {
		return nil, fmt.Errorf("%w: name an IMAGE (- is the guest kernel inside the program)", errNoRelease)
	}
	b := &bootFiles{release: release}
	var err error
	if b.image, err = b.look(dir, "vmlinuz-"+release); err != nil {
		return nil, fmt.Errorf("the running kernel's image cannot be read: %w; name an IMAGE (- is the guest kernel inside the program)", err)
	}
	b.config, _ = b.look(dir, "config-"+release)
	return b, nil
}

// look returns the file's path if it can be read.
func (b *bootFiles) look(dir, name string) (string, error) {
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

// String says what could be read.
func (b *bootFiles) String() string {
	return "running kernel " + b.release + ", read from /boot: " + strings.Join(b.said, ", ")
}

// apply sets the flags that the caller has not given. The boot-time text is for
// the processor that runs it.
func (b *bootFiles) apply(c *cli.Command) {
	set := func(flag, value string) {
		if value != "" && !c.IsSet(flag) {
			_ = c.Set(flag, value)
		}
	}
	set("config", b.config)
	set("cpu", "host")
}
