package kernels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/internal/download"
)

// Options say where kernels come from and where they are kept. The zero value is right for most.
type Options struct {
	// Dir is the folder in which all is kept; by default kprobelab in the user's cache folder.
	Dir string
	// Mirror is the address of Debian's archive, as http://deb.debian.org/debian. By default it is
	// $KPROBELAB_MIRROR, else the address in the user's file debian.sources or debian.list (in
	// kprobelab in the user's folder of configurations), else the address in apt's sources.
	Mirror string
	// Keyrings are files of keys that check the indexes. By default they are the keyrings that the
	// source names, else Debian's, else the keyrings that the system trusts.
	Keyrings []string
	// Root is the folder above the system's configuration, / by default.
	Root string
	// Refresh fetches indexes anew that are a day old or less.
	Refresh bool
	// Offline fetches nothing.
	Offline bool
	// Lock says which kernels words mean; nil for none. With Strict, a word that is neither in the lock nor a release has no
	// kernel.
	Lock   *Lock
	Strict bool
	// Say gets a line for each action, Progress is called with its progress; either may be nil.
	Say      io.Writer
	Progress func(stage string, done, total int64)
}

// ErrOffline is something that would have to be fetched, and must not.
var ErrOffline = errors.New("it is not in the cache, and nothing is fetched (--offline)")

// ErrFolder: there is no folder to keep kernels in, or it cannot be written.
var ErrFolder = errors.New("there is no folder to keep kernels in")

// Store is the folder of kernels and programs, with the archives from which it fetches more. It is
// for one goroutine at a time. Several stores, of several processes too, may have one folder.
type Store struct {
	o      Options
	client *download.Client
	now    func() time.Time
	// origins are the archives, nil before the first fetch.
	origins *origins
	// fresh are the indexes that were fetched anew, told the addresses that were printed for it.
	fresh, told map[string]bool
}

// The folders of a store.
const (
	kernelsDir = "kernels"
	toolsDir   = "tools"
	indexDir   = "index"
	partsDir   = "parts"
	locksDir   = "locks"
)

// Open finds the store's folder. What is put there makes it.
func Open(o *Options) (*Store, error) {
	s := &Store{o: *o, now: time.Now, fresh: map[string]bool{}, told: map[string]bool{}}
	if s.o.Dir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFolder, err)
		}
		s.o.Dir = filepath.Join(dir, "kprobelab")
	}
	dir, err := filepath.Abs(s.o.Dir)
	if err != nil {
		return nil, err
	}
	s.o.Dir = dir
	if s.o.Root == "" {
		s.o.Root = "/"
	}
	if s.o.Say == nil {
		s.o.Say = io.Discard
	}
	if err := bounded.Ours(s.o.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err) // programs from there are run
	}
	s.client = download.New(s.proxy)
	s.client.Progress = s.o.Progress
	return s, nil
}

// Dir is the store's folder.
func (s *Store) Dir() string { return s.o.Dir }

// say prints an action.
func (s *Store) say(format string, args ...any) { fmt.Fprintf(s.o.Say, format+"\n", args...) }

// lock takes the store's lock of a name.
func (s *Store) lock(ctx context.Context, name string) (func(), error) {
	unlock, err := download.Lock(ctx, filepath.Join(s.o.Dir, locksDir, name), func() {
		s.say("waiting for another process that fetches the same")
	})
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return nil, fmt.Errorf("%w: %v", ErrFolder, err) // each use of the folder begins with a lock; a missing one is no missing file of an archive
	}
	return unlock, err
}

// build makes a folder below the store. do fills a temporary folder, so that the folder is
// complete, or absent.
func (s *Store) build(name string, do func(dir string) error) error {
	dir := filepath.Join(s.o.Dir, name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := os.Chmod(made, 0o755); err != nil {
		return err
	}
	if err := do(made); err != nil {
		return err
	}
	old := made + "-old"
	if err := os.Rename(dir, old); err == nil {
		defer os.RemoveAll(old)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(made, dir)
}

// clean removes the leftovers of a process that was killed while it built a folder. The caller has
// the folder's lock.
func clean(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, ".new-*"))
	for _, name := range names {
		if st, err := os.Stat(name); err == nil && time.Since(st.ModTime()) > 24*time.Hour && strings.HasPrefix(filepath.Base(name), ".new-") {
			os.RemoveAll(name)
		}
	}
}
