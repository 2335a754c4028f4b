package boot

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"kprobelab/internal/bounded"
	"kprobelab/internal/qemu"
	"kprobelab/kernels"
)

// Keeper boots kernels of a store, and keeps their memory there.
type Keeper struct {
	Store *kernels.Store
	// Options are the options of each boot; the keeper sets Kernel. Without a QEMU one is found, or fetched.
	Options
	// Booting is called before a kernel is booted, NoShell if its guest gets no shell, Progress while its memory is saved.
	// All may be nil.
	Booting  func(k *kernels.Kernel)
	NoShell  func(why error)
	Progress func(stage string, done, total int64)
}

// Keep boots a kernel of the store, and keeps its memory.
func (b *Keeper) Keep(ctx context.Context, k *kernels.Kernel) error {
	if b.QEMU == "" {
		found, err := qemu.Find(ctx, func() (string, error) { return b.Store.QEMU(ctx) })
		if err != nil {
			return err
		}
		b.QEMU = found.Path
	}
	if b.Booting != nil {
		b.Booting(k)
	}
	with := b.Options
	with.Files = append(b.shell(ctx), with.Files...)
	var err error
	if with.Kernel, err = Open(k.Image, nil); err != nil {
		return err
	}
	return b.Store.SaveDump(ctx, k, b.Machine(), func(file string) error {
		return Boot(ctx, &with, func(g *Guest) error {
			_, err := g.Save(&Dump{File: file, Format: Zstd, Progress: b.Progress})
			return err
		})
	})
}

// shell has the files of the guest's shell and usual commands. A guest without them is of use, too.
func (b *Keeper) shell(ctx context.Context) []File {
	program, err := b.Store.Busybox(ctx)
	var list []File
	if err == nil {
		list, err = Files(program, "/bin/busybox")
	}
	if err != nil && b.NoShell != nil {
		b.NoShell(err)
	}
	return list
}

// Find finds the dump that a word means: a file, which is the dump itself or an image to boot, or a release, which is fetched
// if need be. What has no dump yet is booted, and kept. The empty word is the newest kernel that is kept with a dump, or the
// newest there is. With a lock, it is as the word newest, and the machine is the lock's.
func (b *Keeper) Find(ctx context.Context, word string) (string, error) {
	var k *kernels.Kernel
	if word == "" && b.Store.Locked() {
		word = "newest"
	}
	image, err := IsImage(word)
	switch {
	case err == nil && !image:
		return word, nil
	case err == nil:
		k, err = b.Store.Add(ctx, word, "")
	case !errors.Is(err, fs.ErrNotExist):
	case word == "":
		k, err = b.newest(ctx)
	default:
		if k, err = b.Store.Find(word); err != nil {
			k, err = b.Store.Fetch(ctx, word)
		}
	}
	switch {
	case err == nil && k.Dump == "":
		err = b.keepFor(ctx, word, k)
	case err == nil:
		err = b.Store.OnMachine(word, k)
	}
	if err != nil {
		return "", err
	}
	return k.Dump, nil
}

// keepFor keeps the memory of a kernel on the machine that the lock has for a word.
func (b *Keeper) keepFor(ctx context.Context, word string, k *kernels.Kernel) error {
	with := *b
	if p := b.Store.Pin(word); p != nil {
		with.On(p.Machine)
	}
	return with.Keep(ctx, k)
}

// On chooses a machine.
func (o *Options) On(m kernels.Machine) {
	o.CPU, o.CPUs, o.Megabytes, o.Append = m.CPU, m.CPUs, m.Megabytes, m.Append
}

// Machine is the machine that the options choose.
func (o *Options) Machine() kernels.Machine {
	return kernels.Machine{CPU: o.CPU, CPUs: o.CPUs, Megabytes: o.Megabytes, Append: o.Append}
}

// Key names a cache that has the kernels of a lock booted by this program.
func Key(l *kernels.Lock) (string, error) { return l.Key(Init) }

func (b *Keeper) newest(ctx context.Context) (*kernels.Kernel, error) {
	list, err := b.Store.Kept()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if k.Dump != "" {
			return k, nil
		}
	}
	return b.Store.Fetch(ctx, "")
}

// IsImage reports whether a file is an image to boot, and no dump: a vmlinuz and a unified kernel image begin as a PE file does.
func IsImage(path string) (bool, error) {
	f, err := bounded.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return false, err // the reader of dumps says what it is
	}
	var b [2]byte
	_, err = io.ReadFull(f, b[:])
	return err == nil && string(b[:]) == "MZ", nil
}
