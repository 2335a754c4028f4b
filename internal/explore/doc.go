// Package explore runs a scenario (a few CPUs that run, register and patch the same
// text) in every order of its steps, and reports the orders that go wrong.
//
// A run is the real subsystem (package kprobes) on a small machine of its own. Each CPU
// is a coroutine that stops before every step that another CPU can notice, or that
// depends on another CPU: a store of a change of text, an interrupt that synchronizes
// and its acknowledgement, a fetch of text that changes, a trap, a look-up, a change of
// a list, a table or a flag, a grace period. A schedule chooses, at each stop, the CPU
// that continues, and the bytes that a stale fetch sees. The same schedule gives the
// same run to the byte, so a run is replayed from its start to try another choice.
//
// It must not know the command line, nor another engine: machine's engine cannot stop
// inside a trap.
package explore
