package bpf

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/bpf/answer"
	"kprobelab/bpf/contract"
	"kprobelab/bpf/losses"
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
	// Progress is called by Ask, one call after another, when a kernel has been asked; it may be nil.
	Progress func(done, total int64)
	// Types is BTF, or an ELF file with it, against which CO-RE relocates in place of the kernel's own; nil for the kernel's own.
	Types []byte
	// Workload is a line for the guest's shell that runs while all programs are attached; "" for none. Command is its name.
	Workload, Command string
	// Asked chooses the ledger, the costs and the lines of the programs while the workload runs. Load gives the ledger to Ledger, if that is not nil; Ask puts it
	// into the kernel's column.
	Asked  *losses.Asked
	Ledger func(*losses.Ledger)
	// Contract completes the object; it may be nil.
	Contract *contract.Contract
	// Config is the text of the kernel's configuration, for an object with variables of it (extern int CONFIG_HZ __kconfig); nil for none.
	// Ask reads config-RELEASE beside each dump, where kernels that are kept have it.
	Config []byte
	// ModuleFiles gives modules of a kernel's own package, after those on which they depend (kernels.Store.ModuleFiles): sections of traffic control
	// want some, which stay loaded. It may be nil.
	ModuleFiles func(ctx context.Context, release string, names []string, each func(name string, code []byte) error) error
	// KernelTypes has Ask's Types of each kernel, by the name that the user gave the kernel; the entry "" is for all others.
	KernelTypes map[string][]byte
	// Lab has Ask's options for each kernel. Its field Budget bounds one object; 0 means the constant Budget.
	Lab kprobelab.Options
}

// Budget is the number of guest instructions for an object. The verifier takes some thousand million for a program at its own limit,
// of a million instructions.
const Budget = 100_000_000_000

// ErrLoader: this build has no loader.
var ErrLoader = errors.New("this build has no loader of BPF programs; make build puts one into bin/kprobelab")

// ErrObject: the file is no object with programs, or one that cilium/ebpf does not read.
var ErrObject = errors.New("no BPF object that can be loaded")

// ErrAnswer: the loader did not end as it should.
var ErrAnswer = errors.New("the loader in the guest did not answer")

// ErrNoRun: without a run, nothing becomes of calls.
var ErrNoRun = errors.New("--losses, --coverage and --max-cost are about a run: --run COMMAND")

// Check refuses options that do not fit together.
func (o *Options) Check() error {
	if o.Asked.Any() && o.Command == "" && o.Workload == "" {
		return ErrNoRun
	}
	return nil
}

// AddTypes reads the value of an option --btf, [KERNEL=]FILE.
func (o *Options) AddTypes(text string) error {
	kernel, file, ok := strings.Cut(text, "=")
	if !ok {
		kernel, file = "", text
	}
	types, err := bounded.ReadFile(file, bounded.BPFTypes)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(types, []byte(elf.ELFMAG)) && !bytes.HasPrefix(types, []byte("\x9f\xeb")) {
		return fmt.Errorf("%s: %w: want BTF (as /sys/kernel/btf/vmlinux has it), or an ELF file with a section .BTF", file, ErrTypes)
	}
	if o.KernelTypes == nil {
		o.KernelTypes = map[string][]byte{}
	}
	o.KernelTypes[kernel] = types
	return nil
}

// ErrTypes: a file has no types.
var ErrTypes = errors.New("no BTF")

// Files of the guest.
const (
	loaderFile   = "/kprobelab-bpfloader"
	objectFile   = "/kprobelab.bpf.o"
	typesFile    = "/kprobelab.btf"
	contractFile = "/kprobelab.contract.json"
)

