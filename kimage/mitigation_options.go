package kimage

import (
	"bytes"
	"fmt"
	"strings"

	"kprobelab/decoder"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// A kernel can be built so that it does nothing about a bug unless its command line says so, or
// without the code for it. The image itself tells most of these options: by a variable's first
// value, which is the default, or by the presence of code.

// mitigationOption is an option of the mitigations.
type mitigationOption struct {
	// name is the option's, and older what it was called to 6.8.
	name, older string
	// look reads the image.
	look func(*Image) (on bool, why string, ok bool)
	// symbolic: a symbol tells, not data or code.
	symbolic bool
}

// The options' names.
const (
	optionMitigations = "CONFIG_CPU_MITIGATIONS"
	optionPTI         = "CONFIG_MITIGATION_PAGE_TABLE_ISOLATION"
	optionRetpoline   = "CONFIG_MITIGATION_RETPOLINE"
	optionUnret       = "CONFIG_MITIGATION_UNRET_ENTRY"
	optionIBPBEntry   = "CONFIG_MITIGATION_IBPB_ENTRY"
	optionIBRSEntry   = "CONFIG_MITIGATION_IBRS_ENTRY"
	optionSRSO        = "CONFIG_MITIGATION_SRSO"
	optionITS         = "CONFIG_MITIGATION_ITS"
	optionRetbleed    = "CONFIG_MITIGATION_RETBLEED"
	optionMDS         = "CONFIG_MITIGATION_MDS"
	optionTAA         = "CONFIG_MITIGATION_TAA"
	optionMMIO        = "CONFIG_MITIGATION_MMIO_STALE_DATA"
	optionRFDS        = "CONFIG_MITIGATION_RFDS"
	optionTSA         = "CONFIG_MITIGATION_TSA"
	optionBHI         = "CONFIG_MITIGATION_SPECTRE_BHI"
	optionSpectreV1   = "CONFIG_MITIGATION_SPECTRE_V1"
	optionSpectreV2   = "CONFIG_MITIGATION_SPECTRE_V2"
)

var mitigationOptionList = []mitigationOption{
	{optionMitigations, "", (*Image).mitigatesUnasked, false},
	{optionPTI, "CONFIG_PAGE_TABLE_ISOLATION", compiled("pti_init", "pti_check_boottime_disable", "pti_finalize"), true},
	{optionRetpoline, "CONFIG_RETPOLINE", compiled("__x86_indirect_thunk_rax", "__x86_indirect_thunk_array"), true},
	{optionUnret, "CONFIG_CPU_UNRET_ENTRY", (*Image).untrains, false},
	{optionIBPBEntry, "CONFIG_CPU_IBPB_ENTRY", nil, false},
	{optionIBRSEntry, "CONFIG_CPU_IBRS_ENTRY", (*Image).restrictsAtEntry, false},
	{optionSRSO, "CONFIG_CPU_SRSO", compiled("srso_return_thunk", "srso_alias_return_thunk", "srso_safe_ret", "srso_untrain_ret"), true},
	{optionITS, "", compiled("__x86_indirect_its_thunk_array", "__x86_indirect_its_thunk_rax"), true},
	{optionRetbleed, "", beginsWith("retbleed_cmd", "retbleed_mitigation"), false},
	{optionMDS, "", beginsWith("mds_mitigation"), false},
	{optionTAA, "", beginsWith("taa_mitigation"), false},
	{optionMMIO, "", beginsWith("mmio_mitigation"), false},
	{optionRFDS, "", beginsWith("rfds_mitigation"), false},
	{optionTSA, "", beginsWith("tsa_mitigation"), false},
	{optionBHI, "", beginsWith("bhi_mitigation"), false},
	{optionSpectreV1, "", beginsWith("spectre_v1_mitigation"), false},
	{optionSpectreV2, "", (*Image).choosesSpectreV2, false},
}

// compiled looks for symbols of which one is there if the option is on.
func compiled(symbols ...string) func(*Image) (bool, string, bool) {
	return func(img *Image) (bool, string, bool) {
		for _, name := range symbols {
			if _, ok := img.symbolAddr(name); ok {
				return true, "symbol " + name, true
			}
		}
		return false, "no symbol " + symbols[0], true
	}
}

// beginsWith reads the variable with the default of a mitigation: 0 is nothing. The second name is
// the variable's from 6.17 on. Clang makes a variable that only ever has two values a flag, which
// begins with 0 in any case: a 0 of its kernels tells nothing.
func beginsWith(names ...string) func(*Image) (bool, string, bool) {
	return func(img *Image) (bool, string, bool) {
		b := img.banner()
		for i, name := range names {
			at, ok := img.symbolAddr(name)
			v := img.bytes(at, 4)
			if !ok || v == nil || i > 0 && !b.Since(6, 17) {
				continue
			}
			if le.Uint32(v) == 0 && b.ByClang() {
				return false, "", false
			}
			return le.Uint32(v) != 0, fmt.Sprintf("%s begins with %d", name, le.Uint32(v)), true
		}
		return false, "", false
	}
}

// mitigatesUnasked: cpu_mitigations begins with 0 in a kernel that is built without mitigations
// (kernel/cpu.c; 5.2 and later have the variable).
func (img *Image) mitigatesUnasked() (on bool, why string, ok bool) {
	const name = "cpu_mitigations"
	at, ok := img.symbolAddr(name)
	if !ok && img.bounds.onlyText {
		at, ok = newUnnamed(img).tested("cpu_mitigations_off")
	}
	v := img.bytes(at, 4)
	if !ok || v == nil {
		return false, "", false
	}
	return le.Uint32(v) != 0, fmt.Sprintf("%s begins with %d", name, le.Uint32(v)), true
}

// untrains: the entry code calls the function that untrains returns.
func (img *Image) untrains() (on bool, why string, ok bool) {
	list, _ := tableOwner{img: img}.alternatives()
	if len(list) == 0 {
		return false, "", false
	}
	for _, a := range list {
		if b := img.bytes(a.repl, a.replLen); a.feature == featUnret && len(b) >= 5 && b[0] == x86.Call32 {
			return true, "an alternative calls the function that untrains returns", true
		}
	}
	return false, "no alternative calls the function that untrains returns", true
}

// restrictsAtEntry: the entry code has a jump over what restricts indirect branches, which is
// replaced by nothing.
func (img *Image) restrictsAtEntry() (on bool, why string, ok bool) {
	list, _ := tableOwner{img: img}.alternatives()
	if len(list) == 0 || img.retpolineFeature() == featKernelIBRS {
		return false, "", false
	}
	for _, a := range list {
		if b := img.bytes(a.addr, a.addrLen); a.feature == featKernelIBRS && a.replLen == 0 && len(b) > 0 && b[0] == 0xeb {
			return true, "alternatives restrict branches at entry", true
		}
	}
	return false, "no alternative restricts branches at entry", true
}

// choosesSpectreV2: the default for spectre_v2, without a word on the command line. To 6.10 every
// kernel does something.
func (img *Image) choosesSpectreV2() (on bool, why string, ok bool) {
	if b := img.banner(); !b.Since(6, 11) {
		return false, "", false
	} else if b.Since(6, 17) {
		if on, why, ok = beginsWith("spectre_v2_cmd")(img); ok {
			return on, why, ok
		}
	}
	for _, name := range []string{"spectre_v2_parse_cmdline", "spectre_v2_select_mitigation", "cpu_select_mitigations"} {
		for _, s := range img.Lookup(name) {
			if img.choosesNothing(&s) {
				return false, "the default of " + name, true
			}
		}
	}
	return false, "", false
}

// mitigationOptions decides them, and records what was found.
func (img *Image) mitigationOptions(e *infer.Evidence) {
	for i := range mitigationOptionList {
		o := &mitigationOptionList[i]
		witnesses := img.leftOut(o)
		if o.look != nil && (witnesses == nil || !o.symbolic) { // a symbol may be there although its option is off
			if on, why, ok := o.look(img); ok && (on || !o.symbolic || e.Whole()) {
				from := evidence.Coded
				if o.symbolic {
					from = evidence.Symbolic
				}
				witnesses = append(witnesses, evidence.Says(yesOrNo(on), why, from))
			}
		}
		for _, name := range []string{o.name, o.older} {
			if v, ok := e.Config.Options[name]; ok {
				witnesses = append(witnesses, evidence.Says(v, name+"="+v+" in "+e.Config.From, evidence.Configured))
			}
		}
		if f, ok := evidence.Decided(o.name, witnesses); ok {
			img.facts.Add(f)
		}
	}
}

// leftOut looks for the message with which a kernel answers a command line that asks for a mitigation
// that was not compiled in. Kernels that have the mitigation do not have the message.
func (img *Image) leftOut(o *mitigationOption) []evidence.Witness {
	for _, name := range []string{o.name, o.older} {
		option, ok := strings.CutPrefix(name, "CONFIG_")
		if text := "kernel not compiled with " + option; ok && img.says(text+".\n") {
			return []evidence.Witness{evidence.Says(yesOrNo(false), fmt.Sprintf("%q in .rodata", text), evidence.Coded)}
		}
	}
	return nil
}

func yesOrNo(on bool) string {
	if on {
		return "y"
	}
	return "n"
}

// without reports whether the kernel is built so that it does not do what the option is for.
func (img *Image) without(option string) bool { return img.facts.Value(option) == "n" }

// beforeCall bounds how far before a call, in bytes, its arguments are loaded.
const beforeCall = 48

// choosesNothing: if cmdline_find_option finds no "spectre_v2", the function continues
// at the same place as without mitigations. Otherwise it would continue at two places,
// or at one with another number.
func (img *Image) choosesNothing(s *Symbol) bool {
	find, ok := img.symbolAddr("cmdline_find_option")
	if !ok {
		return false
	}
	code := img.bytes(s.Addr, int(min(s.Size, opened.MaxSearched)))
	for i := beforeCall; i+5 <= len(code); i++ {
		call := s.Addr.Add(int64(i))
		if code[i] != x86.Call32 || opened.Rel32(call+5, code[i+1:]) != find || !img.loads(code[i-beforeCall:i], "spectre_v2") {
			continue
		}
		without, from, ok := lastUnless(code[i-beforeCall:i], call-beforeCall)
		return ok && img.isWhere(without, from)
	}
	return false
}

// loads: the code puts the address of that text into %rsi (mov $text,%rsi).
func (img *Image) loads(code []byte, text string) bool {
	mov := []byte{0x48, 0xc7, 0xc6}
	i := bytes.LastIndex(code, mov)
	if i < 0 || i+7 > len(code) {
		return false
	}
	return img.cString(x86.Addr(int32(le.Uint32(code[i+3:])))) == text
}

// lastUnless returns the target of the last test %al,%al; jne of the code at an
// address, and the address after it.
func lastUnless(code []byte, at x86.Addr) (target, next x86.Addr, ok bool) {
	i := bytes.LastIndex(code, []byte{0x84, 0xc0})
	if i < 0 {
		return 0, 0, false
	}
	code, at = code[i+2:], at.Add(int64(i)+2)
	switch {
	case len(code) >= 2 && code[0] == 0x75:
		return at.Add(2 + int64(int8(code[1]))), at + 2, true
	case len(code) >= 6 && code[0] == 0x0f && code[1] == 0x85:
		return opened.Rel32(at+6, code[2:]), at + 6, true
	}
	return 0, 0, false
}

// isWhere: the first js from an address on goes there too, and no number 1, which
// means "choose", is loaded before it.
func (img *Image) isWhere(target, at x86.Addr) bool {
	for range opened.MaxAfter {
		b := img.bytes(at, decoder.MaxInsnSize)
		i, err := decoder.Decode(b)
		if err != nil || b == nil {
			return false
		}
		next := at.Add(int64(i.Length))
		op := b
		if op[0] == 0x41 { // REX.B: a register from r8 on
			op = op[1:]
		}
		switch {
		case b[0] == 0x78:
			return next.Add(int64(int8(b[1]))) == target
		case b[0] == 0x0f && b[1] == 0x88:
			return opened.Rel32(next, b[2:]) == target
		case op[0]&^7 == 0xb8 && le.Uint32(op[1:]) == 1:
			return false
		}
		at = next
	}
	return false
}
