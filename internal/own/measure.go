package own

import (
	"errors"
	"fmt"

	"kprobelab/kimage"
)

// Version is the version of the probe set: answers of different versions are not comparable.
const Version = 5

// measureBudget is the budget of a question here, all of which are about a function
// of a few hundred instructions.
const measureBudget = 3_000_000

// asked are the functions that the answers depend on first of all.
var asked = []string{
	"insn_decode", "insn_init", "insn_get_length", "arch_adjust_kprobe_addr", "is_cfi_preamble_symbol", "can_probe",
	"can_boost", "can_optimize", "kprobe_int3_handler", "kprobe_emulate_jcc", "kprobe_emulate_call", "register_kprobe", "register_kretprobe", contextFlags, analyzeUprobe,
}

// probe computes fields of the profile. It leaves out fields that the answers do not
// decide, and fails with ErrNotThere if the image cannot answer.
type probe func(*measuring) error

// measuring collects the answers.
type measuring struct {
	*Kernel
	*scratch
	answers []kimage.Answer
}

// Measure computes each field of the image's profile that its own functions decide. An
// image without these functions gives no answers; a function that does not answer
// leaves its fields out, and is in the error with the others.
func Measure(img *kimage.Image) ([]kimage.Answer, error) {
	if !askable(img) {
		return nil, nil
	}
	k, err := openFor(img, measureBudget, 0)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	m := &measuring{Kernel: k}
	if m.scratch, err = k.newScratch(); err != nil && !isNotThere(err) {
		return nil, err
	}
	var failed []error
	for _, p := range probes {
		if err := p(m); err != nil && !isNotThere(err) {
			failed = append(failed, err)
		}
	}
	return m.answers, errors.Join(failed...)
}

func isNotThere(err error) bool { return errors.Is(err, ErrNotThere) }

// askable reports whether there is anything to ask, which is cheaper to know than
// a machine is to make.
func askable(img *kimage.Image) bool {
	return len(img.Lookup("can_probe")) > 0 || len(img.Lookup("can_boost")) > 0
}

// probes are all probes, in the order of the profile's fields.
var probes = []probe{
	(*measuring).decoder, (*measuring).resolve, (*measuring).preamble,
	(*measuring).boundary, (*measuring).boost, (*measuring).hit, (*measuring).region, (*measuring).register, (*measuring).resched,
	(*measuring).uprobes,
}

func (m *measuring) say(field string, value any, evidence string, args ...any) {
	m.answers = append(m.answers, kimage.Answer{Field: field, Value: fmt.Sprint(value), Evidence: fmt.Sprintf(evidence, args...)})
}

// decoder reads instructions that another release reads otherwise.
func (m *measuring) decoder() error {
	for _, c := range []struct {
		field   string
		code    []byte
		lengths map[int]bool
	}{
		{"Decoder.EVEX", []byte{0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1}, map[int]bool{6: true, 2: false, 1: false}},
		{"Decoder.EmulatePrefix", []byte{0x0f, 0x0b, 'x', 'e', 'n', 0x0f, 0xa2}, map[int]bool{7: true, 2: false}},
		{"Decoder.AMX", []byte{0xf3, 0x0f, 0x3a, 0xf0, 0xc0, 0x00}, map[int]bool{6: true, 4: false}}, // hreset
		{"Decoder.PushIz", []byte{0x66, 0x68, 0, 0, 0, 0}, map[int]bool{4: true, 6: false}},
		{"Decoder.REX2", []byte{0xd5, 0x00, 0x90}, map[int]bool{3: true, 2: false, 1: false}},
		{"Decoder.INV64", []byte{0x9a, 0, 0, 0, 0, 0, 0}, map[int]bool{1: true, 7: false}},
		{"Decoder.XOP", []byte{0x8f, 0xe8, 0x78, 0xc0, 0xc0, 0x01}, map[int]bool{6: true, 2: false}},
	} {
		i, err := m.Decode(c.code)
		if err != nil {
			return err
		}
		if on, ok := c.lengths[i.Length]; ok {
			m.say(c.field, on, "its decoder finds %d bytes in % x", i.Length, c.code)
		}
	}
	if !m.Has("insn_decode") {
		m.say("Decoder.Errors", false, "it has insn_get_length, but no insn_decode")
		return nil
	}
	i, err := m.Decode([]byte{0x0f, 0x38}) // truncated
	if err == nil {
		m.say("Decoder.Errors", i.Bad, "insn_decode of % x", []byte{0x0f, 0x38})
	}
	return err
}

