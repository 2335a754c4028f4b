// Package own calls an image's own functions: its can_probe about an address, its
// decoder about bytes. They run on the engine, without a boot.
//
// It must not know the rules of this project (optimizer, kprobes, profile): it is the
// other opinion, to be compared with them.
//
// Results of boot are missing: there is no allocator, no text poking. Functions that only
// read code and tables do not notice. The few facts of a booted kernel that they read are
// set when the image is opened (boot.go). Stand-ins replace the rest (standin.go): Prepare,
// PrepareOptimized and Blacklisted run the kernel's registration up to the arming.
//
// Measure computes the fields of the profile (measure.go), and Measured keeps the
// answers (cache.go).
package own
