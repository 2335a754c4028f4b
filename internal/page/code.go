package page

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/x86"
)

var kernelAddress = regexp.MustCompile(`0xf{8}[0-9a-f]{8}\b`)

// named puts symbols in the place of an instruction's addresses.
func (r *run) named(text string) string { return withNames(text, r.meaning) }

// insn is the instruction in memory.
func (r *run) insn(at x86.Addr) string {
	return r.named(decoder.Text(r.read(at, decoder.MaxInsnSize), at))
}

// read reads up to n bytes.
func (r *run) read(at x86.Addr, n int) []byte {
	for b := make([]byte, n); len(b) > 0; b = b[:len(b)-1] {
		if r.lab.Machine.ReadMem(at, b) == nil {
			return b
		}
	}
	return nil
}

// code returns the watched functions, and the code that kprobes has made for the probes.
func (r *run) code(now, before *moment) (list []Code) {
	off := 0
	for n, w := range r.watched {
		size := int(w.Len())
		list = append(list, r.function(n, now, now.text[off:off+size], before.text[off:off+size]))
		off += size
	}
	for _, p := range now.pieces {
		list = append(list, r.block(&p, now, before))
	}
	return append(list, r.elsewhere(now, list)...)
}

// elsewhere returns the code of the CPUs that stand in none of these blocks: a trampoline, a function that is called. A handler's
// registers are the interrupted code's, so they say nothing about the place of their CPU.
func (r *run) elsewhere(now *moment, shown []Code) (list []Code) {
	for cpu := range r.tasks {
		ip := x86.Addr(now.regs[cpu].IP)
		has := func(c Code) bool {
			return slices.ContainsFunc(c.Rows, func(row Row) bool { return slices.ContainsFunc(row.CPUs, isCPU(cpu)) })
		}
		if !now.has[cpu] || now.frame[cpu] || slices.ContainsFunc(shown, has) || slices.ContainsFunc(list, has) {
			continue
		}
		sym, ok := r.lab.Machine.SymbolAt(ip)
		if !ok || ip.Sub(sym.Addr) >= maxShown {
			continue
		}
		code := r.read(sym.Addr, int(min(sym.Size, maxShown)))
		c := r.block(&piece{name: sym.Name, kind: "elsewhere", at: sym.Addr, code: code}, now, now)
		list = append(list, c)
	}
	return list
}

// isCPU recognizes a CPU in a row.
func isCPU(n int) func(string) bool {
	return func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("CPU %d", n)) }
}

// original is an instruction of a watched function, as the image has it.
type original struct {
	off   int
	bytes []byte
	text  string
	// to is the address to which the instruction jumps, 0 if it does not.
	to x86.Addr
}

// originals are the instructions of the n-th watched range, which stay the same.
func (r *run) originals(n int) []original {
	for len(r.original) <= n {
		w := r.watched[len(r.original)]
		sym, _ := r.img.SymbolAt(w.Start)
		code := make([]byte, w.Len())
		r.img.CodeAt(w.Start, code)
		var list []original
		for step := range kimage.NewWalker(r.img, &r.rules.Decoder).Function(sym) {
			i := int(step.Addr.Sub(w.Start))
			if step.Err != nil || i+step.Insn.Length > len(code) {
				break
			}
			o := original{off: i, bytes: code[i : i+step.Insn.Length], text: r.named(decoder.Text(code[i:], step.Addr))}
			if step.Insn.HasTarget() {
				o.to = step.Insn.Target(step.Addr)
			}
			list = append(list, o)
		}
		r.original = append(r.original, list)
	}
	return r.original[n]
}

// textOf is an instruction in words, with the names that its addresses have now.
func (r *run) textOf(code []byte, at x86.Addr) string {
	key := string(binary.LittleEndian.AppendUint64(code[:len(code):len(code)], uint64(at)))
	text, ok := r.texts[key]
	if !ok {
		text = r.named(decoder.Text(code, at))
		r.texts[key] = text
	}
	return text
}

