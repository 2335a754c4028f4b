package process

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Config describes a run.
type Config struct {
	// Program is the file; Args are its arguments, from the first on argv[0].
	Program *File
	Args    []string
	// Env is the environment, NAME=VALUE.
	Env []string
	// Files are the files that the program can open, among them its interpreter and libraries.
	Files []*File
	// Stdin is the content of its standard input.
	Stdin []byte
	// Release is the kernel release in the result of uname.
	Release string
	// Memory bounds the mapped memory, in bytes; 0 means 256 MB.
	Memory uint64
	// MaxOutput bounds each of stdout and stderr, in bytes; 0 means 64 MB.
	MaxOutput int
	// Options are the machine's: seed, budget, timeout, and the processor's model, DefaultCPUModel by default.
	Options machine.Options
	// Tracer is called at the events of the process; may be nil.
	Tracer Tracer
}

// Tracer gets the events of the program first.
type Tracer interface {
	// Start is called before anything of the process is mapped.
	Start(p *Process)
	// Mapped is called after pages of a file have been mapped.
	Mapped(v *Mapping)
	// Int3 and Debug are traps (x86.Traps). The process gets SIGTRAP if they return false.
	Int3(regs *x86.PtRegs) bool
	Debug(regs *x86.PtRegs) bool
	// Syscall may take a system call whose instruction is at regs.IP; it sets all that
	// the call changes.
	Syscall(regs *x86.PtRegs) bool
	// Stepping reports that an instruction is executed out of line: signals wait. Abort
	// ends that where the instruction faults, or a signal kills; it moves regs back.
	Stepping() bool
	Abort(regs *x86.PtRegs)
	// ThreadEnd is called when a thread has ended. All other calls are about the running thread
	// (TID).
	ThreadEnd(tid int)
	// Forked is called for a new process before it runs, with its address space, which is the
	// running one's after vfork.
	Forked(tid int, s *Space, vfork bool)
	// Executed is called when the running thread begins another program, in a new space.
	Executed()
	// SpaceEnd is called when the last process of a space has ended.
	SpaceEnd(s *Space)
}

// Exit describes the end of the program.
type Exit struct {
	// Code is the exit code, if Signal is 0.
	Code   int
	Signal Signal
	// Regs are the registers at the end.
	Regs x86.PtRegs
}

// Process is a program from its execve to its end, with the processes that it starts. The fields of
// *group and *thread describe the process and thread that run now.
type Process struct {
	*group
	*thread
	groups  []*group // the processes that have not ended
	lastTID int
	// fresh: it has just been chosen; yields: another has to be.
	fresh, yields bool
	// skipped is the virtual time that passed while all threads slept, sleeps how often that was.
	skipped, sleeps uint64
	// changes counts the events that may wake a waiting call: system calls, exceptions, and passes
	// of time while all threads slept.
	changes uint64
	c       Config
	m       *machine.Machine
	stdout  output
	stderr  output
	files   map[string]*File
	inodes  map[*File]uint64
	// folders are by their names, makes the files that the program has made, written their size in
	// bytes.
	folders   map[string]*folder
	makes     map[*File]*made
	snapshots map[*File]struct{}
	written   int
	lastInode uint64
	random    *rand.Rand

	// own is the machine's own code, float the area that it saves float registers in.
	own, float x86.Addr
	// hwcap is cpuid 1's edx of the machine's processor.
	hwcap uint64
	// leave is the return address of the machine's call.
	leave uint64
	// start are the registers with which the machine's call continues.
	start x86.PtRegs
	// While own code is executed, resume are the program's registers, and then is called with them
	// afterwards; nil outside.
	resume x86.PtRegs
	then   func(regs *x86.PtRegs)
	// first is the end of the first process; exit is set at the end of the run.
	first, exit *Exit
	failed      error // the reason why the run was given up
	made        int   // the number of processes made so far
	// Unknown counts the system calls that were answered ENOSYS, by number. After many different
	// numbers, further ones are counted under UnknownRest.
	Unknown map[uint64]int
	// Syscalls counts all system calls.
	Syscalls int
}

const defaultMemory = 256 << 20

// DefaultCPUModel is a processor that has all of x86-64-v2, and no more.
const DefaultCPUModel = "nehalem"

// source is the machine's image: windows for the program.
type source struct{ windows []x86.Range }

