// Package transcripts repeats, on this machine, a test module's work on real kernels, and compares
// the output of both, line by line: the registers of handlers, misuse of the interface, recursion
// and missed hits, faults, and neighbours of an optimized probe.
//
// testdata has the kernels' output, without the parts that depend on their build: addresses and
// sizes of functions. If the measured transcripts are at hand they are compared with it, and `go
// test -update` writes it anew.
//
// It exports nothing and must not be imported.
package transcripts
