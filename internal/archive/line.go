package archive

import (
	"fmt"
	"os"
	"strings"

	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// Line describes a packed image. Image is set if it was packed now, Kept if its file was there
// already.
type Line struct {
	Image        string  `json:"image,omitempty"`
	File         string  `json:"file"`
	Kept         bool    `json:"kept"`
	Release      string  `json:"release,omitempty"`
	Distribution string  `json:"distribution,omitempty"`
	Package      string  `json:"package,omitempty"`
	BuildID      string  `json:"build_id,omitempty"`
	CPU          string  `json:"cpu,omitempty"`
	Standing     string  `json:"standing,omitempty"`
	Bytes        int     `json:"bytes,omitempty"`
	Before       int     `json:"bytes_before,omitempty"`
	Base         string  `json:"base,omitempty"`
	Symbols      int     `json:"symbols,omitempty"`
	Text         uint64  `json:"text_bytes,omitempty"`
	Packaged     int     `json:"packaged,omitempty"`
	Entries      bool    `json:"entries,omitempty"`
	Seconds      float64 `json:"seconds,omitempty"`
}

// kernel says in words which kernel a file is of.
func (l Line) kernel() string {
	words := strings.TrimSpace(l.Distribution + " " + l.Release)
	if l.Package != "" {
		words += ", package " + l.Package
	}
	words += ", build " + l.BuildID + ", CPU " + l.CPU + ", " + l.Standing
	if l.Packaged > 0 {
		words += ", " + report.Counted(l.Packaged, "module")
	}
	if l.Entries {
		words += ", entries only"
	}
	words += fmt.Sprintf(", %d kB", l.Bytes/1000)
	if l.Before > 0 {
		words += fmt.Sprintf(" of %d", l.Before/1000)
	}
	if l.Base != "" {
		words += ", a difference from " + l.Base
	}
	return words
}

// String is the line for people.
func (l Line) String() string {
	switch {
	case l.Image == "":
		return fmt.Sprintf("%s: %s", l.File, l.kernel())
	case l.Kept:
		return fmt.Sprintf("%s: %s is there", l.Image, l.File)
	}
	modules := ""
	if l.Packaged > 0 {
		modules = fmt.Sprintf(" and %s", report.Counted(l.Packaged, "module"))
	}
	return fmt.Sprintf("%s: %s, %d symbols%s, %d kB of text in %d kB, %.1f s",
		l.Image, l.File, l.Symbols, modules, l.Text/1000, l.Bytes/1000, l.Seconds)
}

// ReadLine checks a file of an archive, and says which kernel it is of.
func ReadLine(file string) (Line, error) {
	h, err := ReadHeader(file)
	if err != nil {
		return Line{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return Line{}, err
	}
	l := h.line(file, int(info.Size()))
	l.Kept = true
	return l, nil
}

func (h *Header) line(file string, size int) Line {
	return Line{
		File: file, Release: h.Release, Distribution: h.Distribution, Package: h.Package, BuildID: h.BuildID, CPU: h.CPU,
		Standing: h.Standing, Bytes: size, Base: h.Base, Packaged: h.Packaged, Entries: h.Entries,
	}
}

// Line describes an image and its new file.
func (p *Packed) Line(img *kimage.Image, file string) Line {
	return Line{
		Image: img.Name(), File: file, Release: p.Release, Distribution: p.Distribution, Package: p.Package, BuildID: p.BuildID,
		Standing: p.Standing, Bytes: len(p.Bytes), Symbols: len(img.Symbols()), Packaged: p.Packaged, Text: textLength(img),
	}
}

// Line describes a file that was written anew.
func (r *Rewritten) Line() Line {
	l := r.line(r.File, r.After)
	l.Before = r.Before
	return l
}

func textLength(img *kimage.Image) uint64 {
	t := img.Table()
	n := uint64(t.Kernel.Text.Len())
	for i := range t.Modules {
		n += uint64(t.Modules[i].Text.Len())
	}
	return n
}

// EachLine calls emit for each file, in order. unread says which files cannot be read; err is emit's.
func EachLine(files []string, emit func(Line) error) (unread, err error) {
	var bad []error
	for _, name := range files {
		l, err := ReadLine(name)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if err := emit(l); err != nil {
			return nil, err
		}
	}
	return report.Unread(bad), nil
}

// PackInto packs an image into a file of a folder. Errors name the image by path.
func PackInto(img *kimage.Image, o *Options, path, dir string) (Line, error) {
	p, err := Pack(img, o)
	if err != nil {
		return Line{}, fmt.Errorf("%s: %w", path, err)
	}
	file, err := p.Write(dir)
	if err != nil {
		return Line{}, err
	}
	return p.Line(img, file), nil
}
