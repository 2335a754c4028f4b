// Command x86asmline answers the line protocol of docs/decoder.md by the x86asm that it
// is built with. make decoder builds it with two versions and compares them.
package main

import (
	"fmt"
	"os"

	"kprobelab/decoder/compare"
)

func main() {
	x := compare.X86asm{Text: true}
	err := compare.Serve(os.Stdin, os.Stdout, func(b []byte) compare.Answer {
		var a [1]compare.Answer
		if err := x.Ask([][]byte{b}, a[:]); err != nil {
			panic("BUG: " + err.Error())
		}
		return a[0]
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "x86asmline:", err)
		os.Exit(1)
	}
}
