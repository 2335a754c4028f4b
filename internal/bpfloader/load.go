//go:build linux

package main

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
)

// loader has an object whose programs are loaded.
type loader struct {
	spec *ebpf.CollectionSpec
	log  ebpf.LogLevel
}

// open reads an object.
func open(file string, verbose bool) (*loader, error) {
	object, err := bounded.ReadFile(file, bounded.BPFObject)
	if err != nil {
		return nil, err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, err
	}
	l := &loader{spec: spec, log: ebpf.LogLevelBranch | ebpf.LogLevelStats}
	if verbose {
		l.log |= ebpf.LogLevelInstruction
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone // each program has maps of its own
	}
	return l, nil
}

// programs asks for each program, in the order of their names.
func (l *loader) programs() (list []answer.Program) {
	for _, name := range slices.Sorted(maps.Keys(l.spec.Programs)) {
		list = append(list, l.program(l.spec.Programs[name]))
	}
	return list
}

// program loads a program with the maps that it uses, and attaches it.
func (l *loader) program(p *ebpf.ProgramSpec) answer.Program {
	a := answer.Program{Name: p.Name, Section: p.SectionName, Instructions: size(p.Instructions)}
	spec := l.spec.Copy()
	spec.Programs = map[string]*ebpf.ProgramSpec{p.Name: spec.Programs[p.Name]}
	used := map[string]bool{}
	for _, i := range p.Instructions {
		used[i.Reference()] = true
	}
	maps.DeleteFunc(spec.Maps, func(name string, m *ebpf.MapSpec) bool { return !used[name] && m.Type != ebpf.StructOpsMap })
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: l.log}})
	if err != nil {
		a.Error, a.Errno = l.refusal(p, err), errnoOf(err)
		if v := (*ebpf.VerifierError)(nil); errors.As(err, &v) {
			a.Log = strings.Join(v.Log, "\n")
			a.Blame = l.blame(p.Instructions, v.Log)
		}
	} else {
		defer c.Close()
		loaded := c.Programs[p.Name]
		a.Loads, a.Log = true, loaded.VerifierLog
		l.attach(&a, p, loaded)
	}
	a.Verified, a.States = figures(a.Log)
	a.Log = cut(a.Log)
	return a
}

// size is the size of a program in instructions of 8 bytes, as the verifier counts them.
func size(list asm.Instructions) (n int) {
	for i := range list {
		n += int(list[i].Size()) / asm.InstructionSize
	}
	return n
}

// refusal says why a program was refused: the verifier's sentence is the line after the last instruction in its log.
func (l *loader) refusal(p *ebpf.ProgramSpec, err error) string {
	v := (*ebpf.VerifierError)(nil)
	if !errors.As(err, &v) {
		return err.Error()
	}
	line, n := last(v.Log)
	if errnoOf(v.Cause) == "" { // the loader's own: the program asks for what this kernel's types have not
		text := v.Cause.Error()
		if name := l.relocation(p.Instructions, n); name != "" {
			text += ": this kernel has no " + name
		}
		return text
	}
	for _, text := range v.Log[line+1:] {
		if text = strings.TrimSpace(text); text != "" && !isFigures(text) {
			return text
		}
	}
	return v.Cause.Error()
}

func errnoOf(err error) string {
	if e := unix.Errno(0); errors.As(err, &e) {
		return unix.ErrnoName(e)
	}
	return ""
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

// cut leaves a log's beginning and its end, where the verifier's reason is.
func cut(log string) string {
	const half = bounded.BPFLog / 2
	if len(log) <= 2*half {
		return log
	}
	return log[:half] + "\n[" + strconv.Itoa(len(log)-2*half) + " bytes]\n" + log[len(log)-half:]
}
