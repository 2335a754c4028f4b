// Package suite is decisions of the kprobes mechanism as data, with what a kernel of
// each release answers, so that any implementation can be tried against them.
//
// decisions.json is a list of Decision. Each is some code, position-independent, and
// for every byte of it what happens to a kprobe there: refused with an errno, or
// accepted; how a hit runs the instruction; whether the probe gets a jump; how often it is
// hit when the code is called. What does not depend on the probe is said once: the call
// returns Result, probed or not, and the code is as before when the probe is gone.
//
// It must not know any implementation, this project's neither.
//
// An implementation in Go gives Check an adapter (Kernel). One in another language reads
// the file; docs/suite.md has the steps.
package suite
