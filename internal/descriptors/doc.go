// Package descriptors ends a process that may open too few files, with a
// sentence, as the process starts. Otherwise the Go runtime and the FUSE server's
// package, which makes a pipe as it is initialized, would end it with a stack
// trace, even where nothing is mounted.
//
// It is initialized before them: packages are initialized in the order of their
// paths once what they import is (the Go specification, Program initialization),
// and it imports syscall alone. The package of FUSE imports log, whose path
// comes after ours.
package descriptors
