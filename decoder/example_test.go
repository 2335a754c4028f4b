package decoder_test

import (
	"fmt"

	"kprobelab/decoder"
)

// The kernel's decoder takes vzeroupper for a conditional jump: it reports the
// byte after the VEX prefix as the opcode.
func ExampleDecodeKernel() {
	b := []byte{0xC5, 0xF8, 0x77}
	k, err := decoder.DecodeKernel(b, nil)
	fmt.Printf("%d bytes, opcode %#x, jump %v, %v\n", k.Length, k.Opcode[0], k.IsRelativeJump(), err)
	i, err := decoder.Decode(b)
	fmt.Printf("%d bytes, %s, %v, %v\n", i.Length, i.Text(0), i.Class, err)
	// Output:
	// 3 bytes, opcode 0x77, jump true, <nil>
	// 3 bytes, vzeroupper, none, <nil>
}

func ExampleText() {
	fmt.Println(decoder.Text([]byte{0x74, 0x10}, 0xffffffff81000000))
	fmt.Println(decoder.Text([]byte{0xF3, 0x0F, 0x1E, 0xFA}, 0))
	fmt.Println(decoder.Text([]byte{0x06}, 0))
	// Output:
	// je 0xffffffff81000012
	// endbr64
	// (bad)
}
