// Package decoder decodes one instruction, in two views: the kernel decoder's (DecodeKernel), which
// kprobes follows even where it is wrong, and the processor's (Decode, Text), which disassembly
// shows.
//
// A Reader reduces the processor's view to the facts that the rules of jump optimization and of
// instruction boundaries need: length, kind of branch, target. X86asm is
// golang.org/x/arch/x86/x86asm, corrected where it is known to be wrong. Tables is another Reader,
// for speed and for comparison. Kernel has a Reading too; the rules of a kernel follow that Reading
// where it differs.
//
// It must not know memory, symbols or probes: bytes go in, facts come out.
//
// Both views are table-driven. The attributes of every opcode in the kernel's view are in
// kernel_tables.txt, in a form that a person can check against the opcode map of the processor's
// manual. They give lengths, and do not say which opcodes exist. The processor's view is in
// opcodes/: a row for each encoding; bytes without a row are no instruction. The rows are tested
// against x86asm, which also makes the text of most instructions. Overrides lists the rows where
// x86asm is wrong or silent, and a test checks each of them.
package decoder
