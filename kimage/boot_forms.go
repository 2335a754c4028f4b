package kimage

import (
	"bytes"
	"cmp"
	"fmt"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/patch"
)

// patchForms describes what an image's kernel writes when it patches. They differ
// between releases; stable releases and vendors backport changes.
type patchForms struct {
	patch.Forms
	// callsAgain: static calls are written again once the return thunk is chosen (6.7 and later),
	// so that a tail call of nothing goes to it.
	callsAgain bool
	// rewritesCFI: the kernel is built for FineIBT, which it has where the processor has IBT.
	rewritesCFI bool
	fineIBT     *fineIBT
	// cfiNotTaken: the jump over the ud2 of a check of an indirect call becomes one that is not taken.
	cfiNotTaken bool
	// sealsCFI: with an ENDBR that nothing needs goes the function's hash (6.5 and later), and only
	// where a hash stands (6.15 and later).
	sealsCFI, sealsPreamblesOnly bool
}

// The facts that tell the forms.
const (
	factNops         = "text: no-operations"
	factAlternatives = "text: alternatives"
	factJoinedJumps  = "text: jumps over no-operations"
	factRetpolines   = "text: retpolines"
	factIndirect     = "text: indirect branches"
	factReturnThunk  = "text: return thunk"
	factZero         = "text: static call of zero"
	factTailCalls    = "text: tail calls of nothing"
	factCFI          = "text: checks of indirect calls"
	factCFIMode      = "text: who checks indirect calls"
)

// The values of these facts.
const (
	nopsByCPU        = "by processor"
	wholeRelocated   = "each instruction is relocated"
	callsRelocated   = "a lone call or jmp is relocated"
	jumpsJoined      = "joined"
	jumpsStay        = "stay"
	filledByNops     = "filled by no-operations"
	filledByInt3     = "filled by no-operations, jumps by an int3 first"
	filledByPrefixes = "calls filled by prefixes, jumps by int3"
	tailCallsReturn  = "plain returns"
	tailCallsByThunk = "by the return thunk"
	cfiStays         = "stay"
	cfiFallsThrough  = "a jump that is not taken"
	cfiByCallees     = "FineIBT"
	cfiChosen        = "callees, where the processor has IBT"
	cfiFixed         = "callers"
)

// forms decides them by the image's data and code, then by its release.
func (p *bootPatcher) decideForms() {
	b := p.img.banner()
	f := &p.forms
	release := func(yes bool, on, off string) evidence.Witness {
		if yes {
			off = on
		}
		return evidence.Says(off, "release "+cmp.Or(b.Release, "not known"), evidence.Dated)
	}

	_, p.early = p.img.symbolAddr("arch_init_ideal_nops") // a function: data may have no symbols
	table, where := nopTable(inside{p.img})
	switch {
	case p.early:
		f.Nops = patch.NopsFor(true, false, k8Nops(p.cpu))
		p.say(factNops, evidence.Says(nopsByCPU, "symbol arch_init_ideal_nops", evidence.Symbolic))
	case table != nil:
		f.Nops = patch.Nops{Forms: table, Atomic5: table[5], JumpOver: len(table) > len(patch.Nopl[:9])}
		p.say(factNops, evidence.Says(fmt.Sprintf("of up to %d bytes", len(table)-1), "the table in "+where, evidence.Coded))
	default:
		long := b.Since(6, 5)
		f.Nops = patch.NopsFor(false, long, false)
		p.say(factNops, release(long, "of up to 11 bytes", "of up to 8 bytes"))
	}

	witnesses := []evidence.Witness{release(b.Since(6, 5), wholeRelocated, callsRelocated)}
	if name := p.img.anyOf("apply_relocation", "__apply_relocation", "text_poke_apply_relocation", "__optimize_nops"); name != "" {
		witnesses = append(witnesses, evidence.Says(wholeRelocated, "symbol "+name, evidence.Symbolic))
	} else if table != nil {
		// The longer no-operations came with it.
		value := callsRelocated
		if f.Nops.JumpOver {
			value = wholeRelocated
		}
		witnesses = append(witnesses, evidence.Says(value, fmt.Sprintf("no-operations of up to %d bytes", len(table)-1), evidence.Coded))
	}
	f.Relocates = p.say(factAlternatives, witnesses...) == wholeRelocated

	if f.Relocates {
		witnesses = []evidence.Witness{release(!b.Since(6, 10), jumpsJoined, jumpsStay)}
		switch {
		case p.img.partly("__optimize_nops") != "":
			witnesses = append(witnesses, evidence.Says(jumpsJoined, "symbol __optimize_nops", evidence.Symbolic))
		case p.img.partly("__apply_relocation") != "":
			witnesses = append(witnesses, evidence.Says(jumpsStay, "symbol __apply_relocation", evidence.Symbolic))
		}
		f.JoinsJumps = p.say(factJoinedJumps, witnesses...) == jumpsJoined
	}
	p.decideIndirect()
	p.decideZero()
	p.decideTailCalls()
	p.decideCFI()
}

