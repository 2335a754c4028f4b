// Package asked asks a real kernel and this project the same of the tracing
// files, thousands of random definitions, writes and filters, and compares the
// answers: errno, error_log with its carets, what reads back, formats.
//
// It must not know how definitions are read, nor what an answer should be: the
// kernel says that. Booting it is the affair of the commands below: guest is the
// init program of the machine, ask is what runs outside.
package asked
