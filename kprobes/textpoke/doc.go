// Package textpoke changes text that other CPUs may be executing (text_poke_bp): the steps of each
// protocol as data, the array of changes under way, and its search by the int3 handler.
//
// It must not know the purpose of a change: no probes, no detour buffers.
package textpoke
