// Package asked asks a real kernel and this project the same of the tracing
// files, thousands of random definitions, writes and filters, and compares the
// answers: errno, error_log with its carets, what reads back, formats.
//
// It must not know how definitions are read, nor what an answer should be: the
// kernel says that. Two commands boot it: ask runs outside and starts the machine,
// guest is the machine's init program.
package asked
