// Package benchqemu holds what measures a real kernel under QEMU: the kernel
// module (module), the init that has it make rounds (guest), and the program
// that boots both (boot). scripts/bench-qemu.sh puts them together.
//
// It must not know what kprobelab's own paths cost: kprobelab bench --against
// compares.
package benchqemu
