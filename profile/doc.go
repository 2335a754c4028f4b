// Package profile describes a kernel's kprobes behaviour and configuration as
// one plain struct, and names the kernels that are modelled.
//
// Every behaviour that changed between releases, or that a configuration
// option decides, is one field of Config. A named profile sets them all; a
// user may then change any of them.
//
// It must not know how a field is acted on: no addresses, no instructions, no
// memory.
package profile

//go:generate go run kprobelab/internal/tools/releasesdoc -o ../docs/releases.md
