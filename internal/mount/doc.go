// Package mount makes a tree of tracing files a file system of the host,
// through FUSE, so that shells and scripts use it as they use
// /sys/kernel/tracing.
//
// Mount must not know what the files mean, nor which machine runs: it has a tracing.Tree, and a
// Guest whose methods it calls for each use of the files. Live is the tree and the guest of a Lab:
// the tracing files, the program's own files (kprobelab/call, kallsyms), and a guest kernel that
// makes the same system calls. MemTree is a tree of files in memory.
//
// Nothing is cached: each read, each write and each opening with truncation
// reaches the tree as the system call was made. A read that waits (trace_pipe)
// ends when its process gets a signal, and when the mount ends.
package mount