// anyOf returns the first of the names that the image has, "" if it has none.
func (img *Image) anyOf(names ...string) string {
	for _, name := range names {
		if found := img.partly(name); found != "" {
			return found
		}
	}
	return ""
}

// say records a fact about the text, and returns what was decided.
func (p *bootPatcher) say(name string, witnesses ...evidence.Witness) string {
	f, _ := evidence.Decided(name, witnesses)
	p.img.facts.Set(f)
	return f.Value
}

// retpolinePatchers are the functions that write an indirect branch over a retpoline.
var retpolinePatchers = []string{"emit_indirect", "patch_retpoline", "apply_retpolines"}

// decideIndirect looks at how the image's patcher fills what is left after an indirect branch.
func (p *bootPatcher) decideIndirect() {
	if o := (tableOwner{img: p.img}); len(o.bytesOf(retpolineSites)) == 0 {
		return
	}
	b := p.img.banner()
	value := filledByNops
	if b.Since(6, 18) {
		value = filledByPrefixes
	} else if b.Since(5, 19) {
		value = filledByInt3
	}
	witnesses := []evidence.Witness{evidence.Says(value, "release "+cmp.Or(b.Release, "not known"), evidence.Dated)}
	if found := p.img.anyOf(retpolinePatchers...); found != "" && value != filledByPrefixes {
		value, how := filledByNops, " writes no int3"
		for _, name := range retpolinePatchers {
			if s := p.img.partly(name); s != "" && p.img.Moves(s, 0xcc) {
				value, how, found = filledByInt3, " writes an int3", s
			}
		}
		witnesses = append(witnesses, evidence.Says(value, found+how, evidence.Coded))
	}
	switch p.say(factIndirect, witnesses...) {
	case filledByPrefixes:
		p.forms.Prefixes = true
	case filledByInt3:
		p.forms.Int3AfterJump = true
	}
}

// Forms of a call of __static_call_return0: xor %eax,%eax with three segment prefixes (5.18 and
// later, and stable releases), and before xor %rax,%rax with two data-size ones.
var (
	xor5rax      = []byte{0x2e, 0x2e, 0x2e, 0x31, 0xc0}
	xor5raxOlder = []byte{0x66, 0x66, 0x48, 0x31, 0xc0}
)

// decideZero finds which of the two the image has.
func (p *bootPatcher) decideZero() {
	b := p.img.banner()
	p.forms.Zero = xor5rax
	if _, ok := p.img.symbolAddr("__static_call_return0"); !ok {
		return
	}
	if !b.Since(5, 18) && b.Release != "" {
		p.forms.Zero = xor5raxOlder
	}
	witnesses := []evidence.Witness{evidence.Says(fmt.Sprintf("% x", p.forms.Zero), "release "+cmp.Or(b.Release, "not known"), evidence.Dated)}
	if form, why := p.img.zeroForm(); form != nil {
		witnesses = append(witnesses, evidence.Says(fmt.Sprintf("% x", form), why, evidence.Coded))
	}
	if p.say(factZero, witnesses...) == fmt.Sprintf("% x", xor5raxOlder) {
		p.forms.Zero = xor5raxOlder
	} else {
		p.forms.Zero = xor5rax
	}
}

