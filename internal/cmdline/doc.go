// Package cmdline is a command line as people write and read it, on the parser urfave/cli: options among operands, errors in
// plain words, help that fits a terminal, a manual page, completion in shells, options of other tools, limits of a command.
//
// It must not know kernels, probes and files; a program gives it commands, and values to complete.
package cmdline
