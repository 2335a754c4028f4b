// Package engines compares the machine of interp with that of emu: the same code
// from the same state ends in the same registers, memory and faults, but for the
// differences that are listed here with their reasons.
package engines
