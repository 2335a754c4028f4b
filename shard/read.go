package shard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// ErrShards: the files are not the whole output of all shards of one command line.
var ErrShards = errors.New("these shards cannot be merged")

// Results are the results of all items, in the files of the shards.
type Results struct {
	Run
	// Items counts the items.
	Items int
	// parts are by their number; files are all that are open.
	parts, files []*file
}

// file is the output of a shard.
type file struct {
	name   string
	f      *os.File
	r      *bufio.Reader
	header header
	part   Part
	// named: the header is there. died says why the file is not whole; "" if it is.
	named bool
	died  string
}

// Open reads the files of a command's shards, in any order, and checks that they are whole and go together. version is this
// program's; "" merges the shards of any one version, as it does with those of Jobs. The error says which shards have to be run again, and by which command lines.
func Open(version string, names []string) (*Results, error) {
	if len(names) > bounded.ShardFiles {
		return nil, fmt.Errorf("%w: %d files are given, and at most %d are read", ErrShards, len(names), bounded.ShardFiles)
	}
	var files []*file
	for _, name := range names {
		f, err := open(name)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
	}
	r, err := together(version, files)
	if err != nil {
		closeAll(files)
		return nil, err
	}
	return r, nil
}

func closeAll(files []*file) {
	for _, f := range files {
		f.f.Close()
	}
}

// Close closes the files.
func (r *Results) Close() { closeAll(r.files) }

func open(name string) (*file, error) {
	o, err := bounded.Open(name)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, f: o, r: bufio.NewReader(o)}
	st, err := o.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: a regular file is wanted, which can be read twice", ErrShards)}
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		o.Close()
		return nil, err
	}
	return f, nil
}

// errCut is a last line without its end.
var errCut = errors.New("it is cut off")

// next reads a line.
func (f *file) next(limit int) ([]byte, error) {
	var b []byte
	for {
		piece, err := f.r.ReadSlice('\n')
		if len(b)+len(piece) > limit {
			return nil, fmt.Errorf("%s: a line has more than %d bytes: %w", f.name, limit, bounded.ErrTooLong)
		}
		b = append(b, piece...)
		switch {
		case err == nil:
			return b, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(b) > 0:
			return b, errCut
		default:
			return b, err
		}
	}
}

// check reads the file once: the header, and whether all results are there. Its error is about a file that is no shard's.
func (f *file) check() error {
	first, err := f.next(bounded.ShardHeader)
	switch {
	case errors.Is(err, io.EOF):
		f.died = "is empty"
		return nil
	case errors.Is(err, errCut) && bytes.HasPrefix(first, []byte(`{"kprobelab_shard":`)):
		f.died = "is cut off in its first line"
		return nil
	case err != nil && !errors.Is(err, errCut):
		return err
	}
	if f.part, err = headerOf(first, &f.header); err != nil {
		return &fs.PathError{Op: "read", Path: f.name, Err: err}
	}
	f.named = true
	f.died, err = f.results()
	return err
}

func headerOf(b []byte, h *header) (Part, error) {
	if err := json.Unmarshal(b, h); err != nil || h.Format == 0 {
		return Part{}, fmt.Errorf("%w: it is no output of a command with --shard", ErrShards)
	}
	p, err := Parse(h.Shard)
	switch {
	case h.Format != format:
		err = fmt.Errorf("it has format %d of shards, and %d is read", h.Format, format)
	case err == nil && (h.Items < 0 || h.Items > bounded.ShardItems):
		err = fmt.Errorf("it has %d items, and at most %d are read", h.Items, bounded.ShardItems)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrShards, err)
	}
	return p, err
}

// results reads the lines after the header, and says why the file is not whole.
func (f *file) results() (died string, err error) {
	want := f.part.count(f.header.Items)
	for n := 0; ; n++ {
		var l line
		b, err := f.next(bounded.ShardLine)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errCut):
			return fmt.Sprintf("ends after %d of %d results", n, want), nil
		case err != nil:
			return "", err
		case json.Unmarshal(b, &l) != nil:
			return fmt.Sprintf("is damaged after %d of %d results", n, want), nil
		case n == want && l.End != nil && *l.End == n:
			if _, err := f.next(bounded.ShardLine); !errors.Is(err, io.EOF) {
				return "goes on after its end", nil
			}
			return "", nil
		case n >= want, l.Item == nil, *l.Item != f.part.I-1+n*f.part.N:
			return fmt.Sprintf("is damaged after %d of %d results", n, want), nil
		}
	}
}

