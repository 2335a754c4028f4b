package infer

import (
	"fmt"
	"strings"

	"kprobelab/decoder"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// The models of preemption that PREEMPT_DYNAMIC can begin with, and the name of the
// fact with the model.
const (
	FactPreemptModel = "preemption model"
	PreemptNone      = "none"
	PreemptVoluntary = "voluntary"
	PreemptFull      = "full"
	PreemptLazy      = "lazy"
)

// preemptModels are the models of preemption by the kernel's numbers (kernel/sched,
// preempt_dynamic_none and its kin).
var preemptModels = []string{PreemptNone, PreemptVoluntary, PreemptFull, PreemptLazy}

// configuredModels are the models by the options that choose them.
var configuredModels = []struct{ option, model string }{
	{"CONFIG_PREEMPT_NONE", PreemptNone}, {"CONFIG_PREEMPT_VOLUNTARY", PreemptVoluntary},
	{"CONFIG_PREEMPT", PreemptFull}, {"CONFIG_PREEMPT_LAZY", PreemptLazy},
}

// PreemptModel decides the model if the image or its configuration tells it.
func (e *Evidence) PreemptModel() {
	witnesses := shownModel(e.img)
	var given evidence.Witness
	for _, c := range configuredModels {
		if e.Config.Options[c.option] == "y" {
			given = evidence.Says(c.model, c.option+"=y in "+e.Config.From, evidence.Configured)
			witnesses = append(witnesses, given)
			break
		}
	}
	f, ok := evidence.Decided(FactPreemptModel, witnesses)
	if !ok {
		return
	}
	if given.Value != "" {
		f = e.askedFor(f, given)
	}
	e.facts.Add(f)
}

// shownModel returns the model by the image: by the code that chooses it, or by its banner. A
// real-time kernel has no such model, and takes lazy if the image knows lazy, otherwise full.
func shownModel(img opened.Image) (list []evidence.Witness) {
	if model, why := codedPreemptModel(img); model != "" {
		list = append(list, evidence.Says(model, why, evidence.Coded))
	}
	if b := FindBanner(img); b.Preempt() == "PREEMPT_RT" {
		w := evidence.Says(PreemptFull, "PREEMPT_RT in the "+b.From, evidence.Coded)
		if _, lazy := img.SymbolAddr(knowsLazy); lazy {
			w.Value, w.Evidence = PreemptLazy, w.Evidence+", and symbol "+knowsLazy
		}
		list = append(list, w)
	}
	return list
}

// knowsLazy is a symbol of kernels that have the lazy model.
const knowsLazy = "sk_dynamic_preempt_lazy"

// PreemptModel is the model that was decided. Where nothing told, most distributions choose
// voluntary, and lazy from 6.16 on.
func PreemptModel(img opened.Image, facts *evidence.Facts) string {
	if m := facts.Value(FactPreemptModel); m != "" {
		return m
	}
	guess := evidence.Says(PreemptVoluntary, "the default with PREEMPT_DYNAMIC; a configuration would tell", evidence.Dated)
	b := FindBanner(img)
	if _, lazy := img.SymbolAddr(knowsLazy); lazy && b.Since(6, 16) {
		guess.Value, guess.Evidence = PreemptLazy, "the default from 6.16 on, and symbol "+knowsLazy+"; a configuration would tell"
	}
	f, _ := evidence.Decided(FactPreemptModel, append(shownModel(img), guess))
	f.Against = nil // a guess disputes nothing
	facts.Add(f)
	return f.Value
}

// codedPreemptModel returns the model that a kernel with PREEMPT_DYNAMIC begins with,
// by the code of sched_init: if no model was chosen (the variable is -1), it calls
// sched_dynamic_update with the built model's number, or writes that into the variable.
// It returns "" if the code does not tell.
func codedPreemptModel(img opened.Image) (model, why string) {
	for _, name := range []string{"sched_init", "preempt_dynamic_init"} { // the second is mostly inlined
		for _, s := range img.Lookup(name) {
			code := img.Bytes(s.Addr, int(min(s.Size, opened.MaxSearched)))
			for i := 0; i+7 <= len(code); i++ {
				if code[i] != 0x83 || code[i+1] != 0x3d || code[i+6] != 0xff { // cmpl $-1,variable(%rip)
					continue
				}
				variable := opened.Rel32(s.Addr.Add(int64(i)+7), code[i+2:])
				if n, ok := chosenModel(img, s.Addr.Add(int64(i)+7), variable); ok {
					return preemptModels[n], fmt.Sprintf("the first choice of %s", name)
				}
			}
		}
	}
	return "", ""
}

// chosenModel returns the number that the code chooses if the variable is -1; the code
// from at on follows that comparison.
func chosenModel(img opened.Image, at, variable x86.Addr) (number int, ok bool) {
	equal := false // the comparison's branch is passed
	number = -1
	for range opened.MaxAfter {
		b := img.Bytes(at, decoder.MaxInsnSize)
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
			equal, next = true, opened.Rel32(next, b[2:])
		case !equal && b[0] == 0x0f && b[1] == 0x85:
			equal = true
		case !equal:
		case b[0] == 0xbf: // mov $number,%edi
			number = int(le.Uint32(b[1:]))
		case b[0] == 0x31 && b[1] == 0xff: // xor %edi,%edi
			number = 0
		case b[0] == 0xc7 && b[1] == 0x05 && opened.Rel32(next, b[2:]) == variable: // movl $number,variable(%rip)
			return model(int(le.Uint32(b[6:])))
		case b[0] == x86.Call32:
			if s, found := img.SymbolAt(opened.Rel32(next, b[1:])); found && strings.Contains(s.Name, "sched_dynamic_update") {
				return model(number)
			}
		}
		at = next
	}
	return 0, false
}

func model(number int) (int, bool) { return number, number >= 0 && number < len(preemptModels) }
