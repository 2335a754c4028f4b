package qemu

import (
	"os/exec"
	"syscall"
)

// endsWithUs lets the kernel end QEMU when this program is killed: an emulator that
// nobody waits for would go on for ever.
func endsWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
