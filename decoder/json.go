package decoder

import (
	"encoding/hex"
	"encoding/json"
	"strconv"

	"kprobelab/profile"
	"kprobelab/x86"
)

// AppendJSON appends the instruction at the start of b, which is at that address, as a JSON object
// and a newline: the fields of the processor's view, then of the kernel's view. d selects the
// kernel; nil is 6.1's. It returns the instruction's length, 0 for none; the object then has an
// error.
func AppendJSON(dst, b []byte, at x86.Addr, d *profile.Decoder) ([]byte, int) {
	return Processor{}.AppendJSON(dst, b, at, d)
}

// AppendJSON is as the function of that name, on that processor.
func (p Processor) AppendJSON(dst, b []byte, at x86.Addr, d *profile.Decoder) ([]byte, int) {
	b = b[:min(len(b), MaxInsnSize)]
	i, err := p.Decode(b)
	k, kerr := DecodeKernel(b, d)
	o := object{append(dst, '{')}
	o.address("addr", at)
	if err != nil {
		o.hex("bytes", b)
		o.b = append(o.b, `,"length":0,"class":null,"target":null,"rip_relative":false,"text":""`...)
	} else {
		o.hex("bytes", i.Bytes())
		o.number("length", int64(i.Length))
		o.plain("class", i.Class.String())
		o.target("target", &i, at)
		o.key("rip_relative")
		o.b = strconv.AppendBool(o.b, i.RIPRelative)
		o.key("text")
		o.b = append(i.AppendText(append(o.b, '"'), at), '"') // no text has a character that JSON escapes
	}
	length := int64(0)
	if kerr == nil {
		length = int64(k.Length)
	}
	o.number("kernel_length", length)
	o.error("kernel_error", kerr)
	o.error("error", err)
	o.kernel(&k, kerr, at)
	if err == nil {
		o.fields(&i)
	}
	return append(o.b, '}', '\n'), i.Length
}

// AppendJSONError appends the object of a line that holds no bytes.
func AppendJSONError(dst []byte, line string, at x86.Addr, err error) []byte {
	o := object{append(dst, '{')}
	o.address("addr", at)
	o.text("bytes", line)
	o.b = append(o.b, `,"length":0,"class":null,"target":null,"rip_relative":false,"text":"","kernel_length":0,"kernel_error":null`...)
	o.text("error", err.Error())
	o.b = append(o.b, `,"kernel_opcode":null,"kernel_class":null,"kernel_target":null`...)
	return append(o.b, '}', '\n')
}

// object is a JSON object under way.
type object struct{ b []byte }

func (o *object) key(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',', '"')
	} else {
		o.b = append(o.b, '"')
	}
	o.b = append(append(o.b, name...), '"', ':')
}

func (o *object) null(name string) {
	o.key(name)
	o.b = append(o.b, "null"...)
}

// plain is a string without anything that JSON escapes.
func (o *object) plain(name, s string) {
	o.key(name)
	o.b = append(append(append(o.b, '"'), s...), '"')
}

// text is any string.
func (o *object) text(name, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			o.key(name)
			text, err := json.Marshal(s)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			o.b = append(o.b, text...)
			return
		}
	}
	o.plain(name, s)
}

func (o *object) number(name string, n int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) hex(name string, b []byte) {
	o.key(name)
	o.b = append(hex.AppendEncode(append(o.b, '"'), b), '"')
}

func (o *object) address(name string, at x86.Addr) {
	o.key(name)
	o.b = append(strconv.AppendUint(append(o.b, `"0x`...), uint64(at), 16), '"')
}

func (o *object) error(name string, err error) {
	if err == nil {
		o.null(name)
		return
	}
	o.text(name, err.Error())
}

func (o *object) target(name string, i *Inst, at x86.Addr) {
	if target, ok := i.Target(at); ok {
		o.address(name, target)
		return
	}
	o.null(name)
}

// kernel is the kernel's view: its opcode bytes, and the class and target that kprobes
// goes by.
func (o *object) kernel(k *Kernel, err error, at x86.Addr) {
	if err != nil {
		o.null("kernel_opcode")
		o.null("kernel_class")
		o.null("kernel_target")
		return
	}
	o.hex("kernel_opcode", k.Opcode[:k.OpcodeLen])
	o.plain("kernel_class", k.Class().String())
	if k.HasTarget() {
		o.address("kernel_target", k.Target(at))
	} else {
		o.null("kernel_target")
	}
}

func (o *object) fields(i *Inst) {
	b := i.Bytes()
	o.plain("map", i.Encoding.String())
	o.hex("opcode", []byte{i.Opcode})
	o.text("mnemonic", i.Mnemonic())
	o.text("extension", i.Extension())
	o.hex("prefixes", b[:i.PrefixLen])
	o.hex("vex", b[i.PrefixLen:i.PrefixLen+i.VexLen])
	o.number("opcode_off", int64(i.OpcodeOff))
	o.number("opcode_len", int64(i.OpcodeLen))
	o.byteOrNull("modrm", i.HasModRM, i.ModRM)
	o.byteOrNull("sib", i.HasSIB, i.SIB)
	o.number("disp_off", int64(i.DispOff))
	o.number("disp_len", int64(i.DispLen))
	o.number("disp", int64(i.Disp))
	o.number("imm_off", int64(i.ImmOff))
	o.number("imm_len", int64(i.ImmLen))
	o.number("imm", i.Imm())
}

func (o *object) byteOrNull(name string, has bool, b byte) {
	if has {
		o.number(name, int64(b))
	} else {
		o.null(name)
	}
}
