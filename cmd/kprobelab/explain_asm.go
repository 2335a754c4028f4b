package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
)

// errNoAssembler: neither gcc nor as is on the PATH.
var errNoAssembler = errors.New("--asm needs gcc or as, and neither is here (Debian: apt install gcc); --hex takes the bytes themselves")

// asmSubject is a function of an assembler file.
func asmSubject(t *term, c *cli.Command) (*subject, string, error) {
	if err := atMost(c, 1); err != nil {
		return nil, "", err
	}
	p, err := exampleProfile(c)
	if err != nil {
		return nil, "", err
	}
	object, err := assemble(c.String("asm"))
	if err != nil {
		return nil, "", &failure{exitImage, err}
	}
	r, err := t.reader(c)
	if err != nil {
		return nil, "", err
	}
	img, err := kimage.FromBytes(c.String("asm"), object, &kimage.Options{Profile: p, Reader: r})
	if err != nil {
		return nil, "", &failure{exitImage, err}
	}
	t.read(img.Name(), img)
	s := imageSubject(c, img)
	s.CPU, s.Standing, s.heading = "", "", fmt.Sprintf("%s: profile %s", img.Name(), p.Name)
	functions, err := s.Functions()
	if err != nil || len(functions) == 0 {
		return nil, "", &failure{exitImage, fmt.Errorf("--asm %s: there is no label in its text", c.String("asm"))}
	}
	point, err := inFunction(functions[0].Name, c.Args().First())
	return s, point, err
}

// assemble returns the object that the file makes.
func assemble(file string) ([]byte, error) {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--asm: %w", err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("--asm %s: a file is wanted, this is not one", file)
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
		return nil, fmt.Errorf("--asm: %s: %s", filepath.Base(tool[0]), firstComplaint(said.String(), err))
	}
	b, err := bounded.ReadFile(out, bounded.Object)
	if errors.Is(err, os.ErrNotExist) { // it takes what it does not know for an object, and does nothing
		return nil, fmt.Errorf("--asm %s: %s makes no object of it; a file .s or .S is wanted", file, filepath.Base(tool[0]))
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
	return nil, errNoAssembler
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
