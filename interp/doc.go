// Package interp makes machines (package machine) whose guest code runs in pure Go, on every system
// that Go supports. For the same seed it computes the same as emu; internal/integration/engines
// lists the differences, and docs/engines.md describes the instructions that it executes.
//
// It must not know kprobes, tasks or calls.
//
// # An instruction, from its bytes to its effect
//
// A CPU decodes a block, the instructions up to the next branch, when it first reaches it, and
// keeps it: package decoder finds the instruction's row, and a table by opcode (primary, escape0F,
// …) the function that makes an op of it. The op has the operands ready and the function that
// executes it. The loop (exec.go) counts the block and calls one function after the other. A
// function that cannot complete leaves an event, and changes nothing.
//
// A block holds the bytes as the processor has fetched them: changed text is seen once the CPU's
// blocks of it are dropped. Blocks end where Unicorn's end, since the clock and the scheduler count
// by them.
//
// The arithmetic flags are computed when something looks at them (flags.go).
package interp
