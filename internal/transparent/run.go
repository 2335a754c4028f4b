package transparent

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/userprobe"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Outcome holds the exit code, signal and output of a run, and a digest of all its memory at the end.
type Outcome struct {
	Code           int
	Signal         process.Signal
	Stdout, Stderr string
	Memory         [sha256.Size]byte
}

// Runner runs a program.
type Runner struct {
	Rules  *profile.Config
	File   *process.File
	Engine string
	Args   []string // from the second on
	Seed   int64
	// Returns are functions whose returns are probed.
	Returns []uint64
}

// Name is the program's argv[0], Env its environment.
const Name = "prog"

var env = []string{"NAME=value"}

// Data is a file that it can open.
var Data = &process.File{Name: "/data", Data: []byte("first line\nname 42\nthird\n")}

const budget = 50_000_000

// Run runs it with probes at these places, and adds to hits how often each was met.
func (r *Runner) Run(at []uint64, hits map[uint64]uint64) (o Outcome, err error) {
	e, err := engine.Named(r.Engine)
	if err != nil {
		return o, err
	}
	k := userprobe.New(r.Rules)
	consumers := make([]userprobe.Consumer, len(at))
	for i, offset := range at {
		if err := k.Register(r.File, offset, 0, &consumers[i]); err != nil {
			return o, fmt.Errorf("a probe at %#x: %w", offset, err)
		}
	}
	calls := make([]userprobe.Consumer, len(r.Returns))
	for i, offset := range r.Returns {
		calls[i].Returned = func(x86.Addr, *x86.PtRegs) {}
		if err := k.Register(r.File, offset, 0, &calls[i]); err != nil {
			return o, fmt.Errorf("a return probe at %#x: %w", offset, err)
		}
	}
	p, err := process.New(process.Config{
		Program: r.File, Args: append([]string{Name}, r.Args...), Env: env, Tracer: k, Options: machine.Options{Budget: budget, Seed: r.Seed},
		Files: []*process.File{Data},
	}, e.New)
	if err != nil {
		return o, err
	}
	defer p.Close()
	x, err := p.Run()
	if err != nil {
		return o, err
	}
	o.Code, o.Signal = x.Code, x.Signal
	out, _ := p.Stdout()
	o.Stdout = string(out)
	out, _ = p.Stderr()
	o.Stderr = string(out)
	// The probes go, so that no int3 is left in memory.
	for i := range consumers {
		if n := consumers[i].Hits; n > 0 && hits != nil {
			hits[at[i]] += n
		}
		k.Unregister(r.File, at[i], &consumers[i])
	}
	for i := range calls {
		k.Unregister(r.File, r.Returns[i], &calls[i])
		// A forked process returns, too.
		if c := &calls[i]; c.Hits == 0 || c.Hits > c.Returns || c.Missed > 0 {
			return o, fmt.Errorf("of %d calls of the function at %#x %d returned, %d were missed", c.Hits, r.Returns[i], c.Returns, c.Missed)
		}
	}
	o.Memory, err = memoryOf(p)
	return o, err
}

var zeros [process.PageSize]byte

// memoryOf is a digest of which memory the program has, and of each page that is not zero. The
// XOL area is not the program's.
func memoryOf(p *process.Process) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	page, word := zeros, make([]byte, 0, 16)
	for _, v := range p.Maps() {
		if v.Name == "[uprobes]" || v.Prot == 0 {
			continue
		}
		h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(word, uint64(v.Start)), uint64(v.End)))
		for at := v.Start; at < v.End; at += process.PageSize {
			if err := p.Read(at, page[:]); err != nil {
				return sum, fmt.Errorf("memory at %#x: %w", uint64(at), err)
			}
			if page != zeros {
				h.Write(binary.LittleEndian.AppendUint64(word, uint64(at)))
				h.Write(page[:])
			}
		}
	}
	h.Sum(sum[:0])
	return sum, nil
}

// Syscall reports that the instruction at an offset is syscall.
func (r *Runner) Syscall(at uint64) bool {
	return bytes.HasPrefix(r.File.Data[at:], []byte{0x0f, 0x05})
}

// Executions counts how often each place is executed; places that are never executed are left out. A stepped
// syscall executes the next instruction, too, so the two are counted in runs of their own.
func (r *Runner) Executions(places []uint64) (map[uint64]uint64, error) {
	var calls, others []uint64
	for _, at := range places {
		if r.Syscall(at) {
			calls = append(calls, at)
		} else {
			others = append(others, at)
		}
	}
	hits := map[uint64]uint64{}
	for _, list := range [][]uint64{calls, others} {
		if _, err := r.Run(list, hits); err != nil {
			return nil, err
		}
	}
	return hits, nil
}
