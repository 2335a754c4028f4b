// Package machine has the words that every engine's machine shares: what it needs
// of an image, its options, what a task does, how a run may fail. The machines are
// emu (Unicorn) and interp (Go); their own names for these are aliases, so that an
// error of one is tested for as an error of the other.
//
// It must not know how an engine works.
package machine
