// Package running tests the machine on dumps of booted kernels: programs that run
// there, and what probes do to them, which is nothing.
package running