// resolve asks where a probe at the entry of a function with an ENDBR is placed.
func (m *measuring) resolve() error {
	if m.scratch == nil {
		return ErrNotThere
	}
	for _, c := range []struct {
		field string
		code  []byte
	}{
		{"Resolve.SkipENDBR", []byte{0xf3, 0x0f, 0x1e, 0xfa}},
		{"Resolve.NoplPoison", []byte{0x0f, 0x1f, 0x40, 0xd6}},
	} {
		if err := m.write(c.code, nil); err != nil {
			return err
		}
		at, _, err := m.AdjustAddr(m.Addr, 0)
		if err != nil {
			return err
		}
		m.say(c.field, at == m.Addr+4, "arch_adjust_kprobe_addr goes to +%d of a function that begins with % x", at.Sub(m.Addr), c.code)
	}
	return nil
}

// boundary writes functions and tests which addresses in them are accepted.
func (m *measuring) boundary() error {
	if m.scratch == nil {
		return ErrNotThere
	}
	start, err := m.canProbe(longNop, 0)
	middle, err2 := m.canProbe(longNop, 1)
	next, err3 := m.canProbe(longNop, int64(len(longNop)))
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	if !start || middle || !next {
		return fmt.Errorf("can_probe accepts the middle of a nop, or refuses its ends: %w", ErrNonsense)
	}
	m.say("Check.Boundary", true, "can_probe of the middle of a nop")
	padding, err := m.canProbe([]byte{0xcc, 0xcc}, 2)
	if err != nil {
		return err
	}
	m.say("Check.PaddingInt3", padding, "can_probe of a nop after two int3")
	refused, asked := 0, 0
	for _, code := range [][]byte{{0x0f, 0x0b}, {0x0f, 0xb9, 0xc0}, {0x0f, 0xff, 0xc0}, {0xcc}, {0xcd, 0x80}, {0xf1}} {
		ok, err := m.canProbe(code, 0)
		if err != nil {
			return err
		}
		if asked++; !ok {
			refused++
		}
	}
	if refused == 0 || refused == asked {
		m.say("Check.ExceptionInsn", refused > 0, "can_probe of ud2, ud1, ud0, int3, int n, int1")
	}
	return nil
}

// region asks can_optimize about functions with int3 and indirect jumps in them.
func (m *measuring) region() error {
	if m.scratch == nil {
		return ErrNotThere
	}
	plain, err := m.canOptimize(nil, nil)
	if err != nil {
		return err
	}
	if !plain {
		return fmt.Errorf("can_optimize refuses a function of nops: %w", ErrNonsense)
	}
	inside, err := m.canOptimize([]byte{0xcc}, nil)
	tail, err2 := m.canOptimize(nil, []byte{0xcc, 0xcc, 0xcc, 0xcc})
	indirect, err3 := m.canOptimize([]byte{0xff, 0xe0}, nil)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	m.say("Optimize.Int3Blocks", !inside, "can_optimize of a function with an int3 in it")
	m.say("Optimize.Int3Tail", !inside && tail, "can_optimize of a function with int3 at its end")
	m.say("Optimize.IndirectJumps", !indirect, "can_optimize of a function with jmpq *%%rax in it")
	if thunk := only(m.img.Lookup("__x86_indirect_thunk_rax")); thunk != 0 {
		to, err := m.canOptimize(m.jump(2*int64(len(longNop)), thunk), nil)
		if err != nil {
			return err
		}
		m.say("Optimize.ThunkRange", !to, "can_optimize of a function that jumps to __x86_indirect_thunk_rax")
	}
	return nil
}
