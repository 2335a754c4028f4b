package kimage

import (
	"bytes"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/patch"
	"kprobelab/kimage/internal/processor"
	"kprobelab/x86"
)

// bootPatcher does to an image's text what booting does, in the kernel's order.
// What it writes depends on the release, which the image tells, and on the
// processor.
type bootPatcher struct {
	img *Image
	cpu *processor.Model
	// feats are the features, bugs and mitigations that the kernel sees or chooses on cpu.
	feats *cpuFeatures
	forms patchForms
	// early is a release to 5.12: it picks nops by processor, and writes
	// native instructions over paravirt calls.
	early bool
}

// bootPatch patches the image's text as boot leaves it. Text that live text
// has replaced stays as it is; init text is patched in any case.
func (img *Image) bootPatch() error {
	p, err := img.newBootPatcher()
	if err != nil {
		return err
	}
	img.cpu = p.cpu
	if img.opts.NoBoot {
		return nil
	}
	img.facts.Add(p.cpuFact())
	keep := img.keepLive()
	p.patch(tableOwner{img: img})
	p.updateStaticCalls()
	p.turnKeys()
	p.setReturnThunk()
	p.runtimeConstants()
	keep()
	return nil
}

// cpuFact names the processor, on which the text and so some answers depend.
func (p *bootPatcher) cpuFact() evidence.Fact {
	if asked := p.img.opts.CPU; asked != "" {
		return evidence.Fact{Name: "CPU", Value: asked, Evidence: "asked for; the boot-time text is made for it"}
	}
	return evidence.Fact{Name: "CPU", Value: p.cpu.Name, Evidence: "the default; the boot-time text is made for it"}
}

// keepLive saves the live text, and returns a function that puts it back: the
// kernel that it comes from has patched it already.
func (img *Image) keepLive() func() {
	type piece struct{ live, saved []byte }
	var pieces []piece
	for _, s := range img.sections {
		r := s.Range()
		if !r.Overlaps(img.live) {
			continue
		}
		from := max(img.live.Start, r.Start)
		to := min(img.live.End, s.Addr+x86.Addr(len(s.Data)))
		if from < to {
			live := s.Data[from-s.Addr : to-s.Addr]
			pieces = append(pieces, piece{live, bytes.Clone(live)})
		}
	}
	return func() {
		for _, p := range pieces {
			copy(p.live, p.saved)
		}
	}
}

func (img *Image) newBootPatcher() (*bootPatcher, error) {
	names := img.featureNames()
	cpu, err := parseCPU(img.opts.CPU,
		func(flag string) bool { _, ok := names.flags[flag]; return ok || flag == oneProcessor },
		func() []string { return img.usedFlags(names) })
	if err != nil {
		return nil, err
	}
	p := &bootPatcher{img: img, cpu: cpu, feats: img.features(cpu)}
	p.decideForms()
	p.sayFeatures()
	return p, nil
}

// patch patches in boot's order from 5.18 on (alternative_instructions), together with
// the initialisation before and after it.
func (p *bootPatcher) patch(o tableOwner) {
	if !p.early {
		p.paravirt(o)
	}
	p.cfi(o)
	p.retpolines(o)
	p.returns(o)
	p.applyAlternatives(o)
	if p.early {
		p.paravirt(o)
	}
	p.seals(o)
	p.locks(o)
	p.ftrace(o)
	p.jumpLabels(o)
	p.staticCalls(o)
}

func (p *bootPatcher) patcher() *patch.Patcher {
	a := &patch.Patcher{Image: inside{p.img}, Forms: &p.forms.Forms}
	if p.img.profile != nil {
		a.Decoder = p.img.profile.Decoder
	}
	return a
}

func (p *bootPatcher) paravirt(o tableOwner) {
	pv := patch.NewParavirt(inside{p.img}, p.forms.Nops, p.early)
	for _, s := range o.paravirtSites() {
		pv.Patch(s.addr, s.len)
	}
}

