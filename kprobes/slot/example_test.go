package slot_test

import (
	"fmt"

	"kprobelab/kimage"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// text is a View of a few bytes of code.
type text struct {
	kimage.View
	at   x86.Addr
	code []byte
}

func (v text) CodeAt(addr x86.Addr, b []byte) int {
	if addr != v.at {
		return 0
	}
	return copy(b, v.code)
}

func (text) ExceptionEntry(x86.Addr) (x86.Addr, bool) { return 0, false }

// A RIP-relative load reaches the same address from its slot, and a kernel
// without PREEMPTION appends the jump back.
func ExampleBuild() {
	c, _ := profile.Named("5.10")
	at, slotAt := x86.Addr(0xffffffff81000100), x86.Addr(0xffffffffc0001000)
	load := text{at: at, code: []byte{0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x90}}
	s, err := slot.Build(load, at, slotAt, false, c)
	fmt.Printf("% x boosted %v, %v\n", s.Bytes[:s.Len], s.Boosted, err)

	branch := text{at: at, code: []byte{0xff, 0x25, 0x10, 0, 0, 0}}
	_, err = slot.Build(branch, at, slotAt, false, c)
	fmt.Println(err)
	// Output:
	// 48 8b 05 10 f1 ff c0 e9 fb f0 ff c0 boosted true, <nil>
	// the instruction at 0xffffffff81000100 cannot be put out of line: it branches through memory
}
