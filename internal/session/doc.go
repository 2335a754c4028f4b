// Package session makes calls and plants probes as people write them on a
// command line: it binds a call's text to an image, puts its buffers into the
// guest, runs tasks made of calls, and registers the probes that the kernel's
// sample modules register.
//
// It must not know flags, terminals or how anything is printed. What needs the
// machine is built with cgo on linux/amd64 only; binding a call to an image is
// always there.
package session
