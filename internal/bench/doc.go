// Package bench measures what a hit costs on each path that it can take: by
// int3 and a step, boosted, optimized, from the function tracer, returning; in
// nanoseconds of the host, beside the floor that the same machine sets in the
// same run, and beside the figures of the kernel's documentation.
//
// It must not know flags, terminals or files: what is measured comes out as
// data. It is the only package that looks at the host's clock.
//
// What a path is, what a processor would take for it (Hardware) and the form
// of the results are there in every build; measuring needs the engine, with
// cgo on linux/amd64.
package bench
