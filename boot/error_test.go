package boot

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/qemu"
)

func TestWhyAKernelDidNotBoot(t *testing.T) {
	own := errors.New("what follow says")
	o := &Options{Limit: time.Minute}
	for name, c := range map[string]struct {
		ended   qemu.Ended
		arrived bool
		follows error
		why     string
	}{
		"timeout":           {qemu.Ended{Cause: context.DeadlineExceeded, Err: io.EOF}, false, nil, "the kernel has not come to its init after 1m0s; --timeout is the limit, -v shows its console"},
		"timeout_later":     {qemu.Ended{Cause: context.DeadlineExceeded, Err: io.EOF}, true, io.EOF, "the kernel has booted, but what it was to do is not done after 1m0s"},
		"interrupted":       {qemu.Ended{Cause: context.Canceled, Err: io.EOF, Console: "x"}, false, nil, "interrupted"},
		"panic":             {qemu.Ended{Err: io.EOF, Console: "[ 1.0] Kernel panic - not syncing: no init\r\n[ 1.1] Call Trace:"}, false, nil, "the kernel panicked: no init"},
		"panic_later":       {qemu.Ended{Err: io.EOF, Console: "Kernel panic - not syncing: x"}, true, io.EOF, "the kernel panicked: x"},
		"own":               {qemu.Ended{Err: own, Console: "x"}, true, own, "what follow says"},
		"qemu":              {qemu.Ended{Err: qemu.ErrGone, Console: "qemu-system-x86_64: no memory"}, false, nil, "QEMU does not start the machine: no memory"},
		"model":             {qemu.Ended{Err: qemu.ErrGone, Console: "qemu-system-x86_64: unable to find CPU model 'x'"}, false, nil, "QEMU does not start the machine: unable to find CPU model 'x'"},
		"feature":           {qemu.Ended{Err: qemu.ErrGone, Console: "qemu-system-x86_64: Property 'qemu64-x86_64-cpu.x' not found"}, false, nil, "QEMU does not start the machine: Property 'qemu64-x86_64-cpu.x' not found"},
		"another_init":      {qemu.Ended{Err: own}, false, nil, "the kernel did not come to its init: what follow says"},
		"reset":             {qemu.Ended{Err: io.EOF}, false, nil, "the machine ended before the kernel came to its init: no memory for it (--memory), another CPU needed (--cpu), or a damaged image"},
		"reset_later":       {qemu.Ended{Err: io.EOF}, true, io.EOF, "the machine has reset itself, or QEMU has ended"},
		"qemu_without_name": {qemu.Ended{Err: io.ErrUnexpectedEOF}, false, nil, "the machine ended before the kernel came to its init: no memory for it (--memory), another CPU needed (--cpu), or a damaged image"},
	} {
		err := explain(&c.ended, o, c.arrived, c.follows)
		require.EqualError(t, err, c.why, name)
		require.Equal(t, name == "model" || name == "feature", errors.Is(err, ErrCPU), name)
	}
}

// A person sees the end of a long console, and no empty one.
func TestConsoleIsShort(t *testing.T) {
	var why *Error
	require.ErrorAs(t, explain(&qemu.Ended{Err: io.EOF, Console: strings.Repeat("line\r\n", 100)}, &Options{}, false, nil), &why)
	require.Len(t, why.Console, consoleLines)
	require.Equal(t, "line", why.Console[0])
	require.ErrorAs(t, explain(&qemu.Ended{Err: io.EOF}, &Options{}, false, nil), &why)
	require.Empty(t, why.Console)
}
