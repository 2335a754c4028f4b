// Package hazard is the table of hazards: accepted probes that go wrong. A row has the effect, the
// kernels that have the hazard, and the points where it occurs.
//
// It must not know images, reports or machines. Its input is a point, the way in which a probe
// there would run, and the profile of a kernel.
package hazard
