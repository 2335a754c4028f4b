// Package engines compares the machines of interp and emu: the same code from the same state ends
// in the same registers, memory and faults, except for the differences that are listed here with
// their reasons.
package engines
