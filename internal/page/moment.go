package page

import (
	"bytes"
	"encoding/binary"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/kprobes"
	"kprobelab/kprobes/slot"
	"kprobelab/optimizer"
	"kprobelab/x86"
)

// moment is the part of a machine's state that is shown, at one time.
type moment struct {
	// Text says what happens, for an event; Who is the event's CPU, or "worker", "module".
	Text string
	Who  string
	regs [bounded.PageCPUs]x86.PtRegs
	has  [bounded.PageCPUs]bool
	// frame: a handler gets these registers, of the interrupted code.
	frame [bounded.PageCPUs]bool
	// text is the watched text, seen the text that each CPU may still fetch, stack the
	// words above each stack pointer.
	text  []byte
	seen  [bounded.PageCPUs][]byte
	stack [bounded.PageCPUs][]uint64
	// probes are the probes' states, pieces the code that kprobes has made for the probes.
	probes []State
	pieces []piece
	// said is the number of lines in the log.
	said int
	// kind is the kind of a hit's event.
	kind kprobes.EventKind
	hit  bool
	// sign is the mark on the timeline, key the event's in words.json.
	sign, key string
	// site is the probed address of an event, at the address that it concerns, probe its probe, cpu its CPU or -1.
	site, at x86.Addr
	probe    *kprobes.Kprobe
	cpu      int
	// pools are the instances of return probes.
	pools []pool
}

// stackWords is the number of words of a stack that are shown.
const stackWords = 10

// capture takes the state that is shown now; nothing during a step that is not shown.
func (r *run) capture(who, text string) moment {
	if r.unseen {
		return moment{Who: who, Text: text, cpu: -1}
	}
	m := moment{Who: who, Text: text, text: r.text(), said: len(r.said), cpu: -1}
	for n := range r.tasks {
		t, regs, ok := r.lab.Machine.Running(n)
		if m.has[n] = ok; ok {
			m.regs[n] = regs
			m.stack[n] = r.stackOf(x86.Addr(regs.SP), t.Number())
		}
		m.seen[n] = r.seen[n]
	}
	for _, p := range r.probes {
		m.probes = append(m.probes, r.state(p))
		for _, made := range r.piecesOf(p) {
			// Probes at one address have one slot and one detour buffer.
			if !slices.ContainsFunc(m.pieces, func(x piece) bool { return x.kind == made.kind && x.at == made.at }) {
				m.pieces = append(m.pieces, made)
			}
		}
		if p.rp != nil && r.registered && !r.gone {
			m.pools = append(m.pools, pool{p.planned, r.poolOf(p)})
		}
	}
	return m
}

// event adds an event of the module or the worker.
func (r *run) event(sign, key, who, text string) {
	m := r.capture(who, text)
	m.sign, m.key = sign, key
	if len(r.probes) > 0 {
		m.site, m.probe = r.probes[0].planned, r.probes[0].kprobe()
	}
	r.add(m)
}

// add adds an event to the step under way.
func (r *run) add(m moment) {
	r.moments = append(r.moments, m)
	r.wrote(len(r.steps), len(r.moments)-1, m.Text)
}

// piece is a slot or a detour buffer, as it is in memory.
type piece struct {
	name, kind string
	// of is the probed address.
	of   x86.Addr
	at   x86.Addr
	code []byte
	// template and copied are the sizes of a detour buffer's two parts, call is the offset at which it calls the handlers.
	template, copied, call int
}

// movabsDI begins the instruction that gives the callback of a detour buffer its argument.
var movabsDI = []byte{0x48, 0xbf}

func (r *run) piecesOf(p *planted) (list []piece) {
	if s, ok := r.slot(p); ok {
		list = append(list, piece{name: "slot of " + p.text, kind: "slot", of: p.planned, at: s.Addr, code: r.read(s.Addr, s.Len)})
	}
	if d, ok := r.detour(p); ok {
		code := r.read(d.Addr, len(d.Code()))
		list = append(list, piece{
			name: "detour buffer of " + p.text, kind: "detour", of: p.planned, at: d.Addr, code: code,
			template: d.TemplateSize, copied: d.Size, call: bytes.Index(code, movabsDI),
		})
	}
	return list
}

// text is the watched text as it is in memory.
func (r *run) text() []byte {
	var all []byte
	for _, w := range r.watched {
		b := make([]byte, w.Len())
		if r.lab.Machine.ReadMem(w.Start, b) == nil {
			all = append(all, b...)
		}
	}
	return all
}

// stackOf is a task's stack from the stack pointer up.
func (r *run) stackOf(sp x86.Addr, task int) []uint64 {
	tasks := r.lab.Machine.Tasks()
	if task < 0 || task >= len(tasks) {
		return nil
	}
	s := tasks[task].Stack()
	if sp < s.Start || sp >= s.End {
		return nil
	}
	b := make([]byte, min(8*stackWords, s.End.Sub(sp)&^7))
	if r.lab.Machine.ReadMem(sp, b) != nil {
		return nil
	}
	list := make([]uint64, len(b)/8)
	for i := range list {
		list[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return list
}

// slot is a probe's slot.
func (r *run) slot(p *planted) (slot.Slot, bool) {
	switch {
	case !r.registered || r.gone || p.at() == 0:
		return slot.Slot{}, false
	case p.kp != nil:
		return p.kp.Slot()
	case p.rp != nil:
		return p.rp.KP.Slot()
	}
	return p.jp.KP.Slot()
}

// detour is a probe's detour buffer.
func (r *run) detour(p *planted) (optimizer.Detour, bool) {
	if p.at() == 0 {
		return optimizer.Detour{}, false
	}
	return r.lab.Kprobes.Detour(p.at())
}
