// Package libcheck has test cases for functions of the kernel's lib/: for each function, generated
// arguments and the outcome that an independent implementation in Go expects. Tests call the
// functions of a real kernel image with them, unprobed and probed, and compare.
//
// It must not know how a function is called or probed: a Call is data.
package libcheck
