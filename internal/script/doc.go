// Package script is the core of script languages: one small typed program, and what runs its
// handlers without allocating memory.
//
// A front end makes a Program of expressions and statements (program.go, expr.go, stmt.go);
// Compile checks its types and turns it into functions that call each other; a Thread runs
// handlers, one at a time. Values are integers of 64 bits, strings of a limited length, and
// aggregates; global variables and arrays live as long as the Thread. What may not go on
// without end is limited: statements per handler, calls inside of calls, entries of an array,
// bytes of a string.
//
// It must not know a language's syntax, where probes come from, what a kernel is, or how
// memory is read: a Context gives it that at each hit, and a Builtin is any function of Go.
package script