// decideTailCalls finds whether what patches returns has static calls written again. The function
// for that is older: from 6.2 to 6.6 only call depth tracking calls it, which no kernel chooses by
// itself.
func (p *bootPatcher) decideTailCalls() {
	const again, patcher = "static_call_force_reinit", "apply_returns"
	if _, ok := p.img.symbolAddr("__static_call_return0"); !ok {
		return
	}
	if _, ok := p.img.symbolAddr(compiledThunk); !ok {
		return // returns are plain ones, and apply_returns is empty
	}
	b := p.img.banner()
	value := tailCallsReturn
	if b.Since(6, 7) {
		value = tailCallsByThunk
	}
	witnesses := []evidence.Witness{evidence.Says(value, "release "+cmp.Or(b.Release, "not known"), evidence.Dated)}
	switch {
	case p.img.ReturnOf(patcher, again) != 0:
		witnesses = append(witnesses, evidence.Says(tailCallsByThunk, patcher+" calls "+again, evidence.Coded))
	case p.img.partly(patcher) != "" && p.img.partly(again) != "":
		witnesses = append(witnesses, evidence.Says(tailCallsReturn, patcher+" does not call "+again, evidence.Coded))
	}
	p.forms.callsAgain = p.say(factTailCalls, witnesses...) == tailCallsByThunk
}

// zeroForm searches the form by its name, in the code that compares text with it, and in the
// data, if exactly one of the two forms is there.
func (img *Image) zeroForm() (form []byte, why string) {
	known := [][]byte{xor5rax, xor5raxOlder}
	if at, ok := img.symbolAddr("xor5rax"); ok {
		for _, f := range known {
			if bytes.Equal(img.bytes(at, len(f)), f) {
				return f, "xor5rax"
			}
		}
	}
	for _, name := range []string{"__static_call_transform", "__static_call_validate", "arch_static_call_transform"} {
		for _, s := range img.Lookup(name) {
			code := img.bytes(s.Addr, int(min(s.Size, opened.MaxSearched)))
			for _, f := range known {
				if bytes.Contains(code, f[:4]) {
					return f, name + " compares with it"
				}
			}
		}
	}
	if s := img.section(".rodata"); s != nil {
		in := [2]bool{bytes.Contains(s.Data, xor5rax), bytes.Contains(s.Data, xor5raxOlder)}
		for i, f := range known {
			if in[i] && !in[1-i] {
				return f, "its bytes in " + s.Name
			}
		}
	}
	return nil, ""
}

// bytesOf is the content of one of the owner's tables.
func (o tableOwner) bytesOf(t *tableName) []byte {
	_, data := o.table(t)
	return data
}

// sayFeatures records what was decided about the processor that depends on the image.
func (p *bootPatcher) sayFeatures() {
	if len(tableOwner{img: p.img}.bytesOf(retpolineSites)) > 0 {
		way := "stay"
		switch has := p.feats.has; {
		case p.lfenced():
			way = "an lfence and an indirect branch"
		case !has[p.feats.retpoline]:
			way = "indirect branches"
		}
		f, from := p.feats.retpoline, evidence.Dated
		why := fmt.Sprintf("feature %d*32+%d", f/32, f%32)
		if _, ok := p.img.thunkFeature(); ok {
			why, from = why+", on which the thunks' alternatives depend", evidence.Coded
		}
		p.say(factRetpolines, evidence.Says(way, why, from))
	}
	if _, ok := p.img.symbolAddr(compiledThunk); ok {
		p.say(factReturnThunk, evidence.Says(cmp.Or(p.feats.returnThunk, "none"), "the thunks that the image has, for the processor's bugs", evidence.Symbolic))
	}
}
