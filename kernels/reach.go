package kernels

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"kprobelab/internal/bounded"
)

// Mirror returns the address of the archive that packages come from; the error is ErrMirror if none is known.
func (s *Store) Mirror() (string, error) {
	o, err := s.find()
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(o.Main.URI, "/"), nil
}

// CheckKeys fails if there is no key that the archive's signatures are checked with.
func (s *Store) CheckKeys() error {
	o, err := s.find()
	if err == nil {
		_, err = s.ring(o, o.Main)
	}
	return err
}

// Reach asks the archive for one short file, the signature of a suite, and returns nil if the archive answers: also if it
// answers that there is no such file. It tries once, and changes nothing in the store.
func (s *Store) Reach(ctx context.Context) error {
	base, err := s.Mirror()
	if err != nil {
		return err
	}
	if s.o.Offline {
		return fmt.Errorf("%s: %w", base, ErrOffline)
	}
	client := *s.client
	client.Once = true
	_, err = client.Get(ctx, base+"/dists/"+qemuSuites[0]+"/Release.gpg", bounded.SignedIndex)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(base, "file:") {
		return nil
	}
	return err
}

// KeptHeaders returns the releases that the store has the headers of, for building modules.
func (s *Store) KeptHeaders() (releases []string) {
	const prefix = "headers-"
	names, _ := filepath.Glob(filepath.Join(s.o.Dir, toolsDir, prefix+"*"))
	for _, name := range names {
		releases = append(releases, strings.TrimPrefix(filepath.Base(name), prefix))
	}
	return releases
}
