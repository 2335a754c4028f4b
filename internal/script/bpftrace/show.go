package bpftrace

import (
	"encoding/binary"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
)

// show makes the text of a value for printf's %s.
func (s *Script) show(t *Type) func(*script.Thread, int64, []byte, []byte) []byte {
	switch {
	case t.Kind == String:
		most, trailer := s.maxStr, s.trailer
		return func(_ *script.Thread, _ int64, text, dst []byte) []byte {
			dst = append(dst, text...)
			if len(text)+1 == most {
				dst = append(dst, trailer...)
			}
			return dst
		}
	case t.Kind == Ksym:
		return func(th *script.Thread, n int64, _, dst []byte) []byte { return symbolOf(th, uint64(n), false, dst) }
	case s.newest && (t.Kind == TupleKind || t.Kind == Record || t.Kind == Array):
		return func(th *script.Thread, n int64, text, dst []byte) []byte {
			return append(dst, s.render(th, t, n, text, false, 1)...)
		}
	case t.isStack():
		return func(th *script.Thread, _ int64, text, dst []byte) []byte { return stackText(th, t, text, dst) }
	}
	return func(th *script.Thread, n int64, text, dst []byte) []byte {
		return append(dst, s.plain(th, t, n, text, 1)...)
	}
}

// stackText is a stack, a line for each address.
func stackText(th *script.Thread, t *Type, b, dst []byte) []byte {
	dst = append(dst, '\n')
	user, pid := t.Kind == Ustack, int64(0)
	if user && len(b) >= 8 {
		pid, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	}
	for ; len(b) >= 8; b = b[8:] {
		addr := binary.LittleEndian.Uint64(b)
		switch t.Name {
		case "raw":
			dst = strconv.AppendUint(dst, addr, 16)
		case "perf":
			dst = append(strconv.AppendUint(append(dst, '\t'), addr, 16), ' ')
			dst = frameText(th, addr, user, true, pid, dst)
		default:
			dst = frameText(th, addr, user, false, pid, append(dst, "        "...))
		}
		dst = append(dst, '\n')
	}
	return dst
}

// frameText is an address of a stack in words. A program's have none when it is gone.
func frameText(th *script.Thread, addr uint64, user, file bool, pid int64, dst []byte) []byte {
	if user {
		return userSymbol(th, pid, addr, true, file, dst)
	}
	return symbolOf(th, addr, true, dst)
}

func pointerText(_ *script.Thread, n int64, _, dst []byte) []byte {
	if n == 0 {
		return append(dst, "(nil)"...)
	}
	return strconv.AppendUint(append(dst, "0x"...), uint64(n), 16)
}

// hexBuffer is a buffer: with r what prints as it is, with rx all as \x00, with rh all in columns.
func hexBuffer(b []byte, how string, dst []byte) []byte {
	const hex = "0123456789abcdef"
	for i, c := range b {
		switch {
		case how == "r" && c >= 32 && c <= 126:
			dst = append(dst, c)
			continue
		case how != "rh":
			dst = append(dst, '\\', 'x')
		case i > 0:
			dst = append(dst, ' ')
		}
		dst = append(dst, hex[c>>4], hex[c&15])
	}
	return dst
}

// quoted are the kinds that JSON has as strings.
func (t *Type) quoted() bool {
	switch t.Kind {
	case Buffer, CgroupPath, Inet, Kstack, Ksym, None, Strerror, String, Timestamp, Username, Ustack, Usym:
		return true
	}
	return false
}

// render is a value as print shows it, in the output's format.
func (s *Script) render(th *script.Thread, t *Type, n int64, b []byte, key bool, div int64) string {
	return s.renderPart(th, t, n, b, key, div, ctype.Printing())
}

// renderPart is a value, or a part of one. After the bound come three points.
func (s *Script) renderPart(th *script.Thread, t *Type, n int64, b []byte, key bool, div int64, w *ctype.Walk) string {
	if !w.Enter() {
		return "..."
	}
	defer w.Leave()
	switch t.Kind {
	case TupleKind:
		return s.renderTuple(th, t, b, key, div, w)
	case Array, Record:
		return s.renderParts(th, t, b, key, div, w)
	}
	v := s.plain(th, t, n, b, div)
	if !s.json || !t.quoted() {
		return v
	}
	if key {
		return jsonText(v)
	}
	return `"` + jsonText(v) + `"`
}

