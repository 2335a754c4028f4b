package view

import (
	"fmt"
	"strings"

	"kprobelab/decoder"
)

// field is a part of an instruction, with the letter and colour it is shown in.
type field struct {
	letter     byte
	colour     string
	start, len uint8
}

// fieldsIn are the parts in their order.
func fieldsIn(i *decoder.Inst) []field {
	legacy, rex := i.PrefixLen, uint8(0)
	switch {
	case i.REX == 0xD5: // REX2
		rex = 2
	case i.REX != 0:
		rex = 1
	}
	legacy -= rex
	modrm, sib := uint8(0), uint8(0)
	if i.HasModRM {
		modrm = 1
	}
	if i.HasSIB {
		sib = 1
	}
	list := []field{
		{'p', "33", 0, legacy},
		{'r', "35", legacy, rex},
		{'v', "35", i.PrefixLen, i.VexLen},
		{'o', "1;31", i.OpcodeOff, i.OpcodeLen},
		{'m', "36", i.ModRMOff, modrm},
		{'s', "34", i.ModRMOff + 1, sib},
		{'d', "32", i.DispOff, i.DispLen},
		{'i', "1;32", i.ImmOff, i.ImmLen},
	}
	if i.Encoding == decoder.Enc3DNow {
		list = append(list, field{'o', "1;31", uint8(i.Length) - 1, 1})
	}
	return list
}

// people shows an instruction to a person: its bytes by field, its properties, and the differences
// of the kernel's decoder.
func (v *View) people(b []byte, i *decoder.Inst, err error, k *decoder.Kernel, kerr error) {
	if err != nil {
		fmt.Fprintf(v.w, "%v  % x  %s\n", v.At, b, v.Style.Red("(bad): "+err.Error()))
		v.kernelView(i, err, k, kerr)
		return
	}
	letters := []byte(strings.Repeat("?", i.Length))
	colours := make([]string, i.Length)
	for _, f := range fieldsIn(i) {
		for n := f.start; n < f.start+f.len; n++ {
			letters[n], colours[n] = f.letter, f.colour
		}
	}
	var shown, below []string
	for n, c := range i.Bytes() {
		shown = append(shown, v.Style.Wrap(colours[n], fmt.Sprintf("%02x", c)))
		below = append(below, string(letters[n]))
	}
	fmt.Fprintf(v.w, "%v  %s  %s\n", v.At, strings.Join(shown, " "), v.Style.Bold(i.Text(v.At)))
	fmt.Fprintf(v.w, "%*s  %s\n", len(v.At.String()), "", strings.Join(below, "  "))
	fmt.Fprintf(v.w, "  %s\n", strings.Join(v.facts(i), ", "))
	v.kernelView(i, err, k, kerr)
}

// facts lists the properties of the instruction, in words.
func (v *View) facts(i *decoder.Inst) []string {
	list := []string{
		fmt.Sprintf("length %d", i.Length),
		fmt.Sprintf("map %v opcode %02x (%s, %s)", i.Encoding, i.Opcode, strings.ToUpper(i.Mnemonic()), i.Extension()),
		"class " + i.Class.String(),
	}
	if target, ok := i.Target(v.At); ok {
		list = append(list, "target "+target.String())
	}
	if i.HasModRM {
		list = append(list, fmt.Sprintf("mod %d reg %d rm %d", i.ModRM>>6, i.ModRM>>3&7, i.ModRM&7))
	}
	if i.HasSIB {
		list = append(list, fmt.Sprintf("scale %d index %d base %d", 1<<(i.SIB>>6), i.SIB>>3&7, i.SIB&7))
	}
	if i.DispLen > 0 {
		list = append(list, fmt.Sprintf("displacement %#x at %d", i.Disp, i.DispOff))
	}
	if i.RIPRelative {
		list = append(list, "RIP-relative: "+v.At.Add(int64(i.Length)+int64(i.Disp)).String())
	}
	if i.ImmLen > 0 {
		list = append(list, fmt.Sprintf("immediate %#x at %d", i.Imm(), i.ImmOff))
	}
	return list
}

// kernelView prints the reading of the same bytes by the kernel's decoder.
func (v *View) kernelView(i *decoder.Inst, err error, k *decoder.Kernel, kerr error) {
	if kerr != nil {
		fmt.Fprintf(v.w, "  kernel: %v\n", kerr)
		return
	}
	text := fmt.Sprintf("length %d, opcode % x", k.Length, k.Opcode[:k.OpcodeLen])
	if err != nil || k.Length != i.Length {
		text = v.Style.Red(text)
	}
	switch {
	case k.IsRelativeJump():
		text += ", a relative jump to it"
	case k.IsIndirectJump():
		text += ", an indirect jump to it"
	}
	fmt.Fprintf(v.w, "  kernel: %s\n", text)
}
