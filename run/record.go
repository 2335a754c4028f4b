package run

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"kprobelab/bpf/losses"
	"kprobelab/internal/sample/module"
	"kprobelab/internal/show"
	"kprobelab/kprobes/pool"
	"kprobelab/x86"
)

// Record is an event as an object of JSON; fields that an event has not are left out. Addresses and registers are
// strings, for JSON's numbers do not hold 64 bits.
type Record struct {
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
	Value    string         `json:"value,omitempty"`
	Result   string         `json:"result,omitempty"`
	Duration *int64         `json:"duration_ns,omitempty"`
	Buffers  []RecordBuffer `json:"buffers,omitempty"`
	// Errno is negative, as the kernel returns it.
	Errno int    `json:"errno,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// Hazard names the harm that a uprobe does although the kernel accepts it.
	Hazard  string  `json:"hazard,omitempty"`
	Error   string  `json:"error,omitempty"`
	Hits    *uint64 `json:"hits,omitempty"`
	Nmissed *uint64 `json:"nmissed,omitempty"`
	// Pool is the account of a kretprobe's instances.
	Pool *pool.Usage `json:"pool,omitempty"`
	// ExitCode is a program's.
	ExitCode *int `json:"exit_code,omitempty"`
	// Step and Detail are a numbered step of a hit; Detail alone is a line
	// of the log, from Kind "kernel" or "console", or of trace, or what a program
	// has written to Kind "stdout" or "stderr".
	Step   int    `json:"step,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Hex holds a program's output in hexadecimal if the output is not UTF-8.
	Hex string `json:"hex,omitempty"`
	// Losses is the ledger of a tool's BPF programs.
	Losses *losses.Ledger `json:"losses,omitempty"`
}

// RecordBuffer is a buffer argument after the call.
type RecordBuffer struct {
	Arg int    `json:"arg"`
	Hex string `json:"hex"`
	// Shown is the buffer as a person reads it.
	Shown string `json:"shown"`
}

// HexWord is a word as records have it.
func HexWord(v uint64) string { return fmt.Sprintf("0x%x", v) }

// At adds where and when.
func (r Record) At(w Where) Record {
	r.Task, r.Time = &w.Task, &w.Now
	if w.PID != 0 {
		r.PID = &w.PID
	} else {
		r.CPU = &w.CPU
	}
	return r
}

// Registers adds the registers of a hit.
func (r Record) Registers(regs *x86.PtRegs) Record {
	r.Regs = map[string]string{}
	for _, f := range registers(regs) {
		r.Regs[f.name] = HexWord(f.value)
	}
	return r
}

// of is the record of a probe's event.
func of(name string, p *Probe) Record {
	r := Record{Event: name, Kind: p.Kind, Probe: p.Text}
	if p.Addr != nil {
		r.Addr = p.Addr.String()
	}
	return r
}

// records returns the JSON objects of an event: none for an event that JSON output does not show.
func records(e Event) []Record {
	switch e := e.(type) {
	case Planted:
		r := of("planted", &e.Probe)
		r.Hazard = string(e.Probe.Hazard)
		return []Record{r}
	case RefusedProbe:
		return []Record{e.record()}
	case Hit:
		name := "pre"
		if e.Post {
			name = "post"
		}
		r := of(name, e.Probe).At(e.Where).Registers(e.Regs)
		r.Detail = e.Text
		return []Record{r}
	case Returned:
		return []Record{e.record()}
	case Accessed:
		return []Record{e.record()}
	case Step:
		return []Record{Record{Event: "step", Addr: e.Addr.String(), Step: e.Number, Detail: e.Text}.At(e.Where)}
	case Logged:
		return []Record{{Event: "log", Kind: e.From, Detail: e.Line}}
	case Traced:
		return e.records()
	case Called:
		return []Record{e.record()}
	case Failed:
		return []Record{e.record()}
	case Wrote:
		return e.records()
	case Lost:
		return []Record{{Event: "losses", Losses: e.Ledger}}
	case Exited:
		return []Record{{Event: "exited", Call: e.Program, ExitCode: &e.Code}}
	case Removed:
		return []Record{of("unregistered", &e.Probe)}
	case Counters:
		return e.records()
	}
	return nil
}

func (e *Returned) record() Record {
	r := of("return", e.Probe).At(e.Where)
	r.Value, r.Detail = HexWord(e.Value), e.Text
	if e.Regs != nil {
		r = r.Registers(e.Regs)
	}
	if e.Duration >= 0 {
		r.Duration = &e.Duration
	}
	return r
}

func (e *Called) record() Record {
	r := Record{Event: "call", Task: &e.Task, Call: e.Call, Value: HexWord(e.Value), Result: e.Result}
	for _, b := range e.Buffers {
		r.Buffers = append(r.Buffers, RecordBuffer{b.Arg, hex.EncodeToString(b.Data), show.Buffer(b.Data, "")})
	}
	return r
}

func (e *Failed) record() Record {
	r := Record{Event: "failed", Call: e.Call}
	if e.Task >= 0 {
		r.Task = &e.Task
	}
	if e.Err != nil {
		r.Error = e.Err.Error()
	}
	return r
}

// records are the lines of trace without its head.
func (e *Traced) records() []Record {
	var list []Record
	for line := range strings.Lines(e.Text) {
		if !strings.HasPrefix(line, "#") {
			list = append(list, Record{Event: "trace", Detail: strings.TrimSuffix(line, "\n")})
		}
	}
	return list
}

func (e *Wrote) records() []Record {
	if e.All && len(e.Data) == 0 {
		return nil
	}
	r := Record{Event: "output", Kind: map[int]string{1: "stdout", 2: "stderr"}[e.FD], Detail: string(e.Data)}
	if !utf8.Valid(e.Data) {
		r.Hex = hex.EncodeToString(e.Data)
	}
	return []Record{r}
}

func (e *Counters) records() []Record {
	var list []Record
	for i := range e.Probes {
		r := of("counters", &e.Probes[i])
		r.Hits, r.Nmissed, r.Pool = &e.Probes[i].Hits, e.Probes[i].Missed, e.Probes[i].Pool
		list = append(list, r)
	}
	return list
}

// OfSample is an event of a sample module as a record.
func OfSample(m module.Event) Record {
	e := Record{Event: m.Name, Detail: m.Line}
	if p := m.Probe; p != nil {
		e.Kind, e.Probe = p.Kind, p.Symbol
		if p.Addr != 0 {
			e.Addr = p.Addr.String()
		}
	}
	if at := m.At; at != nil {
		e = e.At(Where{CPU: at.CPU, Task: at.Task, Now: at.Now})
		e.Comm = at.Comm
	}
	switch m.Name {
	case "pre", "post":
		e = e.Registers(m.Regs)
	case "return":
		e.Value = HexWord(m.Value)
		if m.Duration != 0 { // else the module took no time
			e.Duration = &m.Duration
		}
	case "refused":
		e = e.Refused(m.Err)
	case "counters":
		e.Hits, e.Nmissed = &m.Probe.Hits, &m.Probe.Missed
	}
	return e
}
