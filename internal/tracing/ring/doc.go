// Package ring is the trace ring buffer: one per CPU, made of pages of 4096
// bytes in the kernel's own page format, overwriting the oldest page when full,
// with the counts that per_cpu/cpuN/stats prints.
//
// It must not know what a record means, who writes it, or how it is printed: it stores bytes with a
// time.
//
// The kernel exchanges pages without locks; this package uses one mutex per CPU. A writer here is
// never interrupted by another on its CPU, so the cases of nested writers ("commit overrun") do not
// exist and count 0.
package ring
