// Package scripts has the shell scripts that fetch what a command needs from Debian, so
// that the program has them, too, where there is no checkout. It lays them down in a
// folder and runs them there.
//
// It must not know what is done with what they fetch.
package scripts

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
)

//go:embed qemu.sh kernel.sh debian.sh conformance-tools.sh kernels.sh sources-list.awk sources-deb822.awk
var files embed.FS

// ErrFetch is a script that failed; it has said why.
var ErrFetch = errors.New("it cannot be fetched")

// Fetch runs one of the scripts below a folder, where everything that it fetches stays
// for the next time, and returns the path that it prints. What happens is told to say.
func Fetch(ctx context.Context, dir, script string, say io.Writer) (string, error) {
	at := filepath.Join(dir, "scripts")
	if err := layDown(at); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "sh", filepath.Join(at, script))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, say
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w (%s: %w)", ErrFetch, script, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// layDown writes the scripts. Another process may run one: each is replaced whole.
func layDown(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := errors.Join(bounded.Ours(filepath.Dir(dir)), bounded.Ours(dir)); err != nil {
		return err // it would be run
	}
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := os.CreateTemp(dir, name+".*")
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), filepath.Join(dir, name))
		}
		if err != nil {
			os.Remove(f.Name())
		}
		return err
	})
}