// returns turns jumps to the return thunk into returns if the processor needs no thunk,
// else into jumps to the thunk that it needs.
func (p *bootPatcher) returns(o tableOwner) {
	compiled, ok := p.img.symbolAddr(compiledThunk)
	if !ok || p.feats.returnThunk == compiledThunk {
		return
	}
	at, data := o.table(returnSites)
	for off := 0; off+4 <= len(data); off += 4 {
		addr := opened.Rel32(at.Add(int64(off)), data[off:])
		// clang puts a CS prefix before the jump, as before those to retpolines.
		prefix := 0
		if text := p.img.bytes(addr, 1); text != nil && text[0] == 0x2e {
			prefix = 1
		}
		jump := p.img.bytes(addr+x86.Addr(prefix), 5)
		if jump == nil || jump[0] != x86.Jmp32 || opened.Rel32(addr+x86.Addr(prefix)+5, jump[1:]) != compiled {
			continue
		}
		text := p.img.bytes(addr, prefix+5)
		text[len(text)-1] = x86.Int3
		p.writeReturn(addr, text)
	}
}

// writeReturn writes a return at addr over text, 5 bytes or more.
func (p *bootPatcher) writeReturn(addr x86.Addr, text []byte) {
	if thunk := p.returnThunkAt(addr); thunk != 0 {
		text[0] = 0xe9
		le.PutUint32(text[1:], uint32(thunk.Sub(addr+5)))
		return
	}
	copy(text, patch.RetInsn)
}

// returnThunk returns the value of the kernel's variable x86_return_thunk for the
// processor; 0 if returns need no thunk.
func (p *bootPatcher) returnThunk() x86.Addr {
	thunk, _ := p.img.symbolAddr(p.feats.returnThunk)
	return thunk
}

// halfLine is set in addresses of the second half of a cache line, whose
// branches indirect target selection does not mislead.
const halfLine = 0x20

// returnThunkAt returns the thunk for a return at that address, 0 for a plain return.
func (p *bootPatcher) returnThunkAt(addr x86.Addr) x86.Addr {
	if p.feats.returnThunk == itsReturnThunk && addr&halfLine != 0 {
		return 0
	}
	return p.returnThunk()
}

// setReturnThunk writes the choice into the kernel's variable: whoever patches
// text later reads it.
func (p *bootPatcher) setReturnThunk() {
	variable, ok := p.img.symbolAddr("x86_return_thunk")
	slot := p.img.bytes(variable, 8)
	if thunk := p.returnThunk(); ok && slot != nil && thunk != 0 {
		le.PutUint64(slot, uint64(thunk))
	}
}

// seals replaces the ENDBRs that nothing needs (X86_KERNEL_IBT).
func (p *bootPatcher) seals(o tableOwner) {
	at, data := o.table(sealedEntries)
	for off := 0; off+4 <= len(data); off += 4 {
		addr := opened.Rel32(at.Add(int64(off)), data[off:])
		p.poison(addr)
		p.sealCFI(addr)
	}
}

// poison replaces the ENDBR at addr, if there is one.
func (p *bootPatcher) poison(addr x86.Addr) {
	if text := p.img.bytes(addr, 4); bytes.Equal(text, opened.Endbr64) {
		copy(text, p.endbrPoison())
	}
}

// endbrPoison is the code that replaces an ENDBR.
func (p *bootPatcher) endbrPoison() []byte {
	if p.img.profile.Resolve.NoplPoison {
		return opened.SealedNopl4
	}
	return opened.SealedNop4
}

// oneProcessor is the kernel's flag of a machine with one processor and no place for a
// second one: an SMP kernel without its locks (to 7.2; noreplace-smp forbids it).
const oneProcessor = "up"

// A lock prefix, and the prefix without effect that takes its place.
const (
	lockPrefix = 0xf0
	dsPrefix   = 0x3e
)

