// Package selfcheck compares the rules of this project with the image's own code: at
// drawn points, both answer the questions that registering a probe raises. If they
// differ, one of them is wrong about this kernel.
//
// It must not know how an answer is found: the rules answer as in a scan, and the image
// through package own.
package selfcheck
