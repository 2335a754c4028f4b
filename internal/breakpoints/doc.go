// Package breakpoints asks for hardware breakpoints at random, by task and by CPU: the rules of
// watch/registers, and by testdata/registers.elf a booted kernel, whose answers should be the same.
//
// It must not know how a kernel is run.
package breakpoints