func (s *source) Segments() []kimage.Segment               { return nil }
func (s *source) Windows() []x86.Range                     { return s.windows }
func (s *source) PerCPU() (kimage.PerCPU, bool)            { return kimage.PerCPU{}, false }
func (s *source) Lookup(string) []kimage.Symbol            { return nil }
func (s *source) SymbolAt(x86.Addr) (kimage.Symbol, bool)  { return kimage.Symbol{}, false }
func (s *source) ExceptionEntry(x86.Addr) (x86.Addr, bool) { return 0, false }
func (s *source) ModuleEnd() x86.Addr                      { return 0 }

// New loads the program, on a machine that open makes. The caller closes it.
func New(c Config, open func(machine.Source, *machine.Options) (*machine.Machine, error)) (*Process, error) {
	if c.Memory == 0 {
		c.Memory = defaultMemory
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = 64 << 20
	}
	if len(c.Args) == 0 {
		c.Args = []string{c.Program.Name}
	}
	p := &Process{
		c: c, files: map[string]*File{}, inodes: map[*File]uint64{}, Unknown: map[uint64]int{},
		makes: map[*File]*made{}, snapshots: map[*File]struct{}{}, lastInode: 1 << 32,
		random: rand.New(rand.NewPCG(uint64(c.Options.Seed), 2)),
	}
	p.stdout.most, p.stderr.most = c.MaxOutput, c.MaxOutput
	for i, f := range append([]*File{c.Program}, c.Files...) {
		p.files[Clean(f.Name)] = f
		p.inodes[f] = uint64(i) + 2
	}
	p.plantTree()
	l, err := p.prepare(c.Program, c.Args)
	if err != nil {
		return nil, err
	}
	o := c.Options
	o.CPUs, o.HeapSize, o.UserMode = 1, 1<<20, true
	o.CPUModel = cmp.Or(o.CPUModel, DefaultCPUModel)
	if p.m, err = open(&source{p.windows()}, &o); err != nil {
		return nil, err
	}
	r := &ram{m: p.m, used: map[x86.Addr]struct{}{}, most: c.Memory / PageSize}
	p.newGroup(r.space())
	p.in = p.Space
	if c.Tracer != nil {
		c.Tracer.Start(p)
	}
	if err := errors.Join(p.makeOwn(), p.load(l, c.Env, &p.start)); err != nil {
		p.Close()
		return nil, fmt.Errorf("%s: %w", c.Program.Name, err)
	}
	p.m.SetTraps(traps{p})
	return p, nil
}

// Close frees the machine.
func (p *Process) Close() { p.m.Close() }

// Machine returns the machine that the program runs on.
func (p *Process) Machine() *machine.Machine { return p.m }

// ownCode begins with an int3, at which a run begins. Each of its other parts ends with an int3.
var ownCode = []byte{
	0xcc, 0x90,
	0x0f, 0x30, 0xcc, // wrmsr
	0x48, 0x0f, 0xae, 0x07, 0xcc, // fxsave64 (%rdi)
	0x48, 0x0f, 0xae, 0x0f, 0xcc, // fxrstor64 (%rdi)
	0x48, 0x0f, 0xae, 0x0f, 0x0f, 0x30, 0xcc, // the same, wrmsr
	0x0f, 0x0b, // ud2, which ends the engine's run
	0xb8, 1, 0, 0, 0, 0x0f, 0xa2, 0x89, 0xd0, 0xc3, // mov $1,%eax; cpuid; mov %edx,%eax; ret
}

// Offsets in the own code.
const (
	baseCode    = 2
	floatSave   = 5
	floatLoad   = 10
	switchCode  = 15
	stopCode    = 22
	featureCode = 24
)

// outside executes own code that ends at an int3, with the float area in rdi, and then goes on with
// the program's registers.
func (p *Process) outside(code x86.Addr, regs *x86.PtRegs, then func(regs *x86.PtRegs)) {
	p.resume, p.then = *regs, then
	regs.IP, regs.DI = uint64(code), uint64(p.float)
	regs.CS, regs.SS = x86.KernelCS, x86.KernelDS
	regs.Flags &^= x86.FlagTF
}

// makeOwn puts the machine's own code and float area into it.
func (p *Process) makeOwn() (err error) {
	if p.own, err = p.m.AllocExec(len(ownCode), "process"); err != nil {
		return err
	}
	if err := p.m.PokeText(p.own, ownCode); err != nil {
		return err
	}
	if p.hwcap, err = p.m.CallAddr(p.own + featureCode); err != nil {
		return err
	}
	p.float, err = p.m.Alloc(floatSize)
	return err
}

