// Package mount makes a tree of tracing files a file system of the host,
// through FUSE, so that shells and scripts use it as they use
// /sys/kernel/tracing.
//
// It must not know what the files mean, nor which machine they belong to: it
// has a tracing.Tree, and a Guest that is told what is done with the files.
//
// Nothing is cached: each read and each write system call reaches the tree as
// it was made, opening with truncation too. A read that waits (trace_pipe) ends
// when the process that reads gets a signal, and when the mount ends.
package mount