func (s *Script) renderTuple(th *script.Thread, t *Type, b []byte, key bool, div int64, w *ctype.Walk) string {
	layout := t.layout()
	var list []string
	for i, f := range t.Fields {
		n, text := script.Unpack(b, layout, i)
		// A tuple in a key's tuple is no key.
		list = append(list, s.renderPart(th, f, n, text, key && f.Kind != TupleKind, div, w))
	}
	if t.Names != nil {
		return s.recordText(t, list)
	}
	switch {
	case s.json && key:
		return strings.Join(list, ",")
	case s.json:
		return "[" + strings.Join(list, ",") + "]"
	case key:
		return strings.Join(list, ", ")
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// renderParts is a record or an array out of its bytes.
func (s *Script) renderParts(th *script.Thread, t *Type, b []byte, key bool, div int64, w *ctype.Walk) string {
	part := func(e *Type, off int) string {
		if e.Size <= 0 || off < 0 || off+e.Size > len(b) {
			w.Skip()
			return "0"
		}
		p := b[off : off+e.Size]
		switch e.Kind {
		case Array, Record:
			return s.renderPart(th, e, 0, p, key, div, w)
		case String:
			if i := strings.IndexByte(string(p), 0); i >= 0 {
				p = p[:i]
			}
			return s.renderPart(th, e, 0, p, key, div, w)
		}
		var v uint64
		for i := len(p) - 1; i >= 0; i-- {
			v = v<<8 | uint64(p[i])
		}
		return s.renderPart(th, e, int64(v), nil, key, div, w)
	}
	var list []string
	if t.Kind == Array {
		e := t.target()
		for i := range t.N {
			if w.Full() {
				list = append(list, "...")
				break
			}
			list = append(list, part(e, i*e.Size))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	if t.C == nil { // of a declaration, and not known
		return "{ }"
	}
	for _, m := range t.C.Members() {
		if w.Full() {
			list = append(list, "...")
			break
		}
		v := part(fromC(m.Type), int(m.Offset)+m.Bit/8) // of a bit field all that is there
		if s.json {
			list = append(list, `"`+m.Name+`": `+v)
		} else {
			list = append(list, "."+m.Name+" = "+v)
		}
	}
	return "{ " + strings.Join(list, ", ") + " }"
}

// noMac is the text of a macaddr_t of zeros.
const noMac = "00:00:00:00:00:00"

// plain is a value that has no parts.
func (s *Script) plain(th *script.Thread, t *Type, n int64, b []byte, div int64) string {
	switch t.Kind {
	case Integer, Count, Sum, Min, Max, Avg:
		n = t.printed(n)
		if t.Bool {
			return strconv.FormatBool(n != 0)
		}
		if name, ok := t.enumerator(n); ok && div == 1 && !s.json {
			return name
		}
		if t.Signed {
			return strconv.FormatInt(n/div, 10)
		}
		return strconv.FormatUint(uint64(n)/uint64(div), 10)
	case Pointer:
		if s.json {
			return strconv.FormatUint(uint64(n), 10)
		}
		return "0x" + strconv.FormatUint(uint64(n), 16)
	case Usym:
		if len(b) < 16 {
			return "0"
		}
		return string(userSymbol(th, int64(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint64(b), false, false, nil))
	case Ksym:
		return string(symbolOf(th, uint64(n), false, nil))
	case Kstack, Ustack:
		return string(stackText(th, t, b, nil))
	case Buffer:
		return string(hexBuffer(b, "r", nil))
	case Username:
		if n == 0 {
			return "root"
		}
		return strconv.FormatInt(n, 10)
	case Strerror:
		return errno.Errno(int32(n)).Text() // C takes 32 bits
	case Mac:
		if len(b) == 0 { // nothing was assigned
			return noMac
		}
	}
	return string(b)
}
