package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/perfprobe"
	"kprobelab/internal/report"
	"kprobelab/internal/source"
	"kprobelab/kimage"
)

// definer writes the definitions of probes that are said in the words of the source,
// for one image. Files are opened when the first such probe comes.
type definer struct {
	img *kimage.Image
	// files are asked one after the other; after them, the image's BTF and symbols.
	files   []string
	writers []*perfprobe.Writer
	opened  bool
}

const debuginfoFlag = "debuginfo"

func debuginfo() cli.Flag {
	return &cli.StringFlag{Name: debuginfoFlag, Usage: "DWARF for probes in the words of the source is in `FILE`, not in IMAGE and its modules"}
}

func newDefiner(c *cli.Command, img *kimage.Image) *definer {
	d := &definer{img: img}
	if path := c.String(debuginfoFlag); path != "" {
		d.files = []string{path}
	} else {
		d.files = append([]string{img.Name()}, c.StringSlice("module")...)
	}
	return d
}

// definitions are what a line means: itself, where it is in the language of
// kprobe_events.
func (d *definer) definitions(line string) ([]string, error) {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "-:") || report.IsDefinition(words) {
		return []string{line}, nil
	}
	p, err := perfprobe.Parse(line)
	if err != nil {
		return nil, usagef("%w (a definition of kprobe_events begins with p: or r:)", err)
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
		var out []string
		for _, one := range list {
			out = append(out, one.Text())
		}
		return out, nil
	}
	return nil, sourceError(line, last)
}

// better is the error that says more: one that found the place, before one that did not.
func better(a, b error) error {
	var missing *source.NotFound
	if a == nil || errors.As(a, &missing) && missing.Place && !errors.Is(b, source.ErrNone) {
		return b
	}
	return a
}

func (d *definer) open() error {
	if d.opened {
		return nil
	}
	d.opened = true
	features := featuresOf(d.img.Profile())
	for _, path := range d.files {
		f, err := source.Open(path)
		switch {
		case err == nil:
		case len(d.files) == 1 && path != d.img.Name():
			return &failure{exitImage, err} // it was asked for
		default:
			continue
		}
		if id := f.BuildID(); path != d.img.Name() && f.Module() == "" && id != "" && d.img.BuildID() != "" && id != d.img.BuildID() {
			return &failure{exitImage, fmt.Errorf("%s is not of this image: its build id is %s, the image's %s", path, id, d.img.BuildID())}
		}
		d.writers = append(d.writers, &perfprobe.Writer{File: f, Features: features})
	}
	f, err := source.OfBTF(d.btf())
	if err != nil {
		return &failure{exitImage, err}
	}
	d.writers = append(d.writers, &perfprobe.Writer{File: f, Features: features})
	return nil
}

// btf is what the image itself says.
func (d *definer) btf() (raw []byte, modules [][]byte, symbols []source.Symbol) {
	raw, modules = d.img.BTF()
	for _, s := range d.img.Symbols() {
		symbols = append(symbols, source.Symbol{
			Name: s.Name, Start: uint64(s.Addr), End: uint64(s.Addr) + s.Size, Func: strings.ContainsRune("tTwW", rune(s.Type)),
		})
	}
	return raw, modules, symbols
}

// all resolves several lines; the definitions of each follow each other.
func (d *definer) all(lines []string) (out []string, err error) {
	for _, line := range lines {
		list, err := d.definitions(line)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}
