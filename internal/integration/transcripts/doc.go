// Package transcripts replays on the real machine what a test module did on
// real kernels, and compares what both print, line by line: what handlers see
// in their registers, misuse of the interface, recursion and missed hits, faults,
// and neighbours of an optimized probe.
//
// testdata has what the kernels printed, with what belongs to their build
// taken out: addresses and sizes of functions. Where the
// measured transcripts are at hand they are compared with it, and `go test
// -update` writes it anew.
//
// It exports nothing and must not be imported.
package transcripts
