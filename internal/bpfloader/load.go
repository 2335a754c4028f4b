//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"kprobelab/bpf/answer"
	"kprobelab/bpf/contract"
	"kprobelab/internal/bounded"
)

// loader loads the programs of an object.
type loader struct {
	spec *ebpf.CollectionSpec
	// verbose: the log has each instruction, of programs that load, too.
	verbose bool
	// types come from --btf; nil for the kernel's own.
	types *btf.Spec
	// kernel has the kernel's types and its modules', which are read once for all programs.
	kernel *btf.Cache
	// contract has completed the object. targets are the programs to which others are attached.
	contract contract.Contract
	targets  map[string]*ebpf.Collection
	// described has the numbers of arguments of USDT in each map of them.
	described map[*ebpf.Map]map[string]uint32
	// typed are the kernel's variables that the object has with a type; weak ones may be absent.
	typed, weak []string
	// ops are the structures of programs, tried has the kernel's answers by their names.
	ops   []ops
	tried map[string]error
}

// files names the loader's input: the object, and, where a name is given, types in place of the kernel's and a contract.
type files struct{ object, types, contract string }

// open reads an object and what goes with it.
func open(f files, verbose bool) (*loader, error) {
	object, err := bounded.ReadFile(f.object, bounded.BPFObject)
	if err != nil {
		return nil, err
	}
	object, weak := withoutWeak(object)
	values := settled(object, weak)
	absent := weakNames(object)
	object, typed := withoutTypes(withConstants(object, values))
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(withoutOps(object)))
	if err != nil {
		return nil, err
	}
	leaveOut(spec, values)
	withoutNames(spec)
	// The library goes on without .BTF.ext where one of its records names a type that there is not: the program would load as it is.
	if _, ext, err := btf.LoadSpecAndExtInfosFromReader(bytes.NewReader(object)); err == nil && ext == nil && bytes.Contains(object, []byte(".BTF.ext\x00")) {
		return nil, errors.New("its .BTF.ext is damaged: a record names a type that is not in .BTF")
	}
	if len(spec.Programs) == 0 {
		return nil, errors.New("it has none")
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, err
	}
	if spec.ByteOrder != binary.LittleEndian {
		return nil, errors.New("it is for a big-endian machine (clang -target bpfel makes one for this)")
	}
	sized(spec)
	l := &loader{
		spec: spec, verbose: verbose, targets: map[string]*ebpf.Collection{}, described: map[*ebpf.Map]map[string]uint32{}, tried: map[string]error{},
		typed: typed, weak: absent, kernel: btf.NewCache(),
	}
	if l.ops, err = readOps(object, spec); err != nil {
		return nil, err
	}
	return l, l.given(f)
}

// sized gives the maps their own memory, and sizes that the kernel takes.
func sized(spec *ebpf.CollectionSpec) {
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone // each program has maps of its own
		m.MaxEntries = entries(m)
		if m.Type == ebpf.StackTrace && m.ValueSize == 0 {
			m.ValueSize = deepest
		}
		if m.InnerMap != nil {
			m.InnerMap.MaxEntries = entries(m.InnerMap)
		}
	}
}

// given takes the files that come with the object: types of the kernel, and the contract.
func (l *loader) given(f files) error {
	if f.types != "" {
		text, err := bounded.ReadFile(f.types, bounded.BPFTypes)
		if err != nil {
			return err
		}
		if l.types, err = btf.LoadSpecFromReader(bytes.NewReader(text)); err != nil {
			return fmt.Errorf("the types of --btf: %w", err)
		}
	}
	if f.contract == "" {
		return nil
	}
	text, err := bounded.ReadFile(f.contract, bounded.BPFContract)
	if err != nil {
		return err
	}
	c, err := contract.Read(text)
	if err != nil {
		return err
	}
	return l.complete(c)
}

// names are the programs that are loaded, in order.
func (l *loader) names() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(l.spec.Programs)) {
		if !l.skipped(l.spec.Programs[name]) {
			names = append(names, name)
		}
	}
	return names
}

