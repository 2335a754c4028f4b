// Package transparency tests that a probe does not change the probed program: every place of the
// guest kernel that a kernel accepts is probed, in every way that the kernel has of running the
// probed instruction, and the run ends with the same registers and memory as the run without.
//
// Where a real kernel's own emulation or fix-up changes the program, the tests
// find the difference, compare it with a model of the kernel's step, and have it
// on a list (differences_test.go). docs/transparency.md describes them.
//
// It has tests only, and must not know how a probe works.
package transparency
