// Package probepoint answers one question: may a kprobe be planted here? It
// resolves a symbol or an address as register_kprobe does, makes the kernel's
// checks in the kernel's order, and says with an errno and a sentence which
// rule refused first; and where none does, how the probe would run.
//
// It must not know CPUs, time, or which probes are registered. It reads code through a kimage.View
// only, so the code may be a file, live text, or text full of int3s.
package probepoint
