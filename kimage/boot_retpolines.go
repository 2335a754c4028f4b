package kimage

import (
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// indirectThunk is the name before the register's in a retpoline thunk's.
const indirectThunk = "__x86_indirect_thunk_"

// thunkRegisters are the registers by number, as thunks are named.
var thunkRegisters = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// retpolines turns calls of and jumps to the thunks into indirect ones, if the kernel
// restricts indirect branches in another way, with an lfence, or not at all (patch_retpoline;
// 5.16 and later; earlier releases have alternatives for it).
func (p *bootPatcher) retpolines(o tableOwner) {
	if p.feats.has[p.feats.retpoline] && !p.lfenced() || p.feats.returnThunk == itsReturnThunk {
		return
	}
	at, data := o.table(retpolineSites)
	thunks := map[x86.Addr]int{}
	for n, name := range thunkRegisters {
		if a, ok := p.img.symbolAddr(indirectThunk + name); ok {
			thunks[a] = n
		}
	}
	for off := 0; off+4 <= len(data); off += 4 {
		addr := opened.Rel32(at.Add(int64(off)), data[off:])
		if text := p.img.bytes(addr, p.img.branchLen(addr)); len(text) > 0 {
			p.retpoline(addr, text, thunks)
		}
	}
}

// lfenced: retpolines are an lfence and an indirect branch.
func (p *bootPatcher) lfenced() bool { return p.feats.has[p.feats.retpoline+1] }

// retpoline writes one site, whose branch is all of text.
func (p *bootPatcher) retpoline(addr x86.Addr, text []byte, thunks map[x86.Addr]int) {
	end := len(text)
	if reg, ok := thunks[opened.Rel32(addr.Add(int64(end)), text[end-4:])]; ok {
		p.patcher().Retpoline(text, reg, p.lfenced())
	}
}
