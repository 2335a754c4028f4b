// Package boot boots a kernel image under QEMU's emulation, with an init of its own
// (testdata/init), up to the stop point, where its memory can be saved and init does
// what it is told (package mailbox).
//
// It must not know what a dump is used for.
package boot

import _ "embed"

// Init is the first process of a booted kernel, which make guest builds.
//
//go:embed init.elf
var Init []byte
