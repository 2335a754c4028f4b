// Package benchqemu has the programs that measure a real kernel under QEMU: the
// kernel module (module), the init that runs its rounds (guest), and the program
// that boots both (boot). scripts/bench-qemu.sh builds and runs them.
//
// It must not know what kprobelab's own paths cost: kprobelab bench --against
// compares.
package benchqemu
