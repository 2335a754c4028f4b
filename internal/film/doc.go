// Package film keeps all states of a run in a file, as differences: what a probed kernel's processors,
// its probed functions and its probes were like at each step. The page plays such a file without the
// kernel, and without an engine.
//
// The format is in docs/film.md. The package must not know machines, probes and pages: run makes the
// states, and the page shows them.
package film
