package kernels

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/outfile"
	"kprobelab/internal/printable"
	"kprobelab/kimage"
)

// LockName is the usual name of a lock: a file of the user's project, which is kept beside its sources.
const LockName = "kernels.lock"

// ErrLock: a file is not a lock, or the kernels that are kept do not fit to it.
var ErrLock = errors.New("the lock of kernels")

// Machine is the machine on which a kernel is booted.
type Machine struct {
	// CPU is the model as QEMU writes it, CPUs how many processors there are, Megabytes the size of the memory.
	CPU       string `json:"cpu"`
	CPUs      int    `json:"cpus"`
	Megabytes int    `json:"memory_mib"`
	// Append are more words for the kernel's command line.
	Append string `json:"append,omitempty"`
}

// String says it in words.
func (m Machine) String() string {
	text := fmt.Sprintf("%s, %d CPU, %d MiB", m.CPU, m.CPUs, m.Megabytes)
	if m.Append != "" {
		text += ", " + m.Append
	}
	return text
}

// Pin is a word of a lock, with the kernel and the machine that it means.
type Pin struct {
	Word     string `json:"word"`
	Release  string `json:"release"`
	Package  string `json:"package,omitempty"`
	Version  string `json:"version,omitempty"`
	Packaged string `json:"package_sha256,omitempty"`
	// SHA256 is the checksum of the image.
	SHA256 string `json:"sha256"`
	Machine
}

// String says it in a line.
func (p *Pin) String() string {
	return fmt.Sprintf("%s: %s, sha256 %s; %s", p.Word, p.Release, p.SHA256, p.Machine)
}

// Lock says which kernels words mean.
type Lock struct {
	Version int    `json:"version"`
	Kernels []*Pin `json:"kernels"`
	// File is the file that the lock was read of.
	File string `json:"-"`
}

// lockVersion is the version of the file's form.
const lockVersion = 1

