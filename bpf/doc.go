// Package bpf asks booted kernels about the programs of a BPF object: whether each kernel's own verifier takes them, and whether
// they attach as their sections say.
//
//	l, err := kprobelab.Open("6.1.core", nil) // object has the bytes of tool.bpf.o
//	k, err := l.Booted()
//	got, err := bpf.Load(k, object, nil) // got.Programs[0].Loads, .Blame, .Log
//
// The loader is a program of ours, which runs in the guest: CO-RE relocations are made by the kernel's own BTF, the verifier and
// what attaches are the kernel's own code. Each program is loaded by itself, with the maps that it uses.
//
// It must not know how a kernel is found, nor how a guest runs programs.
package bpf
