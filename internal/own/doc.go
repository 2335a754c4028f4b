// Package own asks an image's own functions: what its can_probe says of an
// address, how its decoder reads bytes. They run on the engine, without a boot.
//
// It must not know the rules of this project (optimizer, kprobes, profile): it is
// the other opinion, to be compared with them.
//
// What boot would have made is missing: no allocator, no text poking. Functions
// that only read code and tables do not notice. The few facts of a booted kernel
// that they ask about are set when the image is opened (boot.go). For the others
// there are stand-ins (standin.go): Prepare, PrepareOptimized and Blacklisted run
// the kernel's registration as far as the arming.
//
// Measure asks about the fields of the profile (measure.go), and Measured keeps the
// answers (cache.go).
package own