// load loads a program into the running process's space, which is empty; it sets regs to the
// program's first registers.
func (p *Process) load(l *loaded, env []string, regs *x86.PtRegs) error {
	im, bias := l.image, l.bias
	p.limit = l.span().End + breakRoom
	if err := p.loadImage(im, bias); err != nil {
		return err
	}
	p.Space.start, p.Space.end = l.span().End, l.span().End
	entry, base := im.entry+bias, x86.Addr(0)
	if ld := l.interp; ld != nil {
		at := ld.span.Start
		if ld.position {
			r, err := p.roomIn(ld.span.Len(), lowTop, mapTop)
			if err != nil {
				return err
			}
			at = r.Start
		}
		base = at - ld.span.Start
		if err := p.loadImage(ld, base); err != nil {
			return err
		}
		entry = ld.entry + base
	}
	sp, err := p.arguments(l, env, base)
	if err != nil {
		return err
	}
	*regs = x86.PtRegs{IP: uint64(entry), SP: uint64(sp), Flags: x86.FlagIF | x86.FlagFixed, CS: x86.UserCS, SS: x86.UserDS}
	return nil
}

// loadImage maps the pieces of an image as execve does.
func (p *Process) loadImage(im *image, bias x86.Addr) error {
	for _, h := range im.pieces {
		prot := int(h.Flags&4>>2 | h.Flags&2 | h.Flags&1<<2) // PF_R, PF_W, PF_X
		at := x86.Addr(h.Vaddr) + bias
		inFile, end := pageUp(at+x86.Addr(h.Filesz)), pageUp(at+x86.Addr(h.Memsz))
		from := pageDown(at)
		if h.Filesz > 0 {
			v, err := p.Map(Mapping{Range: x86.Range{Start: from, End: inFile}, Prot: prot, File: im.file, Offset: h.Off &^ (PageSize - 1)})
			if err != nil {
				return err
			}
			if last := at + x86.Addr(h.Filesz); prot&ProtWrite != 0 && last < inFile {
				if err := p.m.WriteMem(last, zeros[:inFile-last]); err != nil {
					return err
				}
			}
			p.mapped(v)
			from = inFile
		}
		if end > from {
			if _, err := p.Map(Mapping{Range: x86.Range{Start: from, End: end}, Prot: prot}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Process) mapped(v *Mapping) {
	if p.c.Tracer != nil && v.File != nil {
		p.c.Tracer.Mapped(v)
	}
}

// Entries of the auxiliary vector.
const (
	atPhdr, atPhent, atPhnum, atPagesz, atBase, atFlags, atEntry = 3, 4, 5, 6, 7, 8, 9
	atUID, atEUID, atGID, atEGID, atPlatform, atHwcap, atClktck  = 11, 12, 13, 14, 15, 16, 17
	atSecure, atRandom, atExecfn                                 = 23, 25, 31
)

// arguments maps the stack and puts the program's initial stack content on it.
func (p *Process) arguments(l *loaded, env []string, base x86.Addr) (x86.Addr, error) {
	if _, err := p.Map(Mapping{Range: x86.Range{Start: stackTop - stackSize, End: stackTop}, Prot: ProtRead | ProtWrite, Name: "[stack]"}); err != nil {
		return 0, err
	}
	at, total := stackTop-8, 0
	var failed error
	put := func(b []byte) x86.Addr {
		if total += len(b); total > bounded.ProgramArguments {
			failed = errno.E2BIG
			return 0
		}
		at -= x86.Addr(len(b))
		failed = errors.Join(failed, p.m.WriteMem(at, b))
		return at
	}
	text := func(s string) uint64 { return uint64(put(append([]byte(s), 0))) }
	im, bias := l.image, l.bias
	name := text(l.file.Name)
	var argv, envp []uint64
	for _, s := range l.args {
		argv = append(argv, text(s))
	}
	for _, s := range env {
		envp = append(envp, text(s))
	}
	platform := text("x86_64")
	var seed [16]byte
	p.fill(seed[:])
	random := put(seed[:])
	words := append([]uint64{uint64(len(argv))}, argv...)
	words = append(append(append(words, 0), envp...), 0)
	words = append(words,
		atPhdr, uint64(im.phdr+bias), atPhent, 56, atPhnum, uint64(im.phnum), atPagesz, PageSize, atBase, uint64(base), atFlags, 0,
		atEntry, uint64(im.entry+bias), atUID, 0, atEUID, 0, atGID, 0, atEGID, 0, atSecure, 0, atHwcap, p.hwcap, atClktck, 100,
		atPlatform, platform, atRandom, uint64(random), atExecfn, name, 0, 0)
	b := make([]byte, 0, 8*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	at = (at - x86.Addr(len(b))) &^ 15
	return at, errors.Join(failed, p.m.WriteMem(at, b))
}

// fill makes random bytes.
func (p *Process) fill(b []byte) {
	for i := range b {
		b[i] = byte(p.random.Uint32())
	}
}

// Run runs the program to its end. An error is not the program's: the budget, the
// timeout, the engine.
func (p *Process) Run() (Exit, error) {
	_, err := p.m.CallAddr(p.own)
	switch {
	case p.failed != nil:
		return Exit{}, p.failed
	case p.exit != nil:
		return *p.exit, nil
	}
	return Exit{}, err
}

// Stdout returns the program's output, and the number of further bytes that were dropped.
func (p *Process) Stdout() (b []byte, lost int) { return p.stdout.b, p.stdout.lost }

// Stderr is like Stdout, for the standard error output.
func (p *Process) Stderr() (b []byte, lost int) { return p.stderr.b, p.stderr.lost }

// output collects written bytes, up to a bound.
type output struct {
	b          []byte
	most, lost int
}

func (o *output) write(b []byte) {
	n := min(len(b), o.most-len(o.b))
	o.b = append(o.b, b[:n]...)
	o.lost += len(b) - n
}

// finish makes the run end.
func (p *Process) finish(e *Exit, regs *x86.PtRegs) {
	p.exit = e
	regs.IP, regs.CS, regs.SS = p.leave, x86.KernelCS, x86.KernelDS
	regs.Flags &^= x86.FlagTF
}

// giveUp makes the run end with an error that is not the program's.
func (p *Process) giveUp(err error, regs *x86.PtRegs) {
	p.failed = err
	p.finish(&Exit{}, regs)
}

// traps is the process as the machine's receiver of traps.
type traps struct{ p *Process }

func (t traps) Int3(regs *x86.PtRegs) bool {
	p := t.p
	switch at := x86.Addr(regs.IP - 1); {
	case at == p.own && p.leave == 0:
		var b [8]byte
		if p.m.ReadMem(x86.Addr(regs.SP), b[:]) != nil {
			return false
		}
		p.leave = binary.LittleEndian.Uint64(b[:])
		*regs = p.start
		return true
	case p.then != nil && p.own < at && at < p.own+x86.Addr(len(ownCode)):
		then := p.then
		*regs, p.then = p.resume, nil
		then(regs)
	case p.c.Tracer == nil || !p.c.Tracer.Int3(regs):
		p.trap, p.code = machine.VectorInt3, 0
		p.Force(SIGTRAP)
	}
	p.back(regs)
	return true
}

// Codes of SIGTRAP (TRAP_BRKPT, TRAP_TRACE).
const (
	trapBreakpoint = 1
	trapTrace      = 2
	int1           = 0xf1
)

func (t traps) Debug(regs *x86.PtRegs) bool {
	p := t.p
	if p.c.Tracer == nil || !p.c.Tracer.Debug(regs) {
		code := int32(trapTrace)
		var before [1]byte
		if p.Read(x86.Addr(regs.IP-1), before[:]) == nil && before[0] == int1 {
			code = trapBreakpoint
		}
		p.trap, p.code = machine.VectorDebug, 0
		p.force(infoAt(SIGTRAP, code, x86.Addr(regs.IP)))
	}
	p.back(regs)
	return true
}

func (t traps) Fault(regs *x86.PtRegs, vector int) bool {
	p := t.p
	switch at := x86.Addr(regs.IP); {
	case p.then != nil && at == p.own+stopCode:
		then := p.then
		*regs, p.then = p.resume, nil
		then(regs)
	case vector == machine.VectorInvalid && p.syscallAt(at):
		p.changes++
		p.systemCall(regs)
	default:
		p.changes++
		p.exception(vector, regs)
	}
	p.back(regs)
	return true
}

func (t traps) TaskExit(int) {}

// syscallAt reports the instruction syscall at an address.
func (p *Process) syscallAt(a x86.Addr) bool {
	var b [2]byte
	return p.Read(a, b[:]) == nil && b == [2]byte{0x0f, 0x05}
}

// setBase puts a value into the FS base before the program goes on.
func (p *Process) setBase(v uint64, regs *x86.PtRegs) {
	const msrFSBase = 0xc0000100
	p.fsBase = v
	p.outside(p.own+baseCode, regs, func(*x86.PtRegs) {})
	regs.CX, regs.AX, regs.DX = msrFSBase, v&0xffffffff, v>>32
}

// Comm returns the program's name as the kernel keeps it, 15 bytes of it.
func (p *Process) Comm() string { return p.group.name() }

func (g *group) name() string {
	if g.comm != "" {
		return g.comm
	}
	name := path.Base(g.program.Name)
	return name[:min(len(name), x86.TaskCommLen-1)]
}
