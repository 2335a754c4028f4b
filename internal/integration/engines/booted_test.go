//go:build unicorn && cgo && linux && amd64

package engines

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/emu"
	"kprobelab/internal/integration/dumps"
	"kprobelab/interp"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// bootedCase is what is done with a dump's kernel.
type bootedCase struct {
	name string
	do   func(m *machine.Machine) (any, error)
}

var bootedCases = []bootedCase{
	{"gcd", func(m *machine.Machine) (any, error) { return m.Call("gcd", 48, 36) }},
	{"snprintf", func(m *machine.Machine) (any, error) {
		b := make([]byte, 96)
		n, err := m.Call("snprintf", b, len(b), "%s %d %pS %*ph", "text", -42, m.Stopped().IP, 4, m.Stopped().SP)
		return fmt.Sprint(n, string(b)), err
	}},
	{"getpid", func(m *machine.Machine) (any, error) { return m.SystemCall(39) }},
	{"open, read, close", func(m *machine.Machine) (any, error) {
		path, err := m.AllocUser(64)
		if err != nil {
			return nil, err
		}
		if err := m.WriteMem(path, []byte("/proc/self/stat\x00")); err != nil {
			return nil, err
		}
		buf, err := m.AllocUser(4096)
		if err != nil {
			return nil, err
		}
		fd, err := m.SystemCall(257, ^uint64(99), uint64(path), 0, 0)
		if err != nil || fd < 0 {
			return fd, err
		}
		n, err := m.SystemCall(0, uint64(fd), uint64(buf), 4096)
		if err != nil || n < 0 {
			return n, err
		}
		text := make([]byte, n)
		if err := m.ReadMem(buf, text); err != nil {
			return nil, err
		}
		_, err = m.SystemCall(3, uint64(fd))
		return string(text), err
	}},
	{"nanosleep", func(m *machine.Machine) (any, error) {
		at, err := m.AllocUser(16)
		if err != nil {
			return nil, err
		}
		if err := m.WriteMem(at, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2d, 0x31, 1, 0, 0, 0, 0}); err != nil {
			return nil, err
		}
		return m.SystemCall(35, uint64(at), 0)
	}},
	{"getppid 2000 times", func(m *machine.Machine) (any, error) { return m.SystemCalls(2000, 110) }},
}

// bootedState is what two machines agree in after each case.
type bootedState struct {
	result             any
	err                string
	instrs, now        uint64
	interrupts, digest uint64
	regs               x86.PtRegs
	task               x86.Addr
	console            string
}

func stateAfter(m *machine.Machine, c bootedCase) bootedState {
	v, err := c.do(m)
	s := bootedState{result: v, instrs: m.Instructions(), now: m.Now(), regs: m.Stopped(), task: m.RunningTask(), console: string(m.Console())}
	if err != nil {
		s.err = err.Error()
	}
	s.interrupts, s.digest = m.Interrupts()
	return s
}

// TestABootedKernelOnBothEngines: the same calls, system calls and waits on a dump end in the same results and
// registers after the same number of instructions, with the same interrupts at the same times and instructions.
func TestABootedKernelOnBothEngines(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(dumps.File(t, name), nil)
			require.NoError(t, err)
			u, err := emu.New(img, nil)
			require.NoError(t, err)
			defer u.Close()
			g, err := interp.New(img, nil)
			require.NoError(t, err)
			defer g.Close()
			for _, c := range bootedCases {
				require.Equal(t, stateAfter(u, c), stateAfter(g, c), "%s: first Unicorn, then the engine in Go", c.name)
			}
			n, _ := g.Interrupts()
			t.Logf("%d instructions, %d interrupts", g.Instructions(), n)
		})
	}
}
