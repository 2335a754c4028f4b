package explore

import (
	"encoding/binary"
	"slices"

	"kprobelab/x86"
)

// window is the number of bytes of an instruction that are compared.
const window = 15

// fetch gives the bytes of the instruction at an address as the CPU sees them.
func (t *task) fetch(at x86.Addr) []byte {
	w, r := t.w, t.w.run
	if at.In(execBase, execBase.Add(int64(len(w.exec)))) {
		return t.fetchOutOfLine(at)
	}
	t.inExec = false
	off := at.Sub(textBase)
	if off < 0 || off >= int64(w.end) {
		r.fail(WrongIP, "%s goes on at %s", t.name, w.where(at))
		return nil
	}
	if !r.isHot(at, len(w.insns[int(off)])) {
		if w.insns[int(off)] == "" {
			r.fail(WrongIP, "%s goes on inside an instruction, at %s", t.name, w.where(at))
		}
		return padded(w.mem0[off:])
	}
	r.stop(pending{kind: "fetch", at: at, fetch: true, reads: []int{varStale + t.cpu}})
	r.reads(at, min(len(t.seen), len(w.mem0)-int(off)))
	if t.call.passes != nil {
		t.call.passes[at]++
	}
	if !w.whole(at, t.seen) {
		r.fail(Torn, "%s executes % x at %s, which was never an instruction there", t.name, t.seen, w.where(at))
	}
	return padded(t.seen)
}

func padded(b []byte) []byte {
	if len(b) >= window {
		return b[:window]
	}
	return append(slices.Clone(b), make([]byte, window-len(b))...)
}

// fetchOutOfLine is a fetch from a slot or a detour buffer.
func (t *task) fetchOutOfLine(at x86.Addr) []byte {
	w, r := t.w, t.w.run
	if !t.inExec {
		r.stop(pending{kind: "enter slot", at: at, reads: []int{varProbe}})
		r.reads(at, 1)
		t.inExec = true
	}
	for _, s := range r.slots {
		if at.In(s, s+window) {
			r.fail(UseAfterFree, "%s executes in the slot at %s, which was freed", t.name, w.where(s))
			return nil
		}
	}
	return padded(w.exec[at.Sub(execBase):])
}

// reuse: a slot is filled, which may have been another probe's.
func (r *run) reuse(in x86.Range) {
	r.slots = slices.DeleteFunc(r.slots, in.Contains)
	for _, t := range r.tasks {
		if t.calling && in.Contains(x86.Addr(t.regs.IP)) {
			r.fail(UseAfterFree, "%s is in the slot at %s while that is given to another probe", t.name, r.w.where(in.Start))
		}
	}
}

// isHot: some change of text may touch the instruction.
func (r *run) isHot(at x86.Addr, n int) bool {
	in := x86.Range{Start: at, End: at.Add(int64(max(n, 1)))}
	for _, h := range r.hot {
		if h.Overlaps(in) {
			return true
		}
	}
	return false
}

// mayFetch lists what a CPU may see at an address, first what is there now: of
// each byte any value that it had since the CPU last saw all text. What makes
// the same instruction is one.
func (w *world) mayFetch(t *task, at x86.Addr) [][]byte {
	off := int(at.Sub(textBase))
	now := padded(w.mem0[off:])
	stale := w.cpus[t.cpu].stale
	list := [][]byte{w.instruction(at, now)}
	var values [window][]byte
	any := false
	for _, s := range stale {
		if n := s.at.Sub(at); n >= 0 && n < window && s.b != now[n] && !slices.Contains(values[n], s.b) {
			values[n] = append(values[n], s.b)
			any = true
		}
	}
	if !any {
		return list
	}
	w.combine(at, now, values[:], 0, func(b []byte) {
		in := w.instruction(at, b)
		if !slices.ContainsFunc(list, func(o []byte) bool { return string(o) == string(in) }) {
			list = append(list, in)
		}
	})
	return list
}

// combine calls fn with every choice of the values of the bytes.
func (w *world) combine(at x86.Addr, b []byte, values [][]byte, i int, fn func([]byte)) {
	for i < len(values) && len(values[i]) == 0 {
		i++
	}
	if i == len(values) {
		fn(b)
		return
	}
	w.combine(at, b, values, i+1, fn)
	was := b[i]
	for _, v := range values[i] {
		b[i] = v
		w.combine(at, b, values, i+1, fn)
	}
	b[i] = was
}

// instruction returns the bytes of the instruction that a CPU decodes from the fetched
// bytes: an instruction that was whole there at some time, or the first five bytes.
func (w *world) instruction(at x86.Addr, b []byte) []byte {
	for _, in := range w.wholes(at) {
		if len(in) <= len(b) && string(b[:len(in)]) == in {
			return []byte(in)
		}
	}
	return slices.Clone(b[:5])
}

// whole: the bytes are an instruction that was written there.
func (w *world) whole(at x86.Addr, b []byte) bool { return slices.Contains(w.wholes(at), string(b)) }

// wholes are the instructions that are whole at an address: the original, a
// breakpoint, a jump to a detour buffer, what another part of the kernel writes.
func (w *world) wholes(at x86.Addr) []string {
	orig := w.insns[int(at.Sub(textBase))]
	if orig == "" {
		return nil
	}
	if list, ok := w.run.known[at]; ok && len(list) > 1 {
		return w.withJump(at, list)
	}
	list := []string{"\xcc", orig}
	for _, s := range w.sites {
		if s.at == at {
			list = append(list, string(s.nop), string(s.jmp))
		}
	}
	return w.withJump(at, list)
}

// withJump adds the jump that stands, or is about to stand, at an address.
func (w *world) withJump(at x86.Addr, list []string) []string {
	if d, ok := w.k.Detour(at); ok && !slices.Contains(list, string(d.Jump[:])) {
		list = append(list, string(d.Jump[:]))
	}
	if w.fentry[at] {
		for _, to := range w.k.FtraceTrampolines() {
			call := binary.LittleEndian.AppendUint32([]byte{0xe8}, uint32(to.Sub(at+5)))
			if !slices.Contains(list, string(call)) {
				list = append(list, string(call))
			}
		}
	}
	w.run.known[at] = list
	return list
}
