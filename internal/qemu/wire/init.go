//go:build linux && amd64

package wire

import (
	"fmt"
	"runtime"
	"time"

	"kprobelab/internal/qemu/frame"
)

// Init is the main function of a guest's first process: it calls work and sends
// the host that it is done, or why it failed. It does not return, because the
// first process must not end; the host ends the machine.
func Init(work func() error) {
	runtime.LockOSThread() // the right to write to the port is this thread's
	err := Open()
	if err != nil {
		fmt.Println("no debug port:", err)
	} else if err = work(); err != nil {
		Send(frame.Failed, []byte(err.Error()))
	} else {
		Send(frame.Done, nil)
	}
	for {
		time.Sleep(time.Hour)
	}
}
