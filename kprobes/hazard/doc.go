// Package hazard is the table of what can go wrong although the kernel has
// accepted a probe: what happens, which kernels have it, and at which points.
//
// It must not know images, reports or machines: it is given a point, how a probe
// there would run, and the profile of a kernel.
package hazard
