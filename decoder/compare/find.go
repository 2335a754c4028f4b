package compare

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Names are the decoders that Open knows, in the order in which they vote.
var Names = []string{"zydis", "objdump", "llvm", "x86asm", "capstone", "xed"}

// Open starts the decoder of that name. A program that speaks the line protocol
// is looked for as DIR/NAME in the folders of Dirs, and then as kprobelab-NAME
// on the path. objdump is found on the path by its own name.
func Open(name string) (Decoder, error) {
	if name == "x86asm" {
		return X86asm{}, nil
	}
	for _, dir := range Dirs() {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return openAt(name, path)
		}
	}
	program := "kprobelab-" + name
	if name == "objdump" {
		program = name
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("there is no %s here: neither .cache/decoders/bin/%s nor %s on the path; make deps-test fetches zydis, llvm, "+
			"capstone and objdump; any other is a program of that name that speaks the line protocol of docs/decoder.md", name, name, program)
	}
	return openAt(name, path)
}

func openAt(name, path string) (Decoder, error) {
	if name == "objdump" {
		return NewObjdump(path)
	}
	return StartChild(name, path)
}

// Dirs are where make deps-test puts decoders: $KPROBELAB_DECODERS, and
// .cache/decoders/bin in the working folder or above, and beside the program.
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
