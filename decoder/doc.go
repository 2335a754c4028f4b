// Package decoder tells which instruction stands at some bytes, in two views:
// the kernel decoder's own (DecodeKernel), which kprobes follows even where it
// is wrong, and the processor's (Decode, Text), which disassembly shows.
//
// A Reader has the processor's view in the few words that the rules of jump
// optimization and of instruction boundaries need: length, kind of branch,
// target. X86asm is golang.org/x/arch/x86/x86asm, put right where it is known
// to be wrong. Tables is the other one, for speed and to compare with. Kernel
// has a Reading, too; whoever decides for a kernel follows that one where it
// differs.
//
// It must not know memory, symbols or probes: bytes go in, facts come out.
//
// Both views are table-driven. The attributes of every opcode in the kernel's
// view are in kernel_tables.txt, in a form that a person can check against the
// opcode map of the processor's manual. They give lengths, and do not tell
// which opcodes exist. The processor's view is in opcodes/: a row for each
// encoding; what has no row is no instruction. The rows are tested against
// x86asm, which also makes the text of most instructions. Overrides lists the
// rows where x86asm is wrong or silent, and a test checks each of them.
package decoder
