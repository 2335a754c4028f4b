// Package bench measures what a hit costs on each path that it can take: by
// int3 and a step, boosted, optimized, from the function tracer, returning. The
// figures are nanoseconds of the host. Each comes with its floor, which is what
// the engine takes for the same traps and instructions in the same run, and with
// the figure of the kernel's documentation.
//
// It must not know flags, terminals or files: what is measured comes out as
// data. It is the only package that looks at the host's clock.
//
// What a path is, what a processor would take for it (Hardware) and the form
// of the results are there in every build; measuring needs the engine, with
// cgo on linux/amd64.
package bench
