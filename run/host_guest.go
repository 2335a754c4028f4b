package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/hostfiles"
	"kprobelab/internal/printable"
)

// give puts the files that the programs of the host need into the guest. It comes before all probes: none hits there.
func (r *runner) give(jobs []bound) error {
	for _, j := range jobs {
		if j.Host == nil {
			continue
		}
		k, err := r.lab.Booted()
		if err == nil {
			var config []hostfiles.File
			if config, err = r.configuration(j.Host.Files); err == nil {
				err = k.Prepare(append(config, j.Host.Files...))
			}
		}
		if err == nil {
			if err := r.set(j.Host, k); err != nil {
				return err
			}
		}
		if err == nil && len(j.Host.Workloads) > 0 && !k.Has(shell) {
			return refused(fmt.Errorf("%s: %w", printable.Name(r.lab.Image.Name()), ErrNoShell))
		}
		if user, group, other := j.Host.Rights.User(); other && err == nil {
			err = k.Give(j.Host.own(), user, group)
		}
		if err != nil {
			return programError(r.lab.Image.Name(), "", err)
		}
	}
	return nil
}

// set loads the modules of the kernel's own package, and locks the kernel down.
func (r *runner) set(h *HostProgram, k *booted.Kernel) error {
	ctx := h.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if len(h.Modprobe) > 0 && h.ModuleFiles == nil {
		return misused("there are modules to load, and no ModuleFiles that has them")
	}
	if len(h.Modprobe) > 0 {
		err := h.ModuleFiles(ctx, r.lab.Image.Release(), h.Modprobe, func(name string, code []byte) error {
			return k.Modprobe(ctx, name, code, "")
		})
		if err != nil {
			return refused(OneLine(err))
		}
	}
	if h.Lockdown == "" {
		return nil
	}
	err := k.SetLockdown(h.Lockdown)
	if errors.Is(err, errno.ENOENT) {
		err = fmt.Errorf("%s has no lockdown: CONFIG_SECURITY_LOCKDOWN_LSM is not set, or lsm= leaves it out", printable.Name(r.lab.Image.Name()))
	}
	if err != nil {
		return refused(OneLine(err))
	}
	return nil
}

// configuration is the kernel's configuration at its usual place in the guest, where libbpf and others look for it: the file
// that lies beside the dump, unless the program's files have one.
func (r *runner) configuration(files []hostfiles.File) ([]hostfiles.File, error) {
	name := "config-" + r.lab.Image.Release()
	beside, inside := filepath.Join(filepath.Dir(r.lab.Image.Name()), name), "/boot/"+name
	if strings.Contains(name, "/") { // a dump's own words name no other file of the host
		return nil, nil
	}
	if _, err := os.Stat(beside); err != nil || slices.ContainsFunc(files, func(f hostfiles.File) bool { return f.Path == inside }) {
		return nil, nil
	}
	var s hostfiles.Set
	if err := s.Add(beside, inside); err != nil {
		return nil, err
	}
	return s.Files(), nil
}
