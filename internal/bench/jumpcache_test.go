//go:build cgo && linux && amd64

package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
			if seldom(symbol.Name) {
				continue
			}
			code := make([]byte, min(symbol.Size, 256)) // what is larger begins a page
			require.NoError(t, s.Machine.ReadMem(symbol.Addr, code))
			for _, place := range append(afterCalls(symbol.Addr, code), symbol.Addr) {
				mixed := place ^ place>>6
				slot := mixed>>6&0xfc0 | mixed&63
				assert.Zero(t, taken[slot], "%s: %s is in the slot of %s", p.Name, s.Machine.Symbolize(place), s.Machine.Symbolize(taken[slot]))
				taken[slot] = place
			}
		}
		r.close()
	}
}

// seldom reports whether hits come there only now and then.
func seldom(name string) bool {
	return strings.HasPrefix(name, "kretprobe_missed") || name == "kretprobe_no_handler" || name == "pre_handler_kretprobe.entry_handler"
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
