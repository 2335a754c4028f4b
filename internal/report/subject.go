package report

import (
	"errors"
	"fmt"

	"kprobelab/decoder"
	"kprobelab/internal/bounded"
	"kprobelab/internal/process"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Subject is code that is explained: an image, or a function that belongs to none.
type Subject struct {
	*Scan
	// File is nil for bytes that are no image.
	File *kimage.Image
	// Heading says whose rules answer and on which text.
	Heading string
}

// NewSubject is an image as a subject; live is the file of text that was laid over it, "" for none.
func NewSubject(img *kimage.Image, live string) *Subject {
	s := &Subject{Scan: NewScan(img), File: img, Heading: Heading(img, live)}
	if img.OfProgram() {
		s.Function = functionOf(img)
	}
	return s
}

// functionOf asks a program's file where functions begin that have no symbols.
func functionOf(img *kimage.Image) func(at x86.Addr) (x86.Addr, bool) {
	var f *process.File
	return func(at x86.Addr) (x86.Addr, bool) {
		if f == nil {
			b, err := bounded.ReadFile(img.Name(), bounded.ProgramFile)
			if err != nil {
				return 0, false
			}
			f = &process.File{Name: img.Name(), Data: b}
		}
		offset, ok := f.OffsetOf(uint64(at) - img.Bias())
		if !ok {
			return 0, false
		}
		_, start, ok := f.Function(offset)
		return at.Add(int64(start) - int64(offset)), ok
	}
}

// OfCode is a function of these bytes, on a processor by its name.
func OfCode(code []byte, cpu string, c *profile.Config, r decoder.Reader) (*Subject, error) {
	on, err := kimage.NamedProcessor(cpu)
	if err != nil {
		return nil, err
	}
	s := NewExampleOn(on, code, c)
	s.CPU, s.View = cpu, kimage.ReadBy(s.View, r)
	return &Subject{Scan: s, Heading: fmt.Sprintf("example of %d bytes: profile %s", len(code), c.Name)}, nil
}

// ErrNoLabel is an object without a function.
var ErrNoLabel = errors.New("there is no label in its text")

// OfObject is an object file that belongs to no kernel; first is its first function.
func OfObject(name string, object []byte, c *profile.Config, r decoder.Reader) (s *Subject, first string, err error) {
	img, err := kimage.FromBytes(name, object, &kimage.Options{Profile: c, Reader: r})
	if err != nil {
		return nil, "", err
	}
	s = NewSubject(img, "")
	s.CPU, s.Standing, s.Heading = "", "", fmt.Sprintf("%s: profile %s", img.Name(), c.Name)
	functions, err := s.Functions()
	if err != nil || len(functions) == 0 {
		return nil, "", ErrNoLabel
	}
	return s, functions[0].Name, nil
}
