// Package bench measures the cost of a hit on each path that it can take: by int3 and a step,
// boosted, optimized, from the function tracer, returning. The figures are nanoseconds of the host.
// Each comes with its floor, the engine's time for the same traps and instructions in the same run,
// and with the figure of the kernel's documentation.
//
// It must not know flags, terminals or files: measurements come out as data.
//
// It measures on any engine of the build; a result names the engine.
package bench
