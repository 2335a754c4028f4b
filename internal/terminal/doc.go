// Package terminal writes to standard output and standard error: text that cannot act on a terminal, colours, the progress of
// long work, and no more bytes and no longer than a limit allows.
//
// It must not know commands, flags and exit codes, nor what is printed.
package terminal
