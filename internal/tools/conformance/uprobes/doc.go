// Package uprobes draws places of programs for booted kernels to be asked about by
// testdata/init/uprobes.c, and compares what they answer with package uprobes.
//
//	uprobes draw -places N -random N -seed N -kernel VMLINUZ -o FOLDER FILE...
//	uprobes own -kernel VMLINUZ FOLDER
//	uprobes compare -kernel VMLINUZ FOLDER ANSWERS
//
// FOLDER/code has all files one after the other, and then random instructions; FOLDER/list the offsets in it, FOLDER/instructions
// those of all that the programs have, about which the image's own function is asked, too.
// A kernel takes any file that is mapped for execution. scripts/conformance-uprobes.sh uses both.
package uprobes
