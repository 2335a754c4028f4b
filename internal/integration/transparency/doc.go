// Package transparency tests that a probe does not change the program it is
// put on: every place of the guest kernel that a kernel accepts is probed, in
// every way that the kernel has of running the probed instruction, and the run
// ends with the same registers and memory as the run without.
//
// Where a real kernel's own emulation or fix-up does change the program, that
// is found here, reproduced by a model of it, and listed (differences_test.go);
// docs/transparency.md tells people about it.
//
// It has tests only, and must not know how a probe works.
package transparency
