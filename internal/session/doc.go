// Package session makes calls and plants probes as people write them on a
// command line: it binds a call's text to an image, puts its buffers into the
// guest, runs tasks made of calls, and registers the probes that the kernel's
// sample modules register.
//
// It must not know flags, terminals or how anything is printed, nor which
// engine its machine has.
package session
