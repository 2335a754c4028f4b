package compare

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Names are the decoders that Open knows; make deps-test fetches them.
var Names = []string{"zydis", "objdump", "llvm", "x86asm", "capstone", "iced"}

// Open starts the decoder of that name; with text, a decoder that also returns mnemonic and
// operands. kernel:RELEASE is the kernel's own decoder. A program with the line protocol is found
// as DIR/NAME in the folders of Dirs, or else as kprobelab-NAME on the path. objdump is found on
// the path by its own name.
func Open(name string, text bool) (Decoder, error) {
	if release, ok := strings.CutPrefix(name, "kernel:"); ok {
		return NewKernel(release)
	}
	if name == "x86asm" {
		return X86asm{Text: text}, nil
	}
	for _, dir := range Dirs() {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.Base(name) == name {
			return openAt(name, path, text)
		}
	}
	program := "kprobelab-" + name
	if name == "objdump" {
		program = name
	}
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return openAt(name, path, text)
	case slices.Contains(Names, name):
		return nil, fmt.Errorf("%w: neither .cache/decoders/bin/%s nor %s on the path; make deps-test fetches it", &NotHereError{name}, name, program)
	}
	return nil, fmt.Errorf("there is no decoder %q: there are %s, kernel:RELEASE, and programs kprobelab-NAME on the path that speak the line protocol of docs/decoder.md",
		name, strings.Join(Names, ", "))
}

var (
	// ErrName: the name is none of a decoder.
	ErrName = errors.New("no decoder of this name")
	// ErrNone: there is none to compare with.
	ErrNone = errors.New("there is no other decoder on this machine")
)

// OpenAll starts the decoders of these names and command lines, each once. Without names and
// command lines it starts the first three of Names that are installed; the error is ErrNone if none
// is. An ErrName is for a name that cannot be opened on any system.
func OpenAll(names, commands []string, text bool) (list []Decoder, err error) {
	defer func() {
		if err != nil {
			for _, d := range list {
				_ = d.Close()
			}
			list = nil
		}
	}()
	asked := len(names)+len(commands) > 0
	if !asked {
		names = Names[:3]
	}
	for n, name := range names {
		if slices.Contains(names[:n], name) {
			continue
		}
		d, err := Open(name, text)
		var notHere *NotHereError
		switch {
		case err == nil:
			list = append(list, d)
		case !errors.As(err, &notHere):
			return list, &nameError{err}
		case asked:
			return list, err
		}
	}
	for n, line := range commands {
		if slices.Contains(commands[:n], line) {
			continue
		}
		d, err := StartCommand(line)
		if err != nil {
			return list, err
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		return nil, ErrNone
	}
	return list, nil
}

// nameError is an ErrName in Open's words.
type nameError struct{ error }

func (e *nameError) Is(target error) bool { return target == ErrName }

// NotHereError: a decoder is known by name, and is not on this machine.
type NotHereError struct{ Name string }

// Error names the decoder.
func (e *NotHereError) Error() string { return "there is no " + e.Name + " here" }

func openAt(name, path string, text bool) (Decoder, error) {
	if name == "objdump" {
		o, err := NewObjdump(path)
		if err == nil {
			o.Text = text
		}
		return o, err
	}
	if text {
		return StartChild(name, path, "text")
	}
	return StartChild(name, path)
}

// Dirs returns the folders in which make deps-test installs decoders: $KPROBELAB_DECODERS, then
// .cache/decoders/bin in the working folder or above, and next to the program.
func Dirs() []string {
	var dirs []string
	if dir := os.Getenv("KPROBELAB_DECODERS"); dir != "" {
		dirs = append(dirs, dir)
	}
	if wd, err := os.Getwd(); err == nil {
		for up := range 4 {
			dirs = append(dirs, filepath.Join(wd, strings.Repeat("../", up), ".cache/decoders/bin"))
		}
	}
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Join(filepath.Dir(exe), "../.cache/decoders/bin"))
	}
	return dirs
}
