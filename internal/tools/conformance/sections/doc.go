// Package sections draws sections of BPF objects by a kernel's own functions, and makes objects
// of them.
//
// It must not know what loaders or kernels say to them.
package sections