// together puts the files into the order of the shards.
func together(version string, files []*file) (*Results, error) {
	i := slices.IndexFunc(files, func(f *file) bool { return f.named })
	if i < 0 {
		return nil, fmt.Errorf("%w: %s; no file says which shard it is", ErrShards, unnamed(files))
	}
	first := files[i]
	if v := first.header.Version; v != version && version != "" && first.header.Command != Jobs {
		return nil, fmt.Errorf("%w: %s was written by kprobelab %s, and this is %s: merge with the version that ran the shards", ErrShards, first.name, v, version)
	}
	parts := make([]*file, first.part.N)
	for _, f := range files {
		if !f.named {
			continue
		}
		if err := first.goesWith(f); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrShards, err)
		}
		switch at := &parts[f.part.I-1]; {
		case *at == nil, (*at).died != "":
			*at = f
		case f.died == "":
			return nil, fmt.Errorf("%w: %s and %s are both shard %s", ErrShards, (*at).name, f.name, f.part)
		}
	}
	if err := first.missing(parts, files); err != nil {
		return nil, err
	}
	for _, f := range parts {
		if err := f.again(); err != nil {
			return nil, err
		}
	}
	return &Results{Run: first.header.Run, Items: first.header.Items, parts: parts, files: files}, nil
}

// goesWith refuses the shard of another run.
func (f *file) goesWith(o *file) error {
	a, b := &f.header, &o.header
	both := func(what, one, two string) error {
		return fmt.Errorf("%s is %s%s, and %s is %s%s", f.name, what, one, o.name, what, two)
	}
	switch {
	case a.Version != b.Version:
		return both("by kprobelab ", a.Version, b.Version+": one version has to run all shards")
	case a.Command != b.Command || !slices.Equal(a.Arguments, b.Arguments):
		return both("of ", a.Line(Part{}), b.Line(Part{})+": the shards of one command line go together")
	case f.part.N != o.part.N:
		return both("shard ", f.part.String(), o.part.String()+": all have to be of the same number of shards")
	case a.Items != b.Items || a.List != b.List || !bytes.Equal(a.Form, b.Form):
		return fmt.Errorf("%s and %s are of one command line, which meant different files or kernels there", f.name, o.name)
	}
	return nil
}

// missing names the shards without a whole file.
func (f *file) missing(parts, files []*file) error {
	var say, lines []string
	for i, p := range parts {
		one := Part{i + 1, len(parts)}
		switch {
		case p == nil:
			say = append(say, fmt.Sprintf("shard %s is missing", one))
		case p.died != "":
			say = append(say, fmt.Sprintf("shard %s died: %s %s", one, p.name, p.died))
		default:
			continue
		}
		lines = append(lines, f.header.Line(one))
	}
	if len(lines) == 0 {
		return nil
	}
	if text := unnamed(files); text != "" {
		say = append(say, text)
	}
	return fmt.Errorf("%w: %s; run again: %s", ErrShards, strings.Join(say, "; "), strings.Join(lines, "; "))
}

// unnamed says which files have no header.
func unnamed(files []*file) string {
	var list []string
	for _, f := range files {
		if !f.named {
			list = append(list, f.name+" "+f.died)
		}
	}
	return strings.Join(list, "; ")
}

// again goes back to the first result.
func (f *file) again() error {
	if _, err := f.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	f.r.Reset(f.f)
	_, err := f.next(bounded.ShardHeader)
	return err
}

// Each calls do with the result of each item, in the order of the whole list, once.
func Each[T any](r *Results, do func(T) error) error {
	for i := range r.Items {
		f := r.parts[i%len(r.parts)]
		var l line
		b, err := f.next(bounded.ShardLine)
		if err == nil {
			err = json.Unmarshal(b, &l)
		}
		var v T
		if err == nil {
			err = json.Unmarshal(l.Result, &v)
		}
		if err != nil {
			return &fs.PathError{Op: "read", Path: f.name, Err: fmt.Errorf("%w: the result of item %d: %w", ErrShards, i+1, err)}
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

// Form reads the form of the run.
func Form[T any](r *Results) (T, error) {
	var v T
	err := json.Unmarshal(r.Run.Form, &v)
	if err != nil {
		err = fmt.Errorf("%w: %s: the form of %s: %w", ErrShards, r.parts[0].name, r.Command, err)
	}
	return v, err
}

// Collect returns the form of the run, and the results of all items.
func Collect[F, T any](r *Results) (form F, list []T, err error) {
	if form, err = Form[F](r); err == nil {
		err = Each(r, func(v T) error {
			list = append(list, v)
			return nil
		})
	}
	return form, list, err
}
