package kprobes

import "kprobelab/x86"

// traps is a Kprobes as the machine has it.
type traps Kprobes

var _ x86.Traps = (*traps)(nil)

// Traps is the receiver of traps that New has given to the machine: a test that has put another one there gives it back.
func (k *Kprobes) Traps() x86.Traps { return (*traps)(k) }
