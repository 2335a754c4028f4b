package bpf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/bpf/answer"
	"kprobelab/hostfiles"
	"kprobelab/internal/bounded"
)

// Options say how an object is loaded.
type Options struct {
	// Loader is the loader, a static program for Linux/amd64 (go build kprobelab/internal/bpfloader); nil for the one that was
	// put into this build.
	Loader []byte
	// Verbose: the verifier's log has each instruction and its state, of programs that load, too.
	Verbose bool
	// Lab is how Ask opens each kernel. Its Budget is that of an object: the verifier takes some hundred million instructions for
	// a large one.
	Lab kprobelab.Options
}

// ErrLoader: this build has no loader.
var ErrLoader = errors.New("this build has no loader of BPF programs; make build puts one into bin/kprobelab")

// ErrObject: the file is no object with programs.
var ErrObject = errors.New("no object with BPF programs")

// ErrAnswer: the loader did not end as it should.
var ErrAnswer = errors.New("the loader in the guest did not answer")

// Files of the guest.
const (
	loaderFile = "/kprobelab-bpfloader"
	objectFile = "/kprobelab.bpf.o"
)

// Load asks a kernel about the programs of an object, in the order of their names. The kernel stays as it is after that, with no
// program loaded. The error is ErrLoader, ErrObject, or the machine's.
func Load(k *booted.Kernel, object []byte, o *Options) (*answer.Object, error) {
	if o == nil {
		o = &Options{}
	}
	loader := o.Loader
	if loader == nil {
		loader = builtLoader
	}
	if loader == nil {
		return nil, ErrLoader
	}
	err := k.Prepare([]hostfiles.File{
		{Path: loaderFile, Mode: 0o755, Data: loader},
		{Path: objectFile, Mode: 0o644, Data: object},
	})
	if err != nil {
		return nil, err
	}
	args := []string{loaderFile, objectFile}
	if o.Verbose {
		args = []string{loaderFile, "-verbose", objectFile}
	}
	var out, said bytes.Buffer
	code, err := k.Exec(&booted.Program{Args: args, Stdout: &limited{&out}, Stderr: &limited{&said}})
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, fmt.Errorf("%w: exit code %d: %s", ErrAnswer, code, lastLine(said.String()))
	}
	a := &answer.Object{}
	if err := json.Unmarshal(out.Bytes(), a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if a.Error != "" {
		return nil, fmt.Errorf("%w: %s", ErrObject, a.Error)
	}
	if len(a.Programs) == 0 {
		return nil, ErrObject
	}
	return a, nil
}

// limited is a buffer that refuses more than bounded.BPFAnswer.
type limited struct{ *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > bounded.BPFAnswer {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrAnswer, bounded.BPFAnswer)
	}
	return l.Buffer.Write(p)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
