// Package attach runs a script's handlers: it plants its probes through kprobes, lets its timers
// tick in virtual time, and answers what the library asks of the machine.
//
// It must not know the script's language, an engine, flags or terminals.
package attach
