// Package callsyntax reads calls of guest functions as people type them:
//
//	snprintf(buf[64], 64, "%s has %d things", "abc", 42)
//	crc32_le(0xffffffff, {01 02 ff}, 3); schedule()
//
// An argument is one of
//
//	42  -1  0x2a  'a'   an integer
//	"text\n"            a guest buffer with the text and a NUL
//	buf[64]             a guest buffer of 64 zero bytes, shown after the call
//	{01 ff 00}          a guest buffer with these bytes, shown after the call if changed
//	&symbol  &symbol+8  the address of a symbol
//
// It must not know what a symbol's address is, how a buffer gets into guest
// memory or what a function expects.
package callsyntax
