package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/assemble"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// asmSubject is a function of an assembler file.
func asmSubject(t *term, c *cli.Command) (*subject, string, error) {
	if err := atMost(c, 1); err != nil {
		return nil, "", err
	}
	p, err := exampleProfile(c)
	if err != nil {
		return nil, "", err
	}
	object, err := assemble.Object(c.String("asm"))
	if errors.Is(err, assemble.ErrNone) {
		err = fmt.Errorf("%w; --hex takes the bytes themselves", err)
	}
	if err != nil {
		return nil, "", fail(exitImage, fmt.Errorf("--asm: %w", err))
	}
	r, err := t.reader(c)
	if err != nil {
		return nil, "", err
	}
	img, err := kimage.FromBytes(c.String("asm"), object, &kimage.Options{Profile: p, Reader: r})
	if err != nil {
		return nil, "", fail(exitImage, err)
	}
	t.read(img.Name(), img)
	s := imageSubject(c, img)
	s.CPU, s.Standing, s.heading = "", "", fmt.Sprintf("%s: profile %s", img.Name(), p.Name)
	functions, err := s.Functions()
	if err != nil || len(functions) == 0 {
		return nil, "", fail(exitImage, fmt.Errorf("--asm %s: there is no label in its text", c.String("asm")))
	}
	return s, report.InFunction(functions[0].Name, c.Args().First()), nil
}
