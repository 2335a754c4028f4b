// Package suite is decisions of the kprobes mechanism as data, with the answers of a kernel of each
// release, so that any implementation can be tried against them.
//
// decisions.json is a list of Decision. Each is some code, position-independent, with the results
// of a kprobe at every byte of it: refused with an errno, or accepted; the way in which a hit
// executes the instruction; whether the probe gets a jump; the number of hits of a call of the
// code. Two rules hold for every probe: the call returns Result, probed or not, and the code is as
// before when the probe is gone.
//
// It must not know any implementation, this project's neither.
//
// An implementation in Go gives Check an adapter (Kernel). One in another language reads
// the file; docs/suite.md has the steps.
package suite
