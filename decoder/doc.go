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
// In the processor's view golang.org/x/arch/x86/x86asm decides, and a table of
// overrides decides for what x86asm gets wrong or does not know.
package decoder
