package boot

import _ "embed"

// Init is the first process of a booted kernel, which make guest builds.
//
//go:embed init.elf
var Init []byte
