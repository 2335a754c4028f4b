package conformance

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Asked is a kernel that was asked: the questions and its answers. Saved, it can
// be compared again without a boot, when a rule has changed.
type Asked struct {
	Points []x86.Addr
	// Names are definitions by name, Object is a BPF object, or nil.
	Names  []string
	Object []byte
	Booted Booted
}

// saved is the form of an Asked in a file.
type saved struct {
	Version int
	Asked   Asked
	// Changed are the bytes by which Booted.Settled differs from Booted.Text: a few
	// thousand of many million.
	Changed []change
}

type change struct {
	At  int
	Now byte
}

const savedVersion = 1

// maxSaved bounds what is read of a file, packed and unpacked.
const maxSaved = 256 << 20

// Save writes what was asked into a file, which appears whole or not at all.
func (a *Asked) Save(file string) error {
	s := saved{Version: savedVersion, Asked: *a}
	s.Asked.Booted.Settled = nil
	if len(a.Booted.Settled) != len(a.Booted.Text) {
		return fmt.Errorf("the text has %d bytes, and %d with the probes in place", len(a.Booted.Text), len(a.Booted.Settled))
	}
	for i, b := range a.Booted.Settled {
		if b != a.Booted.Text[i] {
			s.Changed = append(s.Changed, change{i, b})
		}
	}
	return replaceFile(file, func(w io.Writer) error {
		z, err := zstd.NewWriter(w)
		if err != nil {
			return err
		}
		return errors.Join(gob.NewEncoder(z).Encode(&s), z.Close())
	})
}

// LoadAsked reads what Save wrote.
func LoadAsked(file string) (*Asked, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(bounded.Reader(f, maxSaved))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var s saved
	if err := gob.NewDecoder(bounded.Reader(z, maxSaved)).Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if s.Version != savedVersion {
		return nil, fmt.Errorf("%s: version %d, %d is wanted", file, s.Version, savedVersion)
	}
	b := &s.Asked.Booted
	b.Settled = append([]byte(nil), b.Text...)
	for _, c := range s.Changed {
		if c.At < 0 || c.At >= len(b.Settled) {
			return nil, fmt.Errorf("%s: it is damaged: byte %d of %d", file, c.At, len(b.Settled))
		}
		b.Settled[c.At] = c.Now
	}
	return &s.Asked, nil
}

// replaceFile writes a file beside the one wanted, and renames it.
func replaceFile(file string, write func(io.Writer) error) error {
	part := file + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, file)
}
