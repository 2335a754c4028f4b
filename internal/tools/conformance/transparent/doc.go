// Package transparent chooses the places at which testdata/init/transparent.c probes a program on a
// booted kernel, and judges what that says.
//
//	transparent draw -kernel VMLINUZ -source NAME -o FOLDER PROGRAM
//	transparent judge FOLDER ANSWERS
//
// FOLDER/list has the offsets, of all instructions of the program's own functions that are called and of 200 of its
// library's; FOLDER/known what the program does here. scripts/transparency-uprobes-booted.sh uses both.
package transparent
