package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// becomesDR7 runs a block of three bytes, writes a write to debug register 7 over
// them, and runs it again. The block has the same place and size then.
//
//	mov $0x3ff,%eax; mov $2,%ecx; 1: jmp 2f; 2: nop; jmp 3f; 3: nop; nop
//	movw $0x230f,2b(%rip); movb $0xf8,2b+2(%rip); dec %ecx; jnz 1b; ret
var becomesDR7 = []byte{
	0xb8, 0xff, 0x03, 0, 0, 0xb9, 2, 0, 0, 0, 0xeb, 0, 0x90, 0xeb, 0, 0x90, 0x90,
	0x66, 0xc7, 0x05, 0xf2, 0xff, 0xff, 0xff, 0x0f, 0x23, 0xc6, 0x05, 0xed, 0xff, 0xff, 0xff, 0xf8,
	0xff, 0xc9, 0x75, 0xe5, 0xc3,
}

// byPointer is becomesDR7, but reaches the block by jmp *%rdx: it has lea 2f(%rip),%rdx; jmp *%rdx
// in place of the jmp, and an end that leads before it.
var byPointer = []byte{
	0xb8, 0xff, 0x03, 0, 0, 0xb9, 2, 0, 0, 0, 0x48, 0x8d, 0x15, 2, 0, 0, 0, 0xff, 0xe2, 0x90, 0xeb, 0, 0x90, 0x90,
	0x66, 0xc7, 0x05, 0xf2, 0xff, 0xff, 0xff, 0x0f, 0x23, 0xc6, 0x05, 0xed, 0xff, 0xff, 0xff, 0xf8,
	0xff, 0xc9, 0x75, 0xde, 0xc3,
}

// TestBlockThatBecomesARefusedOne: guest code rewrites a block that has run into one
// that the engine would not survive.
func TestBlockThatBecomesARefusedOne(t *testing.T) {
	for name, c := range map[string]struct {
		code  []byte
		block x86.Addr
	}{
		"by a jump":    {becomesDR7, 12},
		"by a pointer": {byPointer, 19},
	} {
		for _, every := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by instructions %t", name, every), func(t *testing.T) {
				img := writableText{&tinyImage{}}
				at := img.Add("outer", c.code...)
				m := boot(t, img, &Options{EveryInstruction: every})
				for range 2 {
					_, err := m.CallAddr(at)
					var fault *Fault
					require.ErrorAs(t, err, &fault)
					require.Equal(t, VectorInvalid, fault.Vector)
					require.Equal(t, at+c.block, fault.IP)
				}
			})
		}
	}
}

// TestRefusedBlockWhereARunBegins: the same, with the block as the first of a run, or the first
// after a trap: the engine has no block before it.
func TestRefusedBlockWhereARunBegins(t *testing.T) {
	for _, trap := range []bool{false, true} {
		img := writableText{&tinyImage{}}
		block := img.Add("block", 0x90, 0xeb, 0, 0xc3)                              // nop; jmp 1f; 1: ret
		trapped := img.Add("trapped", 0xcc, 0xeb, 0xfe)                             // int3
		writer := img.Add("writer", 0xb8, 0x0f, 0x23, 0xf8, 0xc3, 0x89, 0x07, 0xc3) // mov $…,%eax; mov %eax,(%rdi); ret
		m := boot(t, img, nil)
		m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool { r.IP = uint64(block); return true }})
		at := block
		if trap {
			at = trapped
		}
		_, err := m.CallAddr(at)
		require.NoError(t, err)
		_, err = m.CallAddr(writer, uint64(block))
		require.NoError(t, err)
		for range 2 {
			_, err = m.CallAddr(at)
			var fault *Fault
			require.ErrorAs(t, err, &fault)
			require.Equal(t, VectorInvalid, fault.Vector)
			require.Equal(t, block, fault.IP)
		}
	}
}
