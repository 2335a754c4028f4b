package qemu

import (
	"os/exec"
	"syscall"
)

// endsWithUs lets the kernel end QEMU when this program is killed: an abandoned emulator would go
// on for ever.
func endsWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
