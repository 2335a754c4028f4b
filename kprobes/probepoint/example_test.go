package probepoint_test

import (
	"fmt"

	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
)

// May a probe be planted here, and how would it run?
func ExamplePlace() {
	c, _ := profile.Named("6.1")
	v := kernel(movAX, "\xe8\x00\x00\x00\x00", "\xff\x17", ret) // mov; call; call *(%rdi); ret
	for _, off := range []uint32{0, 1, 3, 8, 10} {
		p, err := probepoint.Resolve(v, probepoint.Request{Symbol: "fn", Offset: off}, c)
		if err != nil {
			fmt.Println(err)
			continue
		}
		how, err := probepoint.Place(v, &p, 0xffffffffc0000000, false, c)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p.String(), how.How)
	}
	// Output:
	// fn stepped
	// probe fn+0x1: not at an instruction boundary (EILSEQ)
	// fn+0x3 emulated
	// probe fn+0x8: the instruction cannot be executed out of line: it branches through memory (EOPNOTSUPP)
	// fn+0xa emulated
}
