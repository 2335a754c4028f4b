package booted

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/errno"
)

// ErrSysctl is a name that no sysctl can have, or that the kernel does not have.
var ErrSysctl = errors.New("there is no such sysctl in the guest")

// sysctlPath returns the file of a sysctl, by its name as sysctl(8) reads it: with dots between the words, or with
// slashes. In a name with dots a slash is a dot of a word, and the other way round.
func sysctlPath(name string) (string, error) {
	words := name
	if at := strings.IndexAny(name, "./"); at >= 0 && name[at] == '.' {
		words = strings.Map(func(r rune) rune {
			switch r {
			case '.':
				return '/'
			case '/':
				return '.'
			}
			return r
		}, name)
	}
	for _, word := range strings.Split(words, "/") {
		if word == "" || word == "." || word == ".." || strings.ContainsAny(word, "\x00\n") {
			return "", fmt.Errorf("%q: %w", name, ErrSysctl)
		}
	}
	return "/proc/sys/" + words, nil
}

// SetSysctl writes a value to a sysctl of the booted kernel, as root. An errno.Errno in the error is the kernel's answer
// to the value.
func (k *Kernel) SetSysctl(name, value string) error {
	file, err := sysctlPath(name)
	if err != nil {
		return err
	}
	if _, err := k.toInit(); err != nil {
		return err
	}
	fd, err := k.asks("openat", atCurrent, file, writeOnly|closeExec)
	switch {
	case errors.Is(err, errno.ENOENT), errors.Is(err, errno.EISDIR), errors.Is(err, errno.ENOTDIR):
		return fmt.Errorf("%q: %w", name, ErrSysctl)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	err = k.write(fd, []byte(value+"\n"))
	if _, e := k.asks("close", fd); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", name, value, err)
	}
	return nil
}

// Give makes files and folders of the guest belong to a user.
func (k *Kernel) Give(paths []string, user, group uint32) error {
	if _, err := k.toInit(); err != nil {
		return err
	}
	for _, p := range paths {
		if _, err := k.asks("fchownat", atCurrent, p, user, group, noFollow); err != nil {
			return &FileError{p, err}
		}
	}
	return nil
}
