// Package optimized tests the optimized path on the real machine: that every
// optimizable place of the guest kernel runs as if unprobed before it is a jump,
// while it is one, and after; that CPUs may run anywhere while it becomes one; and
// that probes in each other's regions behave as on real kernels.
//
// It exports nothing and must not be imported.
package optimized
