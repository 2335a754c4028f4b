package assemble

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
)

// ErrNone: neither gcc nor as is on the PATH.
var ErrNone = errors.New("neither gcc nor as is here (Debian: apt install gcc)")

// Object has the assembler of the machine, gcc or as, make an object of a file.
func Object(file string) ([]byte, error) {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: a file is wanted, this is not one", file)
	}
	tool, err := assembler(file)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kprobelab-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "example.o")
	var said bytes.Buffer
	cmd := exec.Command(tool[0], append(tool[1:], "-o", out, plainPath(file))...)
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %s", filepath.Base(tool[0]), firstComplaint(said.String(), err))
	}
	b, err := bounded.ReadFile(out, bounded.Object)
	if errors.Is(err, os.ErrNotExist) { // it takes what it does not know for an object, and does nothing
		return nil, fmt.Errorf("%s: %s makes no object of it; a file .s or .S is wanted", file, filepath.Base(tool[0]))
	}
	return b, err
}

// plainPath is a name that no program takes for an option.
func plainPath(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

// assembler is the command to run, without the file names. gcc runs the
// preprocessor over a .S file, as the kernel's build does; as needs none of it.
func assembler(file string) ([]string, error) {
	if gcc, err := exec.LookPath("gcc"); err == nil {
		return []string{gcc, "-c", "-fcf-protection=none"}, nil
	}
	if as, err := exec.LookPath("as"); err == nil && filepath.Ext(file) == ".s" {
		return []string{as, "--64"}, nil
	}
	return nil, ErrNone
}

// firstComplaint is the line of the assembler's that names the error.
func firstComplaint(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, l := range lines {
		if strings.Contains(l, "Error:") || strings.Contains(l, "error:") {
			return l
		}
	}
	if lines[0] != "" {
		return lines[0]
	}
	return err.Error()
}
