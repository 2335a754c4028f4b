// Package livefs puts the tracing files of a lab over its guest kernel: the
// tree, files of the program's own beside it (kprobelab/call, kallsyms), and a
// guest in which what is done with the files happens too. What mounts it, or
// tests it, is not its affair.
package livefs
