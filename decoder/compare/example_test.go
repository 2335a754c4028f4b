package compare_test

import (
	"fmt"
	"os"

	"kprobelab/decoder"
	"kprobelab/decoder/compare"
)

// mine is the decoder under test: it knows three instructions, and takes a jump's
// displacement for a number without a sign.
func mine(b []byte) compare.Answer {
	switch {
	case b[0] == 0x90:
		return compare.Says(1, decoder.ClassNone)
	case b[0] == 0xC3:
		return compare.Says(1, decoder.ClassRet)
	case b[0] == 0xEB && len(b) > 1:
		a := compare.Says(2, decoder.ClassJmp)
		a.HasTarget, a.Target = true, 2+int64(b[1])
		return a
	}
	return compare.Answer{}
}

// Test one's own decoder: in a test, t.Errorf takes the place of Printf.
func Example() {
	c := &compare.Comparison{}
	d := compare.FromFunc("mine", mine)
	if _, err := compare.Fuzz([]compare.Decoder{d}, 1, 100_000, c, nil); err != nil {
		fmt.Println(err)
	}
	for _, diff := range c.Differences() {
		if diff.What != "refused" { // instructions that it does not know yet
			diff.Example = c.Shrink(d, diff)
			fmt.Printf("%s: %s: % x: %v, not %v\n", diff.Opcode, diff.What, diff.Bytes(), diff.Theirs, diff.Ours)
		}
	}
	fmt.Println(c.Tally("mine").Refused > 10_000)
	// Output:
	// primary eb jmp: target: eb 80: 2 jmp 130, not 2 jmp -126
	// true
}

// Two versions of a decoder: the worse changes and the better ones.
func ExampleVersions() {
	old := compare.FromFunc("old", mine)
	repaired := compare.FromFunc("new", func(b []byte) compare.Answer {
		a := mine(b)
		if a.HasTarget {
			a.Target = 2 + int64(int8(b[1]))
		}
		if b[0] == 0xC3 {
			a = compare.Answer{} // and broken
		}
		return a
	})
	v := &compare.Versions{Old: old, New: repaired}
	if _, err := v.Fuzz(1, 50_000, nil); err != nil {
		fmt.Println(err)
	}
	for _, c := range v.Changes() {
		if err := v.Shrink(c); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s: %s: %s: % x\n", c.Verdict, c.Opcode, c.What, c.Bytes())
	}
	// Output:
	// worse: primary c3 ret: refused: c3
	// better: primary eb jmp: target: eb 80
}

// A program that answers the line protocol by a Go function.
func ExampleServe() {
	if err := compare.Serve(os.Stdin, os.Stdout, mine); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