// entries is a map's size. A tool sets the size that its object leaves open, and the verifier does not ask for it: one entry, or a page of
// a ring buffer.
func entries(m *ebpf.MapSpec) uint32 {
	switch m.Type {
	case ebpf.RingBuf, ebpf.UserRingbuf:
		return pages(m.MaxEntries)
	case ebpf.SkStorage, ebpf.TaskStorage, ebpf.InodeStorage, ebpf.CGroupStorage, ebpf.PerCPUCGroupStorage, ebpf.CgroupStorage, ebpf.StructOpsMap, ebpf.PerfEventArray:
		return m.MaxEntries
	}
	return max(m.MaxEntries, 1)
}

// deepest is the size of the deepest stack that kernels take unless they are told otherwise (kernel.perf_event_max_stack), for a map of stacks
// whose size a tool sets.
const deepest = 127 * 8

// pages makes the size of a ring buffer one that kernels take, as libbpf does: a power of two of whole pages.
func pages(size uint32) uint32 {
	n := uint32(os.Getpagesize())
	for n < size && n < 1<<31 {
		n <<= 1
	}
	return max(n, size)
}

// bare are kinds of programs whose names cilium/ebpf takes with any text after them.
var bare = []string{
	"sk_skb", "sk_msg", "socket", "xdp", "classifier", "action", "tcx", "tc", "sk_lookup", "flow_dissector", "perf_event", "lirc_mode2",
	"sk_reuseport", "sockops", "netfilter", "netkit", "syscall",
}

// isSection reports whether libbpf takes a section's name: after a kind stands nothing, a slash or a point (sk_msg/a, but not sk_msg1).
func isSection(name string) bool {
	name = strings.TrimPrefix(name, "?")
	begins := false
	for _, kind := range bare {
		rest, ok := strings.CutPrefix(name, kind)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == '.') {
			return true
		}
		begins = begins || ok
	}
	return !begins
}

// programs tells the names of all programs, and the answer about each from a number on.
func (l *loader) programs(from int, tell func(answer.Line) error) error {
	names := l.names()
	err := tell(answer.Line{Names: names})
	if from == 0 {
		for _, f := range l.fields() {
			if err == nil {
				err = tell(answer.Line{Field: &f})
			}
		}
	}
	for _, name := range names[min(max(from, 0), len(names)):] {
		if err != nil {
			return err
		}
		err = tell(answer.Line{Program: l.program(l.spec.Programs[name])})
	}
	return err
}

// program loads a program with the maps that it uses, and attaches it. The first load asks the verifier for its reason and its
// figures. A refused program is verified again, with the log; with verbose, every program.
func (l *loader) program(p *ebpf.ProgramSpec) *answer.Program {
	a := &answer.Program{Name: p.Name, Section: p.SectionName, Instructions: size(p.Instructions), Optional: l.optional(p)}
	kind, _, _ := strings.Cut(strings.TrimPrefix(p.SectionName, "?"), "/")
	switch {
	case p.Type == ebpf.UnspecifiedProgram, !isSection(p.SectionName):
		a.Error = "the section's name is of no kind of program (libbpf's naming)"
		return a
	case slices.Contains([]string{"lsm_cgroup", "fsession", "fsession.s"}, kind): // the library does not look their functions up
		a.Unasked, a.Error = true, "cilium/ebpf 0.22 does not load programs of "+kind
		return a
	case slices.ContainsFunc(p.Instructions, isCast):
		a.Unasked, a.Error = true, "cilium/ebpf 0.22 does not write casts of address spaces, which programs with an arena have"
		return a
	}
	if a.Instructions > bounded.BPFInstructions { // what the loader and the kernel would do with them takes more memory than a guest has
		a.Error, a.Errno = fmt.Sprintf("it has %d instructions, and a kernel takes up to %d", a.Instructions, bounded.BPFInstructions), "E2BIG"
		return a
	}
	c, err := l.load(p, ebpf.LogLevelStats)
	l.tell(a, p, c, err)
	if logged := err != nil || l.verbose; logged && a.Verified > 0 && a.Verified <= bounded.BPFLogged {
		level := ebpf.LogLevelBranch | ebpf.LogLevelStats
		if l.verbose {
			level = ebpf.LogLevelInstruction | ebpf.LogLevelStats
		}
		again, err := l.load(p, level)
		if (err == nil) == a.Loads && errnoOf(err) == a.Errno { // else the log has no room, and the first answer stands
			l.tell(a, p, again, err)
		}
		if again != nil {
			again.Close()
		}
	}
	a.Log = cut(a.Log)
	if c != nil {
		defer c.Close()
		l.attach(a, p, c)
	}
	return a
}

