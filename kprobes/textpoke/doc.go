// Package textpoke changes text that other CPUs may be executing (text_poke_bp):
// the steps of each protocol as data, the array of changes
// under way, and what the int3 handler does with it.
//
// It must not know what the change is for: no probes, no detour buffers.
package textpoke
