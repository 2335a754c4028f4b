//go:build bpfloader

package bpf

import _ "embed"

// make build writes the file.
//
//go:embed loader.elf
var builtLoader []byte
