// Package optimized tests the optimized path on the real machine: that every
// optimizable place of the guest kernel runs as if unprobed before, while, and
// after it is a jump; that CPUs may run anywhere while it becomes one; and that
// neighbours do to each other what they did on real kernels.
//
// It exports nothing and must not be imported.
package optimized