// cpuWord matches a model with its features, as QEMU takes it.
var cpuWord = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+=,-]*$`)

// appendWords matches words of a kernel's command line.
var appendWords = regexp.MustCompile(`^[ -~]*$`)

// FindLock reads the lock of a folder, or of the next one above it that has one; nil if there is none.
func FindLock(dir string) (*Lock, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for {
		l, err := ReadLock(filepath.Join(dir, LockName))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
		if filepath.Dir(dir) == dir {
			return nil, nil
		}
		dir = filepath.Dir(dir)
	}
}

// ReadLock reads a lock.
func ReadLock(file string) (*Lock, error) {
	b, err := bounded.ReadFile(file, bounded.ListLine)
	if err != nil {
		return nil, err
	}
	l := &Lock{File: file}
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("%w %s is no JSON as kprobelab kernels lock writes it: %w", ErrLock, printable.Name(file), err)
	}
	if l.Version != lockVersion {
		return nil, fmt.Errorf("%w %s has version %d, and this program knows %d", ErrLock, printable.Name(file), l.Version, lockVersion)
	}
	for i, p := range l.Kernels {
		if why := p.wrong(); why != "" {
			return nil, fmt.Errorf("%w %s: kernel %d has %s", ErrLock, printable.Name(file), i+1, why)
		}
		if l.Pin(p.Word) != p {
			return nil, fmt.Errorf("%w %s has %q twice", ErrLock, printable.Name(file), p.Word)
		}
	}
	return l, nil
}

// wrong names the fault of a pin; it returns "" if there is none.
func (p *Pin) wrong() string {
	if p == nil {
		return "no content"
	}
	_, err := parseWord(p.Word)
	switch {
	case err != nil && p.Word != p.Release:
		return fmt.Sprintf("the word %q, which names no kernel", p.Word)
	case !isRelease(p.Release):
		return fmt.Sprintf("the release %q", p.Release)
	case !sum.MatchString(p.SHA256), p.Packaged != "" && !sum.MatchString(p.Packaged):
		return "a checksum that is no SHA-256"
	case len(p.CPU) > 256, !cpuWord.MatchString(p.CPU):
		return fmt.Sprintf("the CPU %q", p.CPU)
	case !appendWords.MatchString(p.Append):
		return "words for the command line that are none"
	case p.CPUs < 1 || p.CPUs > bounded.BootCPUs:
		return fmt.Sprintf("%d CPUs", p.CPUs)
	case p.Megabytes < 1 || p.Megabytes > bounded.BootMemory:
		return fmt.Sprintf("%d MiB of memory", p.Megabytes)
	}
	return ""
}

// Pin returns the pin of a word, nil if there is none.
func (l *Lock) Pin(word string) *Pin {
	if l == nil {
		return nil
	}
	if i := slices.IndexFunc(l.Kernels, func(p *Pin) bool { return p.Word == word }); i >= 0 {
		return l.Kernels[i]
	}
	return nil
}

// Bytes are the lock as a file has it: in the order of the words, so that a version control shows what has changed.
func (l *Lock) Bytes() ([]byte, error) {
	sorted := Lock{Version: lockVersion, Kernels: slices.Clone(l.Kernels)}
	slices.SortFunc(sorted.Kernels, func(a, b *Pin) int { return strings.Compare(a.Word, b.Word) })
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(sorted)
	return b.Bytes(), err
}

// Key names what a cache holds that has the kernels of the lock booted. It changes with any of them, and with more.
func (l *Lock) Key(more ...[]byte) (string, error) {
	if len(l.Kernels) == 0 {
		return "", fmt.Errorf("%w has none yet: kprobelab kernels lock RELEASE... pins some", ErrLock)
	}
	b, err := l.Bytes()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, part := range append(more, b) {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return "kprobelab-" + hex.EncodeToString(h.Sum(nil))[:32], nil
}

// Lock pins words to their kernels of today, writes the lock, and returns the pins. Without words it pins all words of the
// lock again. Without a machine, a word keeps its machine, and a new one gets DefaultMachine. A missing kernel is fetched.
func (s *Store) Lock(ctx context.Context, words []string, m *Machine) ([]*Pin, error) {
	l := s.TheLock()
	free := *s
	free.o.Lock, free.o.Strict = nil, false
	if len(words) == 0 {
		for _, p := range l.Kernels {
			words = append(words, p.Word)
		}
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w has none yet: name the kernels to pin", ErrLock)
	}
	var pins []*Pin
	for _, word := range words {
		k, err := free.Kernel(ctx, word)
		if err != nil {
			if there, found := free.Find(word); found == nil { // of a vendor that nothing is fetched from
				k, err = there, nil
			}
		}
		if err != nil {
			return nil, err
		}
		p := &Pin{Word: word, Release: k.Release, Package: k.Package, Version: k.Version, Packaged: k.Packaged, SHA256: k.SHA256}
		old := l.Pin(word)
		switch {
		case m != nil:
			p.Machine = *m
		case old != nil:
			p.Machine = old.Machine
		default:
			p.Machine = DefaultMachine
		}
		if why := p.wrong(); why != "" {
			return nil, fmt.Errorf("%w cannot have %s: it would have %s", ErrLock, printable.Name(word), why)
		}
		if old != nil {
			*old = *p
		} else {
			l.Kernels = append(l.Kernels, p)
		}
		pins = append(pins, p)
	}
	b, err := l.Bytes()
	if err != nil {
		return nil, err
	}
	return pins, outfile.Write(l.File, b)
}

// DefaultMachine is the machine of a kernel that is booted for a word.
var DefaultMachine = Machine{CPU: kimage.DefaultCPU, CPUs: 1, Megabytes: 128}

// Kernel has the kernel of a release that is there, of a vendor of any kind, or one that Fetch has.
func (s *Store) Kernel(ctx context.Context, word string) (*Kernel, error) {
	list, err := s.Kept()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if k.Release == word && s.o.Lock.Pin(word).allows(k) {
			return k, nil
		}
	}
	return s.Fetch(ctx, word)
}

// Pin returns the lock's pin of a word, nil if there is none.
func (s *Store) Pin(word string) *Pin { return s.o.Lock.Pin(word) }

// TheLock returns the store's lock, or an empty one for a new file in the working directory.
func (s *Store) TheLock() *Lock {
	if s.o.Lock != nil {
		return s.o.Lock
	}
	return &Lock{Version: lockVersion, File: LockName}
}

// Locked reports whether words have to mean what a lock says.
func (s *Store) Locked() bool { return s.o.Lock != nil || s.o.Strict }

// allows reports whether a pin allows a kernel; nil allows all.
func (p *Pin) allows(k *Kernel) bool {
	return p == nil || k.Release == p.Release && k.SHA256 == p.SHA256
}

// loose reports whether a word means a kernel by a lock alone: the store is strict, there is no pin, and the word may mean
// another kernel tomorrow.
func (s *Store) loose(text string) bool {
	w, err := parseWord(text)
	return s.o.Strict && s.o.Lock.Pin(text) == nil && (err != nil || w.release == "")
}

// errLoose is the error of a loose word. It says what the word would mean.
func (s *Store) errLoose(ctx context.Context, text string) error {
	why := "there is no " + LockName
	if s.o.Lock != nil {
		why = printable.Name(s.o.Lock.File) + " has no such word"
	}
	return fmt.Errorf("in CI (CI=true) %w decides which kernel %s is, and %s; %s; kprobelab kernels lock %s pins it", ErrLock,
		printable.Name(text), why, s.would(ctx, text), printable.Name(text))
}

// would says which kernel a word would mean without a lock.
func (s *Store) would(ctx context.Context, text string) string {
	free := *s
	free.o.Lock, free.o.Strict, free.o.Say = nil, false, io.Discard
	if k, err := free.Find(text); err == nil {
		return fmt.Sprintf("without a lock it would be %s (%s…) in the cache", k.Release, k.SHA256[:12])
	}
	if free.o.Offline {
		return "without a lock it would be fetched, and nothing is fetched (--offline)"
	}
	release, _, err := free.resolve(ctx, text)
	if err != nil {
		return "without a lock there would be none either: " + err.Error()
	}
	return "without a lock it would be " + release + " of the archive"
}

// pinned has the kernel of a pin: the store's, or the archive's if it is the same to the byte.
func (s *Store) pinned(ctx context.Context, p *Pin) (*Kernel, error) {
	list, err := s.Kept()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if p.allows(k) {
			return k, nil
		}
	}
	says := fmt.Sprintf("%s says that %s is %s (%s…)", printable.Name(s.o.Lock.File), p.Word, p.Release, p.SHA256[:12])
	if s.o.Offline {
		return nil, fmt.Errorf("%w %s: %w; %s", ErrLock, says, ErrOffline, s.would(ctx, p.Word))
	}
	free := *s
	free.o.Lock, free.o.Strict = &Lock{Kernels: []*Pin{p}}, false
	k, err := free.fetch(ctx, p.Release, p)
	if err != nil && ctx.Err() == nil && !free.o.Refresh { // by an index that may be of yesterday
		free.o.Refresh = true
		k, err = free.fetch(ctx, p.Release, p)
	}
	switch {
	case err == nil && p.allows(k):
		return k, nil
	case err == nil:
		err = fmt.Errorf("the archive's has %s…", k.SHA256[:12])
	case !errors.Is(err, ErrKernel):
		return nil, err
	}
	return nil, fmt.Errorf("%w %s, and that is neither in the cache nor in the archive (%w); %s; kprobelab kernels lock %s pins the new one, kernels import brings the old one",
		ErrLock, says, err, s.would(ctx, p.Word), p.Word)
}

// OnMachine is the error of a dump that was made on another machine than the pin of the word says.
func (s *Store) OnMachine(word string, k *Kernel) error {
	p := s.Pin(word)
	if p == nil || k.Booted != nil && *k.Booted == p.Machine {
		return nil
	}
	was := "one that was not noted"
	if k.Booted != nil {
		was = k.Booted.String()
	}
	return fmt.Errorf("%w %s says that the machine of %s is %s, and the dump of %s in the cache is of %s; kprobelab kernels boot --again %s makes it anew",
		ErrLock, printable.Name(s.o.Lock.File), p.Word, p.Machine, k.Release, was, p.Word)
}