// isCast reports whether an instruction casts a pointer from one address space to another: a move with the offset 1, which the library leaves out.
func isCast(i asm.Instruction) bool {
	return i.OpCode.Class().IsALU() && i.OpCode.ALUOp() == asm.Mov && i.Offset == 1
}

// load loads a program with the maps that it uses. Other programs are not there: a map of programs is empty.
func (l *loader) load(p *ebpf.ProgramSpec, level ebpf.LogLevel) (*ebpf.Collection, error) {
	spec := l.spec.Copy()
	own := spec.Programs[p.Name]
	spec.Programs = map[string]*ebpf.ProgramSpec{p.Name: own}
	spec.Variables = nil // their maps may be gone; a map has their values
	used := map[string]bool{}
	for _, i := range p.Instructions {
		used[i.Reference()] = true
	}
	for name, m := range spec.Maps {
		for _, kv := range m.Contents {
			inner, ok := kv.Value.(string)
			used[inner] = used[inner] || ok && used[name]
		}
		if m.Type == ebpf.ProgramArray {
			m.Contents = nil
		}
	}
	maps.DeleteFunc(spec.Maps, func(name string, m *ebpf.MapSpec) bool { return !used[name] || m.Type == ebpf.StructOpsMap })
	l.absentTypes(own.Instructions)
	if err := l.typedVariables(own.Instructions); err != nil {
		return nil, err
	}
	if err := l.target(own); err != nil {
		return nil, err
	}
	o := ebpf.CollectionOptions{Cache: l.kernel, Programs: ebpf.ProgramOptions{LogLevel: level, KernelTypes: l.types}}
	c, err := ebpf.NewCollectionWithOptions(spec, o)
	if err != nil && strings.Contains(err.Error(), typesRefused) && withoutInfos(own.Instructions) {
		return ebpf.NewCollectionWithOptions(spec, o)
	}
	return c, err
}

// typesRefused is in the library's error when a kernel does not take the types of functions and lines, as 7.3 does not take a function whose
// argument has no name.
const typesRefused = ": load BTF: "

// withoutInfos takes functions' types and lines from a program, as libbpf does where a kernel refuses them. It reports whether there were any.
func withoutInfos(list asm.Instructions) (some bool) {
	for i := range list {
		if list[i].Source() != nil || btf.FuncMetadata(&list[i]) != nil {
			list[i] = btf.WithFuncMetadata(list[i], nil).WithSource(nil)
			some = true
		}
	}
	return some
}

// errNoTarget: the contract does not name the program that a program changes. No kernel is asked then.
var errNoTarget = errors.New("freplace replaces a function of a program that is loaded")

// target loads the program of the object to which another one is attached, as the contract says.
func (l *loader) target(p *ebpf.ProgramSpec) error {
	name := l.contract.Programs[p.Name].Of
	if name == "" {
		if p.Type == ebpf.Extension {
			return fmt.Errorf("%w: the contract says of which (programs: %s: {of: PROGRAM, attach: FUNCTION})", errNoTarget, p.Name)
		}
		return nil
	}
	if l.contract.Programs[name].Of != "" {
		return fmt.Errorf("the program %s is itself attached to a program", name)
	}
	if l.targets[name] == nil {
		c, err := l.load(l.spec.Programs[name], 0)
		if err != nil {
			return fmt.Errorf("the program %s to attach to: %s", name, l.refusal(l.spec.Programs[name], err))
		}
		l.targets[name] = c
	}
	p.AttachTarget = l.targets[name].Programs[name]
	return nil
}

