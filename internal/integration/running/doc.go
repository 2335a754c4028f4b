// Package running tests the machine on dumps of booted kernels: programs run there, and probes do
// not change their behaviour.
package running
