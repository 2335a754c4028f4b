package kimage

import (
	"fmt"
	"strings"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// preemptModels are the models of preemption by the kernel's numbers (kernel/sched,
// preempt_dynamic_none and its kin).
var preemptModels = []string{preemptNone, preemptVoluntary, preemptFull, preemptLazy}

// configuredModels are the models by the options that choose them.
var configuredModels = []struct{ option, model string }{
	{"CONFIG_PREEMPT_NONE", preemptNone}, {"CONFIG_PREEMPT_VOLUNTARY", preemptVoluntary},
	{"CONFIG_PREEMPT", preemptFull}, {"CONFIG_PREEMPT_LAZY", preemptLazy},
}

// preemptModel decides the model if the image or its configuration tells it.
func (e *evidence) preemptModel() {
	witnesses := e.img.shownModel()
	var given Witness
	for _, c := range configuredModels {
		if e.config[c.option] == "y" {
			given = Witness{c.model, c.option + "=y in " + e.configFrom, Configured}
			witnesses = append(witnesses, given)
			break
		}
	}
	f, ok := decidedFact(factPreemptModel, witnesses)
	if !ok {
		return
	}
	if given.Value != "" {
		f = e.askedFor(f, given)
	}
	e.img.facts = append(e.img.facts, f)
}

// shownModel returns the model by the image: by the code that chooses it, or by its banner. A
// real-time kernel has no such model, and takes lazy if the image knows lazy, otherwise full.
func (img *Image) shownModel() (list []Witness) {
	if model, why := img.codedPreemptModel(); model != "" {
		list = append(list, Witness{model, why, Coded})
	}
	if b := img.findBanner(); b.preempt() == "PREEMPT_RT" {
		w := Witness{preemptFull, "PREEMPT_RT in the " + b.from, Coded}
		if _, lazy := img.symbolAddr(knowsLazy); lazy {
			w.Value, w.Evidence = preemptLazy, w.Evidence+", and symbol "+knowsLazy
		}
		list = append(list, w)
	}
	return list
}

// knowsLazy is a symbol of kernels that have the lazy model.
const knowsLazy = "sk_dynamic_preempt_lazy"

// preemptModel is the model that was decided. Where nothing told, most distributions choose
// voluntary, and lazy from 6.16 on.
func (img *Image) preemptModel() string {
	if m := img.fact(factPreemptModel); m != "" {
		return m
	}
	guess := Witness{preemptVoluntary, "the default with PREEMPT_DYNAMIC; a configuration would tell", Dated}
	b := img.findBanner()
	if _, lazy := img.symbolAddr(knowsLazy); lazy && b.since(6, 16) {
		guess.Value, guess.Evidence = preemptLazy, "the default from 6.16 on, and symbol "+knowsLazy+"; a configuration would tell"
	}
	f, _ := decidedFact(factPreemptModel, append(img.shownModel(), guess))
	f.Against = nil // a guess disputes nothing
	img.facts = append(img.facts, f)
	return f.Value
}

// maxAfter bounds how many instructions are read to find what follows a comparison.
const maxAfter = 24

// codedPreemptModel returns the model that a kernel with PREEMPT_DYNAMIC begins with,
// by the code of sched_init: if no model was chosen (the variable is -1), it calls
// sched_dynamic_update with the built model's number, or writes that into the variable.
// It returns "" if the code does not tell.
func (img *Image) codedPreemptModel() (model, why string) {
	for _, name := range []string{"sched_init", "preempt_dynamic_init"} { // the second is mostly inlined
		for _, s := range img.Lookup(name) {
			code := img.bytes(s.Addr, int(min(s.Size, maxSearched)))
			for i := 0; i+7 <= len(code); i++ {
				if code[i] != 0x83 || code[i+1] != 0x3d || code[i+6] != 0xff { // cmpl $-1,variable(%rip)
					continue
				}
				variable := rel32(s.Addr.Add(int64(i)+7), code[i+2:])
				if n, ok := img.chosenModel(s.Addr.Add(int64(i)+7), variable); ok {
					return preemptModels[n], fmt.Sprintf("the first choice of %s", name)
				}
			}
		}
	}
	return "", ""
}

// chosenModel returns the number that the code chooses if the variable is -1; the code
// from at on follows that comparison.
func (img *Image) chosenModel(at, variable x86.Addr) (number int, ok bool) {
	equal := false // the comparison's branch is passed
	number = -1
	for range maxAfter {
		b := img.bytes(at, decoder.MaxInsnSize)
		i, err := decoder.Decode(b)
		if err != nil || b == nil {
			return 0, false
		}
		next := at.Add(int64(i.Length))
		switch {
		case !equal && b[0] == 0x75: // jne: goes on below
			equal = true
		case !equal && b[0] == 0x74:
			equal, next = true, next.Add(int64(int8(b[1])))
		case !equal && b[0] == 0x0f && b[1] == 0x84:
			equal, next = true, rel32(next, b[2:])
		case !equal && b[0] == 0x0f && b[1] == 0x85:
			equal = true
		case !equal:
		case b[0] == 0xbf: // mov $number,%edi
			number = int(le.Uint32(b[1:]))
		case b[0] == 0x31 && b[1] == 0xff: // xor %edi,%edi
			number = 0
		case b[0] == 0xc7 && b[1] == 0x05 && rel32(next, b[2:]) == variable: // movl $number,variable(%rip)
			return model(int(le.Uint32(b[6:])))
		case b[0] == x86.Call32:
			if s, found := img.SymbolAt(rel32(next, b[1:])); found && strings.Contains(s.Name, "sched_dynamic_update") {
				return model(number)
			}
		}
		at = next
	}
	return 0, false
}

func model(number int) (int, bool) { return number, number >= 0 && number < len(preemptModels) }
