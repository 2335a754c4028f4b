// Package decoder tells which instruction stands at some bytes, in two views:
// the kernel decoder's own (DecodeKernel), which kprobes follows even where it
// is wrong, and the processor's (Decode, Text), which disassembly shows.
//
// It must not know memory, symbols or probes: bytes go in, facts come out.
//
// The kernel's view is table-driven: the attributes of every opcode are in
// kernel_tables.txt, in a form that a person can check against the opcode map
// of the processor's manual. It finds lengths and does not judge whether an
// opcode is valid.
//
// The processor's view is table-driven too: opcodes/ has a row for each
// encoding, and refuses what has none. golang.org/x/arch/x86/x86asm is the
// arbiter that the rows are tested against and supplies the text; Overrides
// lists the rows where it is wrong or silent, and a test checks each of them.
package decoder
