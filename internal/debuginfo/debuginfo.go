package debuginfo

import (
	"errors"
	"fmt"

	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/profile"
)

// Info holds the descriptions of one image. Files are opened at the first question.
type Info struct {
	img *kimage.Image
	// files are asked in order; the image's BTF and symbols come after them.
	files []string
	// asked says that the user has named the only file: it must be there.
	asked   bool
	writers []*perfprobe.Writer
	opened  bool
	// inlined holds the answer of Inlined.
	inlined map[string][]string
}

// FileError is the error of a file with a description, not of the question that was asked.
type FileError struct{ error }

// Unwrap returns the file's error.
func (e *FileError) Unwrap() error { return e.error }

// Of describes an image by its own file and the files of its modules, as far as they have DWARF.
func Of(img *kimage.Image, modules ...string) *Info {
	return &Info{img: img, files: append([]string{img.Name()}, modules...)}
}

// OfFile describes an image by the DWARF of another file.
func OfFile(img *kimage.Image, path string) *Info {
	return &Info{img: img, files: []string{path}, asked: path != img.Name()}
}

// Definitions returns the definitions of kprobe_events that a line means: the line itself, if it is one, or empty. The error is
// a *perfprobe.SyntaxError for a line that is no probe, a *FileError for a file that cannot be used, or the source's.
func (d *Info) Definitions(line definition.Line) ([]definition.Line, error) {
	if line.Empty() || line.Deletes() || line.Defines() {
		return []definition.Line{line}, nil
	}
	p, err := perfprobe.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("%w (a definition of kprobe_events begins with p: or r:)", err)
	}
	if err := d.open(); err != nil {
		return nil, err
	}
	var last error
	for _, w := range d.writers {
		list, err := w.Define(p)
		if err != nil {
			last = better(last, err)
			continue
		}
		var out []definition.Line
		for _, one := range list {
			out = append(out, one.Line())
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s: %w", line.Text, last)
}

// All returns the definitions that several lines mean, in order.
func (d *Info) All(lines []string) (out []string, err error) {
	for _, line := range lines {
		list, err := d.Definitions(definition.ReadLine(line))
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			out = append(out, l.Text)
		}
	}
	return out, nil
}

// better is the error that says more: one that found the place, before one that did not.
func better(a, b error) error {
	var missing *source.NotFound
	if a == nil || errors.As(a, &missing) && missing.Place && !errors.Is(b, source.ErrNone) {
		return b
	}
	return a
}

// First returns the best description, and whether it has lines. The error is a *FileError.
func (d *Info) First() (f *source.File, lines bool, err error) {
	if err := d.open(); err != nil {
		return nil, false, err
	}
	return d.writers[0].File, len(d.writers) > 1, nil
}

// Inlined lists for each function that was inlined the functions that have its code, by the first file with DWARF. The error is a
// *FileError, or source.ErrNone where no file has it.
func (d *Info) Inlined() (callers map[string][]string, err error) {
	if d.inlined != nil {
		return d.inlined, nil
	}
	f, _, err := d.First()
	if err == nil {
		d.inlined, err = f.Inlined()
	}
	return d.inlined, err
}

// Types returns the description by the image's BTF and symbols. The error is a *FileError.
func (d *Info) Types() (*source.File, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	return d.writers[len(d.writers)-1].File, nil
}

func (d *Info) open() error {
	if d.opened {
		return nil
	}
	features := Features(d.img.Profile())
	var writers []*perfprobe.Writer
	for _, path := range d.files {
		f, err := source.Open(path)
		switch {
		case err == nil:
		case d.asked:
			return &FileError{err}
		default:
			continue
		}
		if id := f.BuildID(); path != d.img.Name() && f.Module() == "" && id != "" && d.img.BuildID() != "" && id != d.img.BuildID() {
			return &FileError{fmt.Errorf("%s is not of this image: its build id is %s, the image's %s", path, id, d.img.BuildID())}
		}
		writers = append(writers, &perfprobe.Writer{File: f, Features: features})
	}
	f, err := OfImage(d.img)
	if err != nil {
		return &FileError{err}
	}
	d.writers, d.opened = append(writers, &perfprobe.Writer{File: f, Features: features}), true
	return nil
}

// OfImage returns the description by an image's BTF and symbols.
func OfImage(img *kimage.Image) (*source.File, error) {
	raw, modules := img.BTF()
	return ofTypes(raw, modules, img.Symbols())
}

// OfTypes describes a kernel without a file by its BTF and symbols.
func OfTypes(raw []byte, modules [][]byte, symbols []kimage.Symbol, p *profile.Config) (*Info, error) {
	f, err := ofTypes(raw, modules, symbols)
	if err != nil {
		return nil, err
	}
	return &Info{writers: []*perfprobe.Writer{{File: f, Features: Features(p)}}, opened: true}, nil
}

func ofTypes(raw []byte, modules [][]byte, list []kimage.Symbol) (*source.File, error) {
	var symbols []source.Symbol
	for _, s := range list {
		symbols = append(symbols, source.Symbol{
			Name: s.Name, Start: uint64(s.Addr), End: uint64(s.Addr) + s.Size, Func: s.IsFunction(),
		})
	}
	return source.OfBTF(raw, modules, symbols)
}

// Features returns what the definitions of a kernel's probes can have.
func Features(p *profile.Config) perfprobe.Features {
	t := p.Tracing
	return perfprobe.Features{Hex: t.Types >= profile.Types49, Immediate: t.ArgFetch, Several: t.Append, User: t.ArgFetch}
}
