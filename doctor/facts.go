package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"kprobelab"
	"kprobelab/internal/engine"
	"kprobelab/internal/qemu"
	"kprobelab/kernels"
	"kprobelab/kimage"
)

// Facts describe a machine and its user. An error gives the reason for a missing thing.
type Facts struct {
	// System and Arch are the program's, as Go names them; Static is whether it needs no shared library, Libc the version of
	// the system's glibc, "" if it has none.
	System, Arch string
	Static       bool
	Libc         string
	// Engine is the default engine and its version, Unicorn whether it is that one. EngineErr is the failure of a call
	// on the guest kernel.
	Engine    string
	Unicorn   bool
	EngineErr error
	// CPUs counts the processors of this process. Memory is the number of bytes that it can get: the free memory, or
	// less by the limit of its control group; 0 if unknown.
	CPUs   int
	Memory uint64
	// Kind is the kind of machine: "WSL2", the name of a container, or "".
	Kind string
	// Running is the error of reading the running kernel's image.
	Running error
	// Folder has the kernels. FolderErr is the error of a write to it, Free its free space in bytes, 0 if unknown.
	Folder    string
	FolderErr error
	Free      uint64
	// Kernels counts the kept kernels, Dumps the kernels of them that were booted, Headers the kernels with headers.
	Kernels, Dumps, Headers int
	// Mirror is the archive's address, MirrorErr why there is none, NetworkErr why it does not answer. Offline is set if it
	// was not asked.
	Mirror                string
	MirrorErr, NetworkErr error
	Offline               bool
	// KeysErr is why no signature can be checked.
	KeysErr error
	// QEMU is its version and path, QEMUErr why there is none that can be started. Shell is whether there is /bin/sh, which
	// starts a fetched one.
	QEMU    string
	QEMUErr error
	Shell   bool
	// KVMErr, MountErr and NamespaceErr are why there is no /dev/kvm, no mount, no user namespace.
	KVMErr, MountErr, NamespaceErr error
	// Missing are the programs that a module's build lacks.
	Missing []string
}

// Options bound what Look asks. The zero value asks everything.
type Options struct {
	// Offline asks nothing of the network.
	Offline bool
	// Timeout is the longest that the mirror may take; 3 seconds unless set.
	Timeout time.Duration
}

// Look collects the facts of this machine. It fetches no kernel and no program, and makes no folder.
func Look(ctx context.Context, o Options) *Facts {
	f := &Facts{System: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Offline: o.Offline, Engine: engine.Version()}
	f.EngineErr = f.tryEngine()
	f.Unicorn = engine.Names()[0] == "unicorn"
	_, f.Running = kernels.FindRunning()
	for _, program := range []string{"gcc", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			f.Missing = append(f.Missing, program)
		}
	}
	_, err := os.Stat("/bin/sh")
	f.Shell = err == nil
	f.lookAtHost()
	f.lookAtStore(ctx, o)
	return f
}

// tryEngine calls a function of the guest kernel.
func (f *Facts) tryEngine() error {
	// The image's own functions are not asked: their answers would be kept in a file.
	img, err := kimage.FromBytes(kprobelab.GuestKernel, kprobelab.GuestELF(), nil)
	if err != nil {
		return err
	}
	lab, err := kprobelab.New(img, nil)
	if err != nil {
		return err
	}
	defer lab.Close()
	n, err := lab.Call("strlen", "doctor")
	if err == nil && n != 6 {
		err = fmt.Errorf("the guest kernel's strlen returned %d for 6 letters", n)
	}
	return err
}

// lookAtStore looks at the folder of kernels, and at what it fetches from.
func (f *Facts) lookAtStore(ctx context.Context, o Options) {
	s, err := kernels.Open(&kernels.Options{Offline: true})
	if err != nil {
		f.FolderErr, f.MirrorErr, f.QEMUErr = err, err, err
		return
	}
	f.Folder = s.Dir()
	f.Free, f.FolderErr = writable(f.Folder)
	kept, _ := s.Kept()
	f.Kernels, f.Headers = len(kept), len(s.KeptHeaders())
	for _, k := range kept {
		if k.Dump != "" {
			f.Dumps++
		}
	}
	found, err := qemu.Find(ctx, func() (string, error) {
		if f.FolderErr != nil {
			return "", f.FolderErr
		}
		if _, err := os.Stat(f.Folder); err != nil {
			return "", kernels.ErrOffline // the store would make the folder
		}
		return s.QEMU(ctx)
	})
	f.QEMU, f.QEMUErr = found.Version, err
	if f.Mirror, f.MirrorErr = s.Mirror(); f.MirrorErr != nil {
		return
	}
	f.KeysErr = s.CheckKeys()
	if o.Offline {
		return
	}
	online, err := kernels.Open(&kernels.Options{})
	if err == nil {
		limit := o.Timeout
		if limit == 0 {
			limit = 3 * time.Second
		}
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s has not answered within %s", f.Mirror, limit))
		defer cancel()
		err = online.Reach(ctx)
	}
	f.NetworkErr = err
}

// writable fails if nothing can be written into a folder, or into the nearest folder above it that is there. It returns the
// free space.
func writable(folder string) (free uint64, err error) {
	for {
		st, err := os.Stat(folder)
		if errors.Is(err, os.ErrNotExist) && filepath.Dir(folder) != folder {
			folder = filepath.Dir(folder)
			continue
		}
		if err != nil {
			return 0, err
		}
		if !st.IsDir() {
			return 0, fmt.Errorf("%s is no folder", folder)
		}
		break
	}
	probe, err := os.CreateTemp(folder, ".kprobelab-*")
	if err != nil {
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			err = path.Err
		}
		return 0, fmt.Errorf("nothing can be written into %s: %w", folder, err)
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	return freeSpace(folder), err
}