// locks removes the lock prefixes from the text of a machine with one processor
// (alternatives_smp_unlock). Text of other sections than .text keeps them.
func (p *bootPatcher) locks(o tableOwner) {
	if !p.cpu.Flags[oneProcessor] {
		return
	}
	for _, s := range p.img.sitesOf(SiteSMPLock, o) {
		if text := p.img.bytes(s.Addr, 1); text != nil && text[0] == lockPrefix && p.img.inText(s.Addr, o) {
			text[0] = dsPrefix
		}
	}
}

// inText reports whether an address is in the kernel's text, or in a module's .text.
func (img *Image) inText(a x86.Addr, o tableOwner) bool {
	if o.module == "" && img.kind == KindKernel {
		return img.bounds.text(a)
	}
	s := img.sectionAt(a)
	return s != nil && s.Name == ".text"
}

// ftrace turns the calls of the tracer into nops.
func (p *bootPatcher) ftrace(o tableOwner) {
	for _, s := range p.img.sitesOf(SiteFtrace, o) {
		text := p.img.bytes(s.Addr, 5)
		if text != nil && (text[0] == 0xe8 || bytes.Equal(text, patch.Nopl[5])) {
			copy(text, p.forms.Nops.Atomic5)
		}
	}
}

func (p *bootPatcher) staticCalls(o tableOwner) {
	sc := p.newStaticCalls(o)
	r := o.span()
	for _, c := range p.img.tables.staticCalls {
		if r.Contains(c.Addr) {
			sc.Site(patch.StaticCall(c))
		}
	}
}

// updateStaticCalls does the updates of static calls that boot does on every
// machine.
func (p *bootPatcher) updateStaticCalls() {
	sc := p.newStaticCalls(tableOwner{img: p.img})
	for _, u := range bootCalls {
		sc.update(u.key, u.fn)
	}
	if _, logically := p.img.symbolAddr("flat_send_IPI_mask"); logically && p.fewProcessors() {
		for _, u := range flatCalls {
			sc.update(u.key, u.fn)
		}
	}
	if p.cpu.Bugs["amd_e400"] {
		sc.update("x86_idle", e400Idle)
	}
	p.cryptoUpdates(sc)
	if _, ok := p.img.staticCallKey("cond_resched"); ok {
		for _, u := range preemptCalls[infer.PreemptModel(inside{p.img}, &p.img.facts)] {
			sc.update(u.key, u.fn)
		}
	}
}

// fewProcessors: the kernel was built for at most 8 processors, which nr_cpu_ids
// begins with.
func (p *bootPatcher) fewProcessors() bool {
	at, ok := p.img.symbolAddr("nr_cpu_ids")
	most := p.img.bytes(at, 4)
	return ok && most != nil && le.Uint32(most) <= 8
}

// The highest user address with four and with five levels of page tables.
const (
	userPtrMax  = uint64(x86.UserEnd)
	userPtrMax5 = 0x00fffffffffff000
)

// runtimeConstants writes the constant that depends on the processor alone
// (6.12); the dentry hash's address and size are known only to a running
// kernel and keep the compiler's placeholder.
func (p *bootPatcher) runtimeConstants() {
	o, highest := tableOwner{img: p.img}, userPtrMax
	if p.cpu.Flags["la57"] {
		highest = userPtrMax5
	}
	at, data := o.table(userPointerMax)
	for off := 0; off+4 <= len(data); off += 4 {
		if imm := p.img.bytes(opened.Rel32(at.Add(int64(off)), data[off:]), 8); imm != nil {
			le.PutUint64(imm, highest)
		}
	}
}

// span is the address range of the owner's allocated sections.
func (o tableOwner) span() x86.Range {
	var r x86.Range
	for _, s := range o.img.sections {
		if s.Module != o.module {
			continue
		}
		if r.End == 0 {
			r.Start = s.Addr
		}
		r.End = max(r.End, s.Range().End)
	}
	return r
}

// sitesOf lists the sites of a kind that lie in the owner's sections.
func (img *Image) sitesOf(kind SiteKind, o tableOwner) []Site {
	r := o.span()
	var list []Site
	for _, s := range img.tables.sites[kind] {
		if r.Contains(s.Addr) {
			list = append(list, s)
		}
	}
	return list
}