// tell puts the result of a load into the answer.
func (l *loader) tell(a *answer.Program, p *ebpf.ProgramSpec, c *ebpf.Collection, err error) {
	a.Loads, a.Unasked = err == nil, errors.Is(err, errNoTarget)
	if c != nil {
		a.Log = c.Programs[p.Name].VerifierLog
	} else {
		a.Error, a.Errno = l.refusal(p, err), errnoOf(err)
		if v := (*ebpf.VerifierError)(nil); errors.As(err, &v) {
			a.Log = strings.Join(v.Log, "\n")
			a.Blame = l.blame(p.Instructions, v.Log)
		}
	}
	a.Verified, a.States = figures(a.Log)
}

// size is the size of a program in instructions of 8 bytes, as the verifier counts them.
func size(list asm.Instructions) (n int) {
	for i := range list {
		n += int(list[i].Size()) / asm.InstructionSize
	}
	return n
}

// refusal says why a program was refused: the verifier's sentence is the line after the last instruction in its log, and the last
// line of a log without instructions.
func (l *loader) refusal(p *ebpf.ProgramSpec, err error) string {
	v := (*ebpf.VerifierError)(nil)
	switch {
	case errors.As(err, &v):
	case errors.Is(err, unix.EFAULT):
		return "bad address: the verifier calls it a fault of its own, or of the compiler (__bpf_trap); cilium/ebpf 0.22 gives no log with that"
	default:
		return withoutTarget(p, err)
	}
	line, n := last(v.Log)
	if errnoOf(v.Cause) == "" { // the loader's own error: this kernel lacks a type or a field
		text := v.Cause.Error()
		if name := l.missing(p.Instructions, n); name != "" {
			text += ": this kernel has no " + name
		}
		return text
	}
	said := slices.DeleteFunc(slices.Clone(v.Log[line+1:]), func(text string) bool {
		return strings.TrimSpace(text) == "" || isFigures(strings.TrimSpace(text))
	})
	switch {
	case len(said) == 0:
		return v.Cause.Error()
	case line < 0:
		return strings.TrimSpace(said[len(said)-1])
	}
	return strings.TrimSpace(said[0])
}

// withoutTarget is the sentence for an error of no verifier: above all that the kernel's types do not have what the program is attached to.
func withoutTarget(p *ebpf.ProgramSpec, err error) string {
	if p.AttachTo == "" || !errors.Is(err, ebpf.ErrNotSupported) || !strings.HasSuffix(err.Error(), p.AttachTo+" not supported") {
		return err.Error()
	}
	what := "function"
	switch p.AttachType {
	case ebpf.AttachTraceRawTp:
		what = "tracepoint"
	case ebpf.AttachTraceIter:
		what = "iterator"
	case ebpf.AttachLSMMac, ebpf.AttachLSMCgroup:
		what = "hook"
	}
	return fmt.Sprintf("this kernel's types have no %s %s", what, p.AttachTo)
}

func errnoOf(err error) string {
	if e := unix.Errno(0); errors.As(err, &e) {
		return errnoName(e)
	}
	return ""
}

// errnoName is the name of an errno. ENOTSUPP is the kernel's own, and no program should see it; BPF's do.
func errnoName(e unix.Errno) string {
	const notSupported = 524
	if e == notSupported {
		return "ENOTSUPP"
	}
	return unix.ErrnoName(e)
}

// isFigures reports whether a line of a log is of the verifier's work, not of the program.
func isFigures(line string) bool {
	for _, begin := range []string{"processed ", "verification time ", "stack depth ", "subprog "} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

// figures reads the verifier's figures: "processed 39 insns (limit 1000000) max_states_per_insn 1 total_states 3 …".
func figures(log string) (verified, states int) {
	i := strings.LastIndex(log, "processed ")
	if i < 0 {
		return 0, 0
	}
	words := strings.Fields(log[i:])
	for n, word := range words[:len(words)-1] {
		v, err := strconv.Atoi(words[n+1])
		switch {
		case err != nil:
		case word == "processed":
			verified = v
		case word == "total_states":
			states = v
		}
	}
	return verified, states
}

// cut takes the middle out of a long log. The verifier's reason is at the end.
func cut(log string) string {
	const half = bounded.BPFLog / 2
	if len(log) <= 2*half {
		return log
	}
	return log[:half] + "\n[" + strconv.Itoa(len(log)-2*half) + " bytes]\n" + log[len(log)-half:]
}
