// Package frontdoor tests that a module outside this one needs the root package
// only: a program of its own opens an image, probes, calls and reads the trace.
package frontdoor