// Load asks a kernel about the programs of an object, in the order of their names. The kernel stays as it is after that, with no
// program loaded. The error is ErrLoader, ErrObject, ErrContract, or the machine's. Earlier answers come with the machine's error.
func Load(k *booted.Kernel, object []byte, o *Options) (*answer.Object, error) {
	if o == nil {
		o = &Options{}
	}
	if err := isObject(object); err != nil {
		return nil, err
	}
	loader := o.Loader
	if loader == nil {
		loader = builtLoader
	}
	if loader == nil {
		return nil, ErrLoader
	}
	files := []hostfiles.File{
		{Path: loaderFile, Mode: 0o755, Data: loader},
		{Path: objectFile, Mode: 0o644, Data: object},
	}
	if o.Types != nil {
		files = append(files, hostfiles.File{Path: typesFile, Mode: 0o644, Data: o.Types})
	}
	if o.Contract != nil {
		text, err := json.Marshal(o.Contract)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrContract, err)
		}
		files = append(files, hostfiles.File{Path: contractFile, Mode: 0o644, Data: text})
	}
	if o.Config != nil && !strings.Contains(k.Release(), "/") && bytes.Contains(object, []byte("CONFIG_")) {
		files = append(files, hostfiles.File{Path: "/boot/config-" + k.Release(), Mode: 0o644, Data: o.Config})
	}
	if err := k.Prepare(files); err != nil {
		return nil, err
	}
	got := &answer.Object{}
	absent := modprobe(k, object, o)
	for {
		names, more, err := asked(k, len(got.Programs), o)
		got.Programs, got.Fields = append(got.Programs, more.Programs...), append(got.Fields, more.Fields...)
		n := len(got.Programs)
		killed := (*killedError)(nil)
		switch {
		case errors.As(err, &killed) && n < len(names): // by one program, and the others are asked all the same
			got.Programs = append(got.Programs, answer.Program{Name: names[n], Error: killed.Error()})
		case err != nil:
			return got, err
		}
		if err == nil || len(got.Programs) >= len(names) {
			absent.add(got.Programs)
			return got, runs(k, got, o)
		}
	}
}

// isObject refuses a file before a kernel is booted for it.
func isObject(object []byte) error {
	if !bytes.HasPrefix(object, []byte(elf.ELFMAG)) {
		return fmt.Errorf("%w: it is no ELF file (clang -target bpf -O2 -g -c makes one of C)", ErrObject)
	}
	return nil
}

// killedError is a loader that a signal has ended: the verifier took more memory than the guest has, or less likely a fault of
// the kernel's.
type killedError struct{ signal int }

func (e *killedError) Error() string {
	return fmt.Sprintf("signal %d has ended the loader; if the guest's memory is full: kprobelab kernels boot --memory 1G", e.signal)
}

// arguments are the loader's, with more after the options.
func arguments(o *Options, more ...string) []string {
	args := []string{loaderFile}
	if o.Verbose {
		args = append(args, "-verbose")
	}
	if o.Types != nil {
		args = append(args, "-btf", typesFile)
	}
	if o.Contract != nil {
		args = append(args, "-contract", contractFile)
	}
	return append(append(args, more...), objectFile)
}

// asked starts the loader once, from a program on.
func asked(k *booted.Kernel, from int, o *Options) (names []string, got answer.Object, err error) {
	args := arguments(o, "-from", strconv.Itoa(from))
	var out, said bytes.Buffer
	code, err := k.Exec(&booted.Program{Args: args, Stdout: &limited{&out}, Stderr: &limited{&said}})
	names, got, wrong := read(&out)
	switch {
	case err != nil:
	case code > 128:
		err = &killedError{code - 128}
	case code != 0 && strings.Contains(said.String(), "goroutine stack exceeds"):
		err = fmt.Errorf("%w: its types lead into each other without end", ErrObject)
	case code != 0:
		err = fmt.Errorf("%w: exit code %d: %s", ErrAnswer, code, lastLine(said.String()))
	case wrong != nil:
		err = wrong
	case from+len(got.Programs) != len(names):
		err = fmt.Errorf("%w: %d programs of %d", ErrAnswer, from+len(got.Programs), len(names))
	}
	return names, got, err
}

// read reads the lines that the loader has written.
func read(from io.Reader) (names []string, got answer.Object, err error) {
	for d := json.NewDecoder(from); ; {
		var line answer.Line
		err := d.Decode(&line)
		switch {
		case err == io.EOF:
			return names, got, nil
		case err != nil:
			return names, got, fmt.Errorf("%w: %w", ErrAnswer, err)
		case line.Contract:
			return nil, answer.Object{}, fmt.Errorf("%w: %s", ErrContract, strings.TrimPrefix(line.Error, "the contract: "))
		case line.Error != "":
			return nil, answer.Object{}, fmt.Errorf("%w: %s", ErrObject, line.Error)
		case line.Names != nil:
			names = line.Names
		case line.Field != nil:
			got.Fields = append(got.Fields, *line.Field)
		case line.Program != nil:
			got.Programs = append(got.Programs, *line.Program)
		default:
			return names, got, fmt.Errorf("%w: a line without a program", ErrAnswer)
		}
	}
}

// limited is a buffer that refuses more than bounded.BPFAnswer.
type limited struct{ *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > bounded.BPFAnswer {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrAnswer, bounded.BPFAnswer)
	}
	return l.Buffer.Write(p)
}

func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return text
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
