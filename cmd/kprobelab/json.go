package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"kprobelab/errno"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/session"
	"kprobelab/internal/show"
	"kprobelab/kprobes/probepoint"
	"kprobelab/watch"
	"kprobelab/x86"
)

// jsonOutput writes one JSON object a line. Addresses and registers are
// strings, for JSON's numbers do not hold 64 bits.
type jsonOutput struct {
	w   *bufio.Writer
	enc *json.Encoder
	err error
}

func newJSON(w *bufio.Writer) *jsonOutput {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // "<kernel_clone>" is to be read
	return &jsonOutput{w: w, enc: enc}
}

// event is a line; fields that an event has not are left out.
type event struct {
	Event string `json:"event"`
	// Kind and Probe say which probe: "kprobe", "kretprobe" or "watchpoint", SYM+0xOFF.
	Kind  string `json:"kind,omitempty"`
	Probe string `json:"probe,omitempty"`
	Addr  string `json:"addr,omitempty"`
	// CPU, Task and Time (virtual ns) say where and when, PID which process of a program; Task is its thread then.
	CPU  *int    `json:"cpu,omitempty"`
	PID  *int    `json:"pid,omitempty"`
	Task *int    `json:"task,omitempty"`
	Time *uint64 `json:"time_ns,omitempty"`
	// Comm is the name of the task, of a sample module's hit.
	Comm string `json:"comm,omitempty"`
	// Regs are the registers of a hit by their names in struct pt_regs.
	Regs map[string]string `json:"regs,omitempty"`
	// Access, Old and New are of a watchpoint's hit: r, w, rw or x, and what its bytes held.
	Access string `json:"access,omitempty"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
	Call   string `json:"call,omitempty"`
	// Value is rax, and Result the same as a person reads it.
	Value    string       `json:"value,omitempty"`
	Result   string       `json:"result,omitempty"`
	Duration *int64       `json:"duration_ns,omitempty"`
	Buffers  []jsonBuffer `json:"buffers,omitempty"`
	// Errno is negative, as the kernel returns it.
	Errno int    `json:"errno,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// Hazard names the harm that a uprobe does although the kernel accepts it.
	Hazard  string  `json:"hazard,omitempty"`
	Error   string  `json:"error,omitempty"`
	Hits    *uint64 `json:"hits,omitempty"`
	Nmissed *uint64 `json:"nmissed,omitempty"`
	// ExitCode is a program's.
	ExitCode *int `json:"exit_code,omitempty"`
	// Step and Detail are a numbered step of a hit; Detail alone is a line
	// of the log, from Kind "kernel" or "console", or of trace, or what a program
	// has written to Kind "stdout" or "stderr".
	Step   int    `json:"step,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Hex holds a program's output in hexadecimal if the output is not UTF-8.
	Hex string `json:"hex,omitempty"`
}

type jsonBuffer struct {
	Arg int    `json:"arg"`
	Hex string `json:"hex"`
	// Shown is the buffer as a person reads it.
	Shown string `json:"shown"`
}

func (o *jsonOutput) write(e event) {
	if err := o.enc.Encode(e); err != nil && o.err == nil {
		o.err = err
	}
}

// of is an event of a probe.
func of(name string, p *session.Planted) event {
	return event{Event: name, Kind: p.Kind(), Probe: p.String(), Addr: p.At.String()}
}

// at adds where and when.
func (e event) at(w session.Where) event {
	e.CPU, e.Task, e.Time = &w.CPU, &w.Task, &w.Now
	return e
}

func (e event) registers(r *x86.PtRegs) event {
	e.Regs = map[string]string{}
	for _, f := range registers(r) {
		e.Regs[f.name] = hexWord(f.value)
	}
	return e
}

func hexWord(v uint64) string { return fmt.Sprintf("0x%x", v) }

func (o *jsonOutput) planted(p *session.Planted) { o.write(of("planted", p)) }

func (o *jsonOutput) refused(p callsyntax.Probe, err error) {
	e := of("refused", &session.Planted{Probe: p})
	e.Addr, e.Errno, e.Error = "", -int(errno.Of(err)), err.Error()
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		e.Rule = r.Rule.String()
		if r.Addr != 0 {
			e.Addr = r.Addr.String()
		}
	}
	o.write(e)
}

func (o *jsonOutput) pre(p *session.Planted, at session.Where, regs *x86.PtRegs) {
	o.write(of("pre", p).at(at).registers(regs))
}

func (o *jsonOutput) post(p *session.Planted, at session.Where, regs *x86.PtRegs) {
	o.write(of("post", p).at(at).registers(regs))
}

func (o *jsonOutput) returned(p *session.Planted, at session.Where, value uint64, ns int64) {
	e := of("return", p).at(at)
	e.Value = hexWord(value)
	if ns >= 0 {
		e.Duration = &ns
	}
	o.write(e)
}

func (o *jsonOutput) watched(p *session.Planted, h *watch.Hit, regs *x86.PtRegs) {
	e := of("watch", p).at(session.Where{CPU: h.CPU, Task: h.Task, Now: h.Now}).registers(regs)
	e.Access, e.Old, e.New = watch.Access(h.Kinds), hexWord(h.Old), hexWord(h.New)
	o.write(e)
}

func (o *jsonOutput) notWatched(p watch.Place, err error) {
	e := of("refused", &session.Planted{Watched: &watch.Watchpoint{}, Place: p})
	e.Addr, e.Errno, e.Error = "", -int(errno.Of(err)), err.Error()
	o.write(e)
}

func (o *jsonOutput) log(from, line string) { o.write(event{Event: "log", Kind: from, Detail: line}) }

// traced writes the lines of trace without its head.
func (o *jsonOutput) traced(text string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			o.write(event{Event: "trace", Detail: strings.TrimSuffix(line, "\n")})
		}
	}
}

func (o *jsonOutput) called(task int, r *session.Result) {
	e := event{
		Event: "call", Task: &task, Call: r.Call.String(),
		Value: hexWord(r.Value), Result: value(r),
	}
	for _, b := range r.Shown() {
		e.Buffers = append(e.Buffers, jsonBuffer{b.Arg, hex.EncodeToString(b.After), show.Buffer(b.After, "")})
	}
	o.write(e)
}

func (o *jsonOutput) failed(task int, c *session.Call, err error) {
	o.write(event{Event: "failed", Task: &task, Call: c.String(), Error: err.Error()})
}

func (o *jsonOutput) wrote(fd int, b []byte) error {
	e := event{Event: "output", Kind: map[int]string{1: "stdout", 2: "stderr"}[fd], Detail: string(b)}
	if !utf8.Valid(b) {
		e.Hex = hex.EncodeToString(b)
	}
	o.write(e)
	return o.flush()
}

func (o *jsonOutput) exited(program string, code int) {
	e := event{Event: "exited", Call: program, ExitCode: &code}
	if code < 0 {
		e.Event, e.ExitCode = "failed", nil
	}
	o.write(e)
}

func (o *jsonOutput) unregistered(p *session.Planted) { o.write(of("unregistered", p)) }

func (o *jsonOutput) counters(list []*session.Planted) {
	for _, p := range list {
		e := of("counters", p)
		e.Hits, e.Nmissed = &p.Hits, &p.Missed
		o.write(e)
	}
}

func (o *jsonOutput) flush() error { return errors.Join(o.err, o.w.Flush()) }
