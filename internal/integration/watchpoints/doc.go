// Package watchpoints compares a machine's reports of watched memory with a log of all accesses.
// The log comes from a model of some instructions, which knows neither engine.
package watchpoints
