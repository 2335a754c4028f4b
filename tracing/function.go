package tracing

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/filter"
	"kprobelab/internal/tracing/word"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// functionID is the type of the function tracer's records (TRACE_FN): the
// traced function's address, and its caller's.
const (
	functionID   = 1
	offParent    = event.CommonSize + 8
	functionSize = event.CommonSize + 16
)

// The tracers (available_tracers).
const (
	tracerNop      = "nop"
	tracerFunction = "function"
)

// allFunctions is the content of a filter file that admits all functions.
const allFunctions = "#### all functions enabled ####\n"

// traceable is a function that the function tracer can be called in.
type traceable struct {
	site x86.Addr
	name string
	// module is the name of its module, empty for the image's own.
	module string
}

// functionFilter is set_ftrace_filter or set_ftrace_notrace: the chosen
// functions' sites.
type functionFilter map[x86.Addr]bool

// traceables are all functions with a fentry site, by address.
func (t *Tracing) traceables() []traceable {
	var list []traceable
	if !t.p.Check.FtraceSites {
		return nil
	}
	all := x86.Range{End: ^x86.Addr(0)}
	for {
		s, ok := t.k.View().SiteIn(kimage.SiteFtrace, all)
		if !ok {
			return list
		}
		if sym, ok := t.k.View().SymbolAt(s.Addr); ok {
			list = append(list, traceable{s.Addr, sym.Name, sym.Module})
		}
		all.Start = s.Addr.Add(int64(s.Len))
	}
}

func (f *traceable) line() string {
	if f.module != "" {
		return f.name + " [" + f.module + "]\n"
	}
	return f.name + "\n"
}

// functionNodes returns the function tracer's files, nil without the tracer.
func (a *traceArray) functionNodes() []*node {
	if !a.t.notrace {
		return nil
	}
	return []*node{
		a.filterNode("set_ftrace_filter", a.functions, allFunctions),
		a.filterNode("set_ftrace_notrace", a.noFunctions, "#### no functions disabled ####\n"),
	}
}

// filterNode is a file that names functions. Truncation empties it.
func (a *traceArray) filterNode(name string, f functionFilter, empty string) *node {
	return &node{
		name: name, mode: modeWrite,
		read: func() string {
			if len(f) == 0 {
				return empty
			}
			return functionNames(a.t.traceables(), f)
		},
		write: func(b []byte) (int, error) {
			if err := f.choose(a.t.traceables(), string(b)); err != nil {
				return 0, err
			}
			return len(b), a.t.traceFunctions()
		},
		trunc: func() error {
			clear(f)
			return a.t.traceFunctions()
		},
	}
}

// functionNames lists the functions in f, a line each; all functions for nil.
func functionNames(all []traceable, f functionFilter) string {
	var b strings.Builder
	for i := range all {
		if f == nil || f[all[i].site] {
			b.WriteString(all[i].line())
		}
	}
	return b.String()
}

// choose adds the functions that match the words, as globs; with a "!" it removes them. A word
// without a match is EINVAL; the words before it count.
func (f functionFilter) choose(all []traceable, words string) error {
	for _, w := range word.Split(words) {
		pattern, away := strings.CutPrefix(w, "!")
		found := false
		for i := range all {
			if !filter.Glob(pattern, all[i].name) {
				continue
			}
			found = true
			if away {
				delete(f, all[i].site)
			} else {
				f[all[i].site] = true
			}
		}
		if !found {
			return errno.EINVAL
		}
	}
	return nil
}

// availableTracers is the file of that name.
func (t *Tracing) availableTracers() string {
	if t.notrace {
		return tracerFunction + " " + tracerNop + "\n"
	}
	return tracerNop + "\n"
}

// writeTracer chooses the tracer, and empties the buffer where that changes it
// (tracing_set_tracer). While somebody has a trace_pipe open, that is EBUSY.
func (a *traceArray) writeTracer(s string) error {
	s = word.TrimRight(s)
	if a.t.c.MigrateDisable { // from 5.16 on, before it as well
		s = word.Trim(s)
	}
	if !slices.Contains(strings.Fields(a.t.availableTracers()), s) {
		return errno.EINVAL
	}
	switch {
	case s == a.tracer:
		return nil
	case a.pipes > 0:
		return errno.EBUSY
	}
	a.tracer = s
	a.ring.Reset()
	err := a.t.traceFunctions()
	if err != nil { // such as no memory for the trampoline: nop is left
		a.tracer = tracerNop
		err = errors.Join(err, a.t.traceFunctions())
	}
	return err
}

// wants reports whether the array's tracer records a function.
func (a *traceArray) wants(site x86.Addr) bool {
	return a.tracer == tracerFunction && (len(a.functions) == 0 || a.functions[site]) && !a.noFunctions[site]
}

// traceFunctions makes the tracer be called at each site that a trace array or
// the stack tracer wants.
func (t *Tracing) traceFunctions() error {
	if !t.stack.on && !slices.ContainsFunc(t.arrays(), func(a *traceArray) bool { return a.tracer == tracerFunction }) {
		return t.k.TraceFunctions(nil, nil)
	}
	var sites []x86.Addr
	for _, f := range t.traceables() {
		if t.stack.wants(f.site) || slices.ContainsFunc(t.arrays(), func(a *traceArray) bool { return a.wants(f.site) }) {
			sites = append(sites, f.site)
		}
	}
	return t.k.TraceFunctions(sites, t.functionCall)
}

var _ kprobes.FunctionTracer = (*Tracing)(nil).functionCall

// functionCall records that a function was called (function_trace_call).
func (t *Tracing) functionCall(site x86.Addr, regs *x86.PtRegs) {
	if t.stack.wants(site) {
		t.checkStack(site, regs)
	}
	var rec [functionSize]byte
	pid, comm := t.current()
	binary.LittleEndian.PutUint16(rec[event.OffType:], functionID)
	if regs.Flags&x86.FlagIF == 0 {
		rec[event.OffFlags] |= event.FlagIRQsOff
	}
	if count, ok := t.preemptCount(); ok {
		rec[event.OffFlags] |= t.context(count)
		if t.p.Preemption {
			rec[event.OffPreemptCount] = byte(min(count&preemptDepth, 15))
		}
	}
	binary.LittleEndian.PutUint32(rec[event.OffPID:], uint32(pid))
	putWord(rec[offIP:], uint64(site))
	if t.m.ReadMem(x86.Addr(regs.SP), t.word[:]) == nil {
		copy(rec[offParent:], t.word[:])
	}
	t.top.functionCall(site, rec[:])
	for _, a := range t.instances {
		a.functionCall(site, rec[:])
	}
	t.comms.save(pid, comm)
}

func (a *traceArray) functionCall(site x86.Addr, rec []byte) {
	if a.recording() && a.wants(site) {
		a.ring.Write(a.t.m.CPU(), a.now(), rec)
	}
}

// functionText prints a record of a function call.
func (a *traceArray) functionText(b *strings.Builder, rec []byte) {
	b.WriteString(a.place(binary.LittleEndian.Uint64(rec[offIP:]), a.options.symOffset))
	if !a.options.noParent {
		b.WriteString(" <-" + a.place(binary.LittleEndian.Uint64(rec[offParent:]), a.options.symOffset))
	}
}
