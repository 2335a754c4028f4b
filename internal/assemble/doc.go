// Package assemble makes bytes of an instruction's text: of the common integer
// instructions, one a line, in GNU syntax, with labels.
//
// It is package decoder the other way round, and has no table of its own: the decoder's
// samples say which opcodes have a mnemonic, the operands which fields to fill, and what
// comes out is right if the decoder's text of it is the text that was written.
//
// It must not know probes or rules.
package assemble
