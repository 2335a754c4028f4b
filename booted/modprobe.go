package booted

import (
	"context"
	"errors"
	"strings"

	"kprobelab/hostfiles"
)

// Modprobe loads a module of the kernel's own package from the content of its .ko file, in a process of its own, with its
// parameters, and does not judge it. One that is loaded stays as it is. With veth come the two ends of a pair (Pair).
// Modules on which it depends have to be loaded before. The error is a *ModuleError if the kernel refuses it.
func (k *Kernel) Modprobe(ctx context.Context, name string, code []byte, parameters string) error {
	if _, err := k.toInit(); err != nil {
		return err
	}
	m := &Module{Name: moduleName(name), k: k}
	if k.Has("/sys/module/" + m.Name + "/initstate") {
		return nil
	}
	file := moduleFolder + m.Name + ".ko"
	if err := k.Put([]hostfiles.File{{Path: file, Mode: 0o644, Data: code}}); err != nil {
		return err
	}
	err := m.ask(ctx, false, "load", file, parameters)
	if _, e := k.asks("unlinkat", atCurrent, file, 0); err == nil {
		err = e // its memory is the guest's
	}
	if err == nil && m.Name == "veth" {
		err = k.Pair()
	}
	return err
}

// SetLockdown locks the kernel down (kernel_lockdown(7)): integrity or confidentiality. There is no way back. The error is
// ENOENT if the kernel has no lockdown.
func (k *Kernel) SetLockdown(level string) error {
	const file = "/sys/kernel/security/lockdown"
	if _, err := k.toInit(); err != nil {
		return err
	}
	if err := k.mount("securityfs", strings.TrimSuffix(file, "/lockdown"), ""); err != nil {
		return err
	}
	fd, err := k.asks("openat", atCurrent, file, writeOnly|closeExec, 0)
	if err != nil {
		return &FileError{file, err}
	}
	err = k.write(fd, []byte(level))
	_, e := k.asks("close", fd)
	return errors.Join(err, e)
}
