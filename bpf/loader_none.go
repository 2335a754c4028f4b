//go:build !bpfloader

package bpf

var builtLoader []byte
