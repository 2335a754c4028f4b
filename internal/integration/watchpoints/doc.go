// Package watchpoints compares what a machine tells of watched memory with a log of all
// accesses: that of a model of some instructions, which knows neither engine.
package watchpoints
