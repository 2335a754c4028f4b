package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// Program is QEMU's emulator of x86-64 machines.
const Program = "qemu-system-x86_64"

// oldest is the oldest release that is used. 7.2 has a bug: a kernel dies now and then
// after cmpxchg16b.
const oldest = 10

// ErrNone is a program that is not QEMU, or a QEMU that is too old.
var ErrNone = errors.New("no QEMU to boot with")

// Found is a QEMU, and its version.
type Found struct{ Path, Version string }

var versionLine = regexp.MustCompile(`^QEMU emulator version ((\d+)\.[0-9.]+)`)

// Try runs a program to get its version.
func Try(ctx context.Context, program string) (Found, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return Found{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	var out head
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return Found{}, fmt.Errorf("%w: %s --version: %w", ErrNone, path, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return Found{}, fmt.Errorf("%w: %s is not %s", ErrNone, path, Program)
	}
	if major, err := strconv.Atoi(string(m[2])); err != nil || major < oldest {
		return Found{}, fmt.Errorf("%w: %s is QEMU %s, and %d or later is wanted", ErrNone, path, m[1], oldest)
	}
	return Found{path, string(m[1])}, nil
}

// Find finds QEMU: the program of $KPROBELAB_QEMU, else the program in PATH if it is new enough,
// else the result of fetch.
func Find(ctx context.Context, fetch func() (string, error)) (Found, error) {
	if named := os.Getenv("KPROBELAB_QEMU"); named != "" {
		return Try(ctx, named)
	}
	f, err := Try(ctx, Program)
	if err == nil {
		return f, nil
	}
	path, fetchErr := fetch()
	if fetchErr != nil {
		return Found{}, fmt.Errorf("%w, and %w", err, fetchErr)
	}
	return Try(ctx, path)
}

// head keeps the beginning of the bytes written to it.
type head []byte

func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), 4096-len(*h))]...)
	return len(p), nil
}
