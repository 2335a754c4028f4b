package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"kprobelab"
	"kprobelab/x86"
)

// The engine finds where a call or a return leads to in a cache of 4,096 slots,
// picked by folding the address. Two such places of one hit in one slot are both
// looked up anew in every hit.
func TestJumpCache(t *testing.T) {
	for _, p := range Paths() {
		r := &run{o: &Options{}, stands: map[standKey]*kprobelab.Lab{}}
		s, err := r.subject(&p, 0, HandlerGuest)
		require.NoError(t, err)
		require.NoError(t, s.plant())
		taken := map[x86.Addr]x86.Addr{}
		for _, symbol := range s.Machine.Symbols() {
			if !p.comesTo(symbol.Name) {
				continue
			}
			code := make([]byte, symbol.Size)
			require.NoError(t, s.Machine.ReadMem(symbol.Addr, code))
			for _, place := range append(afterCalls(symbol.Addr, code), symbol.Addr) {
				mixed := place ^ place>>6
				slot := mixed>>6&0xfc0 | mixed&63
				require.Zero(t, taken[slot], "%s: %s is in the slot of %s", p.Name, s.Machine.Symbolize(place), s.Machine.Symbolize(taken[slot]))
				taken[slot] = place
			}
		}
		r.close()
	}
}

// comesTo reports whether a hit runs that function of the guest's.
func (p *Path) comesTo(name string) bool {
	switch name {
	case "asm_exc_int3":
		return p.parts.Traps > 0
	case "asm_exc_int3.post_handler":
		return p.kind == withPost
	case "ftrace_trampoline", "kprobe_ftrace_handler.guest":
		return p.parts.Tracers > 0
	case "optimized_callback.guest", "optimized_callback.guest.ss":
		return p.parts.Detours > 0
	case "aggr_pre_handler":
		return p.kind == both
	case "pre_handler_kretprobe", "kretprobe_trampoline", "trampoline_handler.guest",
		"arch_rethook_trampoline", "arch_rethook_trampoline_callback.guest":
		return p.returns()
	}
	return false
}

// afterCalls are the addresses that the calls in a function return to.
func afterCalls(at x86.Addr, code []byte) (list []x86.Addr) {
	for len(code) > 0 {
		inst, err := x86asm.Decode(code, 64)
		if err != nil {
			break
		}
		at, code = at.Add(int64(inst.Len)), code[inst.Len:]
		if inst.Op == x86asm.CALL {
			list = append(list, at)
		}
	}
	return list
}
