package boot

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/mailbox"
	"kprobelab/kimage"
)

// RefusedError is the refusal of the booted kernel. It unwraps to the errno.
type RefusedError struct {
	// What names the request.
	What string
	errno.Errno
}

// Error implements error.
func (e *RefusedError) Error() string { return e.What + ": " + e.Errno.Error() }

// Unwrap is the errno.
func (e *RefusedError) Unwrap() error { return e.Errno }

// ErrModule is a file that cannot be a kernel's module.
var ErrModule = errors.New("this is no module for x86-64 (a relocatable ELF file, .ko)")

// Module is a module for Guest.Load. Its File has to be one of Options.Files.
type Module struct {
	File
	name string
}

// ReadModule reads a .ko file, packed or not.
func ReadModule(file string) (*Module, error) {
	code, err := kimage.ReadUnpacked(file)
	if err != nil {
		return nil, err
	}
	if f, err := elf.NewFile(bytes.NewReader(code)); err != nil || f.Type != elf.ET_REL || f.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("%s: %w", file, ErrModule)
	}
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(filepath.Base(file)))
	return &Module{Regular("/lib/modules/"+name, 0o644, code), name}, nil
}

// Load loads a module whose file the guest has. A refusal is a *RefusedError.
func (g *Guest) Load(m *Module) error {
	o, err := g.Do(mailbox.Command{Kind: mailbox.Insmod, Args: []string{m.entry.Name}}, nothing)
	return done("the kernel refuses the module "+m.name, o, err)
}

// Start starts a program of the guest and leaves it running. A program that cannot be started is a *RefusedError.
func (g *Guest) Start(p *booted.Program) error {
	o, err := g.Do(command(mailbox.Spawn, p), nothing)
	return done(p.Args[0]+" does not start", o, err)
}

// Exit is the end of a program.
type Exit struct {
	// Code is the exit code as in a shell: 128 plus the signal for a program that a signal has
	// ended. Signal is that signal, or 0.
	Code, Signal int
}

// Exec runs a program of the guest to its end, as Lab.Exec does on a dump. A program that cannot be started is a *RefusedError.
func (g *Guest) Exec(p *booted.Program) (Exit, error) {
	o, err := g.Do(command(mailbox.Exec, p), mailbox.To(p.Stdout, p.Stderr))
	if err := done(p.Args[0]+" does not start", o, err); err != nil {
		return Exit{}, err
	}
	return Exit{o.Code(), o.Signal()}, nil
}

// CheckProgram fails if a program's arguments, environment and input are too long for the mailbox.
func CheckProgram(p *booted.Program) error {
	_, err := command(mailbox.Exec, p).Pieces()
	return err
}

func command(kind mailbox.Kind, p *booted.Program) mailbox.Command {
	return mailbox.Command{Kind: kind, Args: p.Args, Env: p.Env, Dir: p.Dir, Input: p.Stdin}
}

// done is the error of a command that could not be done, nil when it was.
func done(what string, o *mailbox.Outcome, err error) error {
	if err == nil && o.Errno != 0 {
		err = &RefusedError{what, o.Errno}
	}
	return err
}
