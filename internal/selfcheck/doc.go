// Package selfcheck compares the rules of this project with the image's own code:
// at drawn points, both answer the questions that registering a probe raises, and
// where they differ, one of them is wrong about this kernel.
//
// It must not know how an answer is found: the rules are asked as a scan asks them,
// and the image by package own.
package selfcheck
