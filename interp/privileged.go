package interp

import (
	"kprobelab/decoder"
	"kprobelab/machine"
)

// privileged are the instructions that user mode may not execute, with the exception that they end in there, when the
// I/O privilege level is 0 and no port is allowed (SDM Vol. 2, each one's "64-Bit Mode Exceptions").
type privileged struct {
	encoding    decoder.Encoding
	first, last byte
	// reg is ModRM.reg, and form which of an operand's forms it is about; -1 for either.
	reg, form int
	vector    int
}

// Forms of a ModRM operand.
const (
	inMemory  = 1
	inNoPlace = 0 // a register, or an instruction without operands
	either    = -1
)

var notForUsers = []privileged{
	{decoder.EncPrimary, 0x6c, 0x6f, either, either, machine.VectorGP}, // ins, outs
	{decoder.EncPrimary, 0xe4, 0xe7, either, either, machine.VectorGP}, // in, out
	{decoder.EncPrimary, 0xec, 0xef, either, either, machine.VectorGP}, // in, out of dx
	{decoder.EncPrimary, 0xf4, 0xf4, either, either, machine.VectorGP}, // hlt
	{decoder.EncPrimary, 0xfa, 0xfb, either, either, machine.VectorGP}, // cli, sti
	{decoder.Enc0F, 0x00, 0x00, 2, either, machine.VectorGP},           // lldt
	{decoder.Enc0F, 0x00, 0x00, 3, either, machine.VectorGP},           // ltr
	{decoder.Enc0F, 0x01, 0x01, 2, inMemory, machine.VectorGP},         // lgdt
	{decoder.Enc0F, 0x01, 0x01, 3, inMemory, machine.VectorGP},         // lidt
	{decoder.Enc0F, 0x01, 0x01, 6, either, machine.VectorGP},           // lmsw
	{decoder.Enc0F, 0x01, 0x01, 7, inMemory, machine.VectorGP},         // invlpg
	{decoder.Enc0F, 0x01, 0x01, 1, inNoPlace, machine.VectorInvalid},   // monitor, mwait, clac, stac
	{decoder.Enc0F, 0x06, 0x09, either, either, machine.VectorGP},      // clts, sysret, invd, wbinvd
	{decoder.Enc0F, 0x20, 0x23, either, either, machine.VectorGP},      // mov of control and debug registers
	{decoder.Enc0F, 0x30, 0x30, either, either, machine.VectorGP},      // wrmsr
	{decoder.Enc0F, 0x32, 0x33, either, either, machine.VectorGP},      // rdmsr, rdpmc
	{decoder.Enc0F, 0x35, 0x35, either, either, machine.VectorGP},      // sysexit
}

// swapgs is the ModRM byte of the privileged instruction in its group; rdtscp, in the same group,
// is not privileged.
const swapgs = 0xf8

// vectorInUserMode returns the exception of an instruction in user mode; 0 if user mode may execute
// it.
func vectorInUserMode(i *decoder.Inst) int {
	if i.Encoding == decoder.Enc0F && i.Opcode == 0x01 && i.ModRM == swapgs {
		return machine.VectorGP
	}
	for _, p := range notForUsers {
		if p.encoding != i.Encoding || byte(i.Opcode) < p.first || p.last < byte(i.Opcode) {
			continue
		}
		form := inMemory
		if i.ModRM >= 0xc0 {
			form = inNoPlace
		}
		if (p.reg == either || p.reg == int(i.ModRM>>3&7)) && (p.form == either || p.form == form) {
			return p.vector
		}
	}
	return 0
}

// unlessUser makes an instruction fault in user mode with the vector.
func unlessUser(exec func(c *cpu, o *op) bool, vector int) func(c *cpu, o *op) bool {
	return func(c *cpu, o *op) bool {
		if c.user {
			return c.fault(vector)
		}
		return exec(c, o)
	}
}