func (r *run) function(n int, now *moment, live, was []byte) Code {
	w := r.watched[n]
	sym, _ := r.img.SymbolAt(w.Start)
	c := Code{Name: sym.Name, Kind: "function", Address: w.Start.String()}
	for _, o := range r.originals(n) {
		i, end := o.off, o.off+len(o.bytes)
		at := w.Start.Add(int64(i))
		row := Row{Place: fmt.Sprintf("+%#x", i), Text: o.text, Probe: r.probed(at), CPUs: r.at(now, at, len(o.bytes)), Bytes: cells(live[i:end], o.bytes, was[i:end]), Region: r.inRegion(at, len(o.bytes))}
		if !bytes.Equal(live[i:end], o.bytes) {
			row.Was = o.text
			row.Text = r.textOf(live[i:min(i+decoder.MaxInsnSize, len(live))], at)
			if live[i] != o.bytes[0] && r.underJump(at) && !r.probed(at) {
				row.Text = "(inside of the jump)"
			}
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// underJump: a jump at a probe's address would cover this address.
func (r *run) underJump(a x86.Addr) bool {
	for _, p := range r.probes {
		if at := p.at(); at != 0 && a > at && a < at.Add(x86.Rel32Size) {
			return true
		}
	}
	return false
}

// inRegion: five bytes at a probe's place touch these n bytes, before the registration, too.
func (r *run) inRegion(a x86.Addr, n int) bool {
	for _, p := range r.probes {
		if at := p.planned; at != 0 && a < at.Add(x86.Rel32Size) && at < a.Add(int64(n)) {
			return true
		}
	}
	return false
}

// cells turns bytes into cells. It marks bytes that differ from the original's, and
// bytes that changed since was.
func cells(live, original, was []byte) (list []Cell) {
	for j, b := range live {
		list = append(list, Cell{hexOf[b], b != original[j], j >= len(was) || b != was[j]})
	}
	return list
}

// hexOf has two digits for each byte.
var hexOf = func() (list [256]string) {
	for i := range list {
		list[i] = fmt.Sprintf("%02x", i)
	}
	return list
}()

func (r *run) probed(a x86.Addr) bool {
	for _, p := range r.probes {
		if r.registered && !r.gone && p.at() == a {
			return true
		}
	}
	return false
}

// at returns the CPUs whose ip is in an instruction.
func (r *run) at(now *moment, a x86.Addr, n int) (list []string) {
	for cpu := range r.tasks {
		if ip := x86.Addr(now.regs[cpu].IP); now.has[cpu] && ip >= a && ip < a.Add(int64(n)) {
			name := fmt.Sprintf("CPU %d", cpu)
			if ip != a {
				name += fmt.Sprintf(" (+%d)", ip.Sub(a))
			}
			list = append(list, name)
		}
	}
	return list
}

// block is code that kprobes has made.
func (r *run) block(p *piece, now, before *moment) Code {
	c := Code{Name: p.name, Kind: p.kind, Address: p.at.String()}
	var was []byte
	if p.kind == "elsewhere" {
		was = p.code
	}
	for _, b := range before.pieces {
		if b.at == p.at {
			was = b.code
		}
	}
	for i := 0; i < len(p.code); {
		n := 1
		if k, err := decoder.Decode(p.code[i:]); err == nil {
			n = k.Length
		}
		end := min(i+n, len(p.code))
		at := p.at.Add(int64(i))
		if end == len(p.code) {
			n++ // a CPU that has executed the last int3 is one past it
		}
		c.Rows = append(c.Rows, Row{
			Place: fmt.Sprintf("+%#x", i), Text: r.textOf(p.code[i:end], at), CPUs: r.at(now, at, n),
			Bytes: cells(p.code[i:end], p.code[i:end], was[min(i, len(was)):min(end, len(was))]),
		})
		i += n
		if p.kind == "detour" {
			c.Groups = group(c.Groups, p.part(end-1, c.Rows[len(c.Rows)-1].Text))
		}
	}
	return c
}

// part names the part of a detour buffer that has a byte.
func (p *piece) part(i int, text string) string {
	switch {
	case i >= p.template+p.copied:
		return "jump back"
	case i >= p.template:
		return "copies"
	case strings.HasPrefix(text, "call"), strings.HasPrefix(text, "movabs"):
		return "call the handlers"
	case i < p.call:
		return "save registers"
	}
	return "restore registers"
}

// group adds a row to the last group of this name.
func group(list []Group, name string) []Group {
	if n := len(list); n > 0 && list[n-1].Name == name {
		list[n-1].N++
		return list
	}
	return append(list, Group{name, 1})
}
