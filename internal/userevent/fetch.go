package userevent

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
	"kprobelab/x86"
)

// record is one hit, of which the arguments are fetched.
type record struct {
	t    *Trace
	e    *Event
	regs *x86.PtRegs
	// at is the probed instruction.
	at x86.Addr
}

// maxString bounds a fetched text, its NUL included (MAX_STRING_SIZE).
const maxString = 4096

// argument writes an argument's value as trace prints it. What cannot be read is 0, or a fault
// where it is text.
func (r *record) argument(b *strings.Builder, a *definition.Arg) {
	values := r.fetch(a)
	for i, v := range values {
		switch {
		case a.Count == 0:
		case i == 0:
			b.WriteByte('{')
		default:
			b.WriteByte(',')
		}
		b.WriteString(v)
	}
	if a.Count > 0 {
		b.WriteByte('}')
	}
}

// fetch gives the value of an argument, or of each element of an array.
func (r *record) fetch(a *definition.Arg) []string {
	code := a.Code
	switch code[0].Code {
	case definition.OpComm:
		return []string{quoted(r.t.p.Comm())}
	case definition.OpData:
		return []string{quoted(code[0].Data)}
	}
	count := max(a.Count, 1)
	val, i := r.load(&code[0]), 1
	ok := true
	from := val // what the last dereference was of
	for ; ok && (code[i].Code == definition.OpDeref || code[i].Code == definition.OpUDeref); i++ {
		from = val
		val, ok = r.word(val + uint64(code[i].Offset))
	}
	out := make([]string, count)
	for n := range count {
		if n > 0 && a.Type.IsString() && ok {
			// The next pointer of an array of them.
			from += 8
			val, ok = r.word(from + uint64(code[i-1].Offset))
		}
		out[n] = r.value(a, code[i:], val, ok)
		if !a.Type.IsString() {
			val += uint64(a.Type.Size)
		}
	}
	return out
}

func (r *record) load(op *definition.Op) uint64 {
	switch op.Code {
	case definition.OpReg:
		return r.regs.At(op.Param)
	case definition.OpStackP:
		return r.regs.SP
	case definition.OpStack:
		v, _ := r.word(r.regs.SP + 8*uint64(op.Param))
		return v
	case definition.OpRetval:
		return r.regs.AX
	case definition.OpImm:
		return op.Imm
	case definition.OpFile:
		// The file's base is that of the mapping in which the probe was hit.
		return uint64(r.at) - r.e.FileOffset + op.Imm
	}
	return 0
}

func (r *record) word(at uint64) (uint64, bool) {
	var b [8]byte
	ok := r.t.p.Read(x86.Addr(at), b[:]) == nil
	return binary.LittleEndian.Uint64(b[:]), ok
}

// value stores a value as its type says, and prints it.
func (r *record) value(a *definition.Arg, code []definition.Op, val uint64, ok bool) string {
	store := &code[0]
	if a.Type.IsString() {
		if store.Code == definition.OpStoreSymstr {
			return quoted(x86.Addr(val).String())
		}
		s, read := r.text(val + uint64(store.Offset))
		if !ok || !read {
			return "(fault)"
		}
		return quoted(s)
	}
	var b [8]byte
	switch {
	case !ok:
	case store.Code == definition.OpStoreRaw:
		binary.LittleEndian.PutUint64(b[:], val)
	default:
		if r.t.p.Read(x86.Addr(val+uint64(store.Offset)), b[:store.Size]) != nil {
			clear(b[:])
		}
	}
	if op := code[1]; op.Code == definition.OpBitfield {
		v := event.Number(b[:], op.Size, false)
		v = v << op.Left << (64 - 8*op.Size) >> (64 - 8*op.Size) >> op.Right
		binary.LittleEndian.PutUint64(b[:], v)
	}
	return number(a.Type, event.Number(b[:], a.Type.Size, a.Type.Signed))
}

func (r *record) text(at uint64) (string, bool) {
	var out []byte
	for len(out) < maxString {
		b := make([]byte, min(256, maxString-len(out), 4096-int(at%4096)))
		if r.t.p.Read(x86.Addr(at), b) != nil {
			return "", false
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			return string(append(out, b[:i]...)), true
		}
		out = append(out, b...)
		at += uint64(len(b))
	}
	return string(out[:maxString-1]), true
}

func quoted(s string) string { return `"` + s + `"` }

func number(typ *definition.Type, v uint64) string {
	switch typ.Show {
	case definition.ShowSigned:
		return fmt.Sprintf("%d", int64(v))
	case definition.ShowHex:
		return fmt.Sprintf("%#x", v)
	case definition.ShowBareHex:
		return fmt.Sprintf("%x", v)
	case definition.ShowChar:
		return "'" + string([]byte{byte(v)}) + "'"
	case definition.ShowSymbol:
		return x86.Addr(v).String()
	}
	return fmt.Sprintf("%d", v)
}
