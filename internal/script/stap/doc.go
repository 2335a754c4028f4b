// Package stap is SystemTap's language: it reads a script, checks it as stap's passes 1 and 2
// do, and makes a program of it for package script.
//
// What a kernel has (functions, variables, types, tracepoints) it asks of a Kernel; where that
// comes from, how probes are planted and how memory is read it must not know.
package stap
