package transparency

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/machine"
	"kprobelab/x86"
)

// longest is the length of the longest random code, in bytes.
const longest = 48

// tame replaces instructions in random code that would change the processor for later runs, take
// time, or read their own text, where the breakpoint would show; and bytes that the kernel's
// decoder reads with another length than the processor (two REX prefixes). All others stay.
func tame(code []byte) []byte {
	code = slices.Clone(code[:min(len(code), longest)])
	for off := 0; off < len(code); {
		inst, err := decoder.Decode(code[off:])
		n := max(inst.Length, 1)
		// Processors disagree about branches with an operand-size prefix.
		narrow := inst.Class != decoder.ClassNone && slices.Contains(code[off:off+n], 0x66)
		if err != nil || narrow || wild(code[off:off+n]) {
			for i := range n {
				code[off+i] = 0x90
			}
		}
		off += n
	}
	return append(code, 0xc3)
}

// wildOneByte and wildTwoByte are opcodes of instructions that are replaced:
// ports, segments, far branches, traps, popf; system registers, time.
var (
	wildOneByte = []byte{0x6c, 0x6d, 0x6e, 0x6f, 0x8e, 0x9d, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
		0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0x9b, 0xc4, 0xc5, 0x62}
	wildTwoByte = []byte{0x00, 0x01, 0x05, 0x06, 0x07, 0x08, 0x09, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x37,
		0x78, 0x79, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa, 0xae, 0xb2, 0xb4, 0xb5, 0xc7}
)

func wild(insn []byte) bool {
	k, err := decoder.DecodeKernel(insn, &newest().Decoder)
	if err != nil || k.Length != len(insn) || k.VexLen > 0 || k.RIPRelative() || k.HasPrefix(0x67) {
		return true
	}
	switch op := k.Opcode[0]; {
	case op == 0x0f:
		return slices.Contains(wildTwoByte, k.Opcode[1])
	case op == 0xff:
		return k.Reg() == 2 || k.Reg() == 3 || k.Reg() == 5
	case op >= 0xd8 && op <= 0xdf: // the x87 state outlives a call
		return true
	default:
		return slices.Contains(wildOneByte, op)
	}
}

// fuzzed has a machine for each kernel, made at its first use.
type fuzzed struct {
	sync.Mutex
	checks [8]*check
}

// try runs random code with every boundary probed, one at a time and together.
func (z *fuzzed) try(t *testing.T, which byte, seed uint64, code []byte) {
	z.Lock()
	defer z.Unlock()
	n := int(which) % len(kernels)
	c := z.checks[n]
	if c == nil {
		c = kernels[n].openCheck(t, nil)
		require.NoError(t, c.clearFirst())
		z.checks[n] = c
	}
	c.t, c.failures = t, 0
	f, undo := c.writeCode(t, "random", tame(code))
	defer undo()
	args := f.gen(newGen(seed))
	var first, again outcome
	require.NoError(t, c.run(&f, args, &first))
	tr, stepped, err := c.stepped(&f, args)
	if err != nil || len(tr.steps) == 0 || first.stopped.text == "never ends" || stepped.difference(&first, x86.Range{}) != "" {
		return // hits take instructions of the budget, and not all can be stepped
	}
	if c.astray(&f, tr) {
		return
	}
	base := []baseline{{args: args, outcome: first, trace: tr}}
	c.function(&f, base)
	require.NoError(t, c.run(&f, args, &again))
	if again.difference(&first, x86.Range{}) != "" { // it changed the processor
		c.Lab.Close()
		z.checks[n] = nil
	}
}

// astray reports whether the run left its stack, where no trap could be taken,
// or went into the middle of an instruction, where a breakpoint is part of
// another one.
func (c *check) astray(f *function, tr *trace) bool {
	stack := tr.stack()
	for i := range tr.steps {
		if sp := x86.Addr(tr.steps[i].regs.SP); sp < stack.Start+machine.PageSize || sp > stack.End+8 {
			return true
		}
	}
	at := c.boundaries(f.addr, f.size, &c.real)
	for a := range tr.at {
		if a < f.addr-decoder.MaxInsnSize || a >= f.addr.Add(int64(f.size)) || slices.Contains(at, a) {
			continue
		}
		var b [decoder.MaxInsnSize]byte
		n := c.Kprobes.View().CodeAt(a, b[:])
		if inst, err := decoder.Decode(b[:n]); err != nil || a.Add(int64(inst.Length)) > f.addr {
			return true
		}
	}
	return false
}

// FuzzProbedCode: random code runs with probes as it does without, ends, and
// has its text back afterwards.
func FuzzProbedCode(f *testing.F) {
	for n, w := range written {
		f.Add(byte(n), uint64(n), w.code)
	}
	z := &fuzzed{}
	f.Cleanup(z.close)
	f.Fuzz(func(t *testing.T, which byte, seed uint64, code []byte) {
		if len(code) > 0 {
			z.try(t, which, seed, code)
		}
	})
}

func (z *fuzzed) close() {
	for _, c := range z.checks {
		if c != nil {
			c.Lab.Close()
		}
	}
}

// Random bytes are instructions often enough. Instructions that use the stack and flags are added.
func TestRandomCode(t *testing.T) {
	n := 200
	switch {
	case soaking():
		n = 20000
	case testing.Short():
		n = 40
	}
	z := &fuzzed{}
	t.Cleanup(z.close)
	rng := rand.New(rand.NewPCG(extentOf(false).seed, 5))
	for i := range n {
		code := make([]byte, 4+rng.IntN(longest))
		for i := range code {
			code[i] = byte(rng.Uint32())
			if rng.IntN(3) == 0 {
				code[i] = "\x48\x50\x58\x0f\xf3\x9c\x74\xeb\x01\x89\xc1\xd3\xf7\xa4\xaa\xe2\xe3\x90\xc2\xfa\xfb\x66"[rng.IntN(22)]
			}
		}
		z.try(t, byte(i), uint64(i), code)
		if t.Failed() {
			t.Fatalf("code %x", code)
		}
	}
	runs, hits := 0, 0
	for _, c := range z.checks {
		if c != nil {
			runs, hits = runs+c.runs, hits+c.hits
		}
	}
	t.Logf("%d programs, %d probed runs, %d hits", n, runs, hits)
}
