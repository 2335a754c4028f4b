//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"kprobelab/decoder"
	"kprobelab/x86"
)

// costly is an instruction with a memory operand that takes the engine far longer than others. It
// moves many bytes one by one, or uses the host's soft floats.
type costly struct {
	encoding decoder.Encoding
	opcode   byte
	reg      byte // ModRM.reg
}

// costs are these instructions' work, in instructions that would take as long (KPL_WORK_ of
// shim.h): a unit is 2 ns. docs/transparency.md has the measurements; the prices of xsave and its
// like are guesses. Without them, a budget of a hundred million fxrstor would be 90 seconds.
var costs = map[costly]uint32{
	{decoder.Enc0F, 0xae, 0}:      350, // fxsave
	{decoder.Enc0F, 0xae, 1}:      450, // fxrstor
	{decoder.Enc0F, 0xae, 4}:      600, // xsave
	{decoder.Enc0F, 0xae, 5}:      600, // xrstor
	{decoder.Enc0F, 0xae, 6}:      600, // xsaveopt
	{decoder.EncPrimary, 0xdd, 6}: 200, // fnsave
	{decoder.EncPrimary, 0xdd, 4}: 250, // frstor
	{decoder.EncPrimary, 0xd9, 6}: 60,  // fnstenv
	{decoder.EncPrimary, 0xd9, 4}: 40,  // fldenv
	{decoder.EncPrimary, 0xdf, 4}: 50,  // fbld
	{decoder.EncPrimary, 0xdf, 6}: 60,  // fbstp
	{decoder.Enc0F, 0xc7, 1}:      30,  // cmpxchg16b
}

//export kplLook
func kplLook(h C.uintptr_t, cpu C.int, pc C.uint64_t, size C.uint32_t, work *C.uint32_t, again *C.int) C.uint64_t {
	e, code := engineOf(h), make([]byte, size)
	if e.host.Machine().ReadMem(x86.Addr(pc), code) != nil {
		return 0
	}
	if e.b != nil && e.hookInstructions(e.cpus[cpu], x86.Addr(pc), code) {
		*again = 1
		return 0
	}
	if e.cpus[cpu].c.user != 0 {
		if at := e.forbidden(x86.Addr(pc), code); at >= 0 {
			return pc + C.uint64_t(at)
		}
	}
	at, w := look(e.reads, code, func(at int) bool { return e.b != nil && e.b.hooked[x86.Addr(pc).Add(int64(at))] })
	*work = C.uint32_t(w)
	if at < 0 {
		return 0
	}
	return pc + C.uint64_t(at)
}

// forbidden finds in a block the first instruction that user mode may not execute and that the engine would, or -1.
func (e *engine) forbidden(pc x86.Addr, code []byte) int {
	whole := true
	for at := 0; at < len(code); {
		i, err := e.reads.Decode(code[at:])
		whole = whole && err == nil && !misread(&i, code[at:])
		if C.kpl_forbidden(e.c, C.uint64_t(pc.Add(int64(at)))) != 0 {
			return at
		}
		if at++; whole {
			at += i.Length - 1
		}
	}
	return -1
}

// look finds in a block the first write to debug register 7 that is not hooked, which the
// engine does not survive, or -1; and adds up what its instructions cost.
//
// reads says by which maker's rules the emulated processor reads bytes in which processors differ.
// Where the engine may see other instructions than a processor does, from there on
// every byte counts as the beginning of one.
func look(reads decoder.Processor, code []byte, hooked func(at int) bool) (refused int, work uint32) {
	for at := 0; at < len(code); {
		i, err := reads.Decode(code[at:])
		step := i.Length
		if err != nil || misread(&i, code[at:]) {
			return lookEverywhere(reads, code, at, work, hooked)
		}
		if writesDR7(&i) && !hooked(at) {
			return at, work
		}
		work += costOf(&i)
		at += step
	}
	return -1, work
}

// misread reports whether the engine reads another length of the instruction, or may: it counts a
// REX that is not the last prefix.
func misread(i *decoder.Inst, code []byte) bool {
	for n := 0; n+1 < int(i.PrefixLen); n++ {
		if code[n]&0xf0 == 0x40 {
			return true
		}
	}
	return false
}

func lookEverywhere(reads decoder.Processor, code []byte, at int, work uint32, hooked func(at int) bool) (int, uint32) {
	for ; at < len(code); at++ {
		i, err := reads.Decode(code[at:])
		switch {
		case err != nil:
		case writesDR7(&i) && !hooked(at):
			return at, work
		default:
			work += costOf(&i)
		}
	}
	return -1, work
}

// writesDR7 reports whether the instruction writes DR7, or DR5, its other name.
func writesDR7(i *decoder.Inst) bool {
	return i.Encoding == decoder.Enc0F && i.Opcode == 0x23 && i.ModRM&0x28 == 0x28
}

func costOf(i *decoder.Inst) uint32 {
	if !i.HasModRM || i.ModRM >= 0xc0 {
		return 0
	}
	return costs[costly{i.Encoding, i.Opcode, i.ModRM >> 3 & 7}]
}
