package running

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// wild is a machine with a small budget. A run of it may end in any way, with one sentence if with
// an error; afterwards the dump is unchanged.
func wild(t *testing.T) *kernel {
	return bootWith(t, "6.1", &kprobelab.Options{Budget: 10_000_000})
}

// endsSomehow makes a call, which must come back, and puts the machine back.
func (k *kernel) endsSomehow(what string, call func() error) {
	k.t.Helper()
	if err := call(); err != nil {
		require.NotContains(k.t, err.Error(), "\n", what)
		require.NotEmpty(k.t, err.Error(), what)
		k.t.Logf("%s: %v", what, err)
	}
	k.restore()
	require.Equal(k.t, ended{0, "well\n", ""}, k.shell("echo well"), what)
	k.restore()
}

func (k *kernel) symbol(name string) kimage.Symbol {
	list := k.Image.Lookup(name)
	require.NotEmpty(k.t, list, name)
	return list[0]
}

func (k *kernel) shellLine(line string) func() error {
	return func() error {
		var out bytes.Buffer
		_, err := k.Exec(&booted.Program{Args: []string{"/bin/busybox", "sh", "-c", line}, Env: []string{"PATH=/bin"}, Stdout: &out, Stderr: &out})
		return err
	}
}

// TestProgramsThatRunWild: loops, forks without end and machine code that is none are the
// guest's trouble, and end at its budget at the latest.
func TestProgramsThatRunWild(t *testing.T) {
	k := wild(t)
	if testing.Short() {
		k.endsSomehow("crash", k.shellLine("echo c > /proc/sysrq-trigger"))
		return
	}
	for name, line := range map[string]string{
		"loop":          "while :; do :; done",
		"forks":         "f() { f | f & }; f; sleep 1000",
		"sleep":         "sleep 1000000000",
		"killed_itself": "kill -SEGV $$",
		"memory":        "a=x; while :; do a=$a$a; done",
		"init_stopped":  "kill -STOP 1; kill -KILL 1; echo alive",
		"crash":         "echo c > /proc/sysrq-trigger",
		"reboot":        "echo b > /proc/sysrq-trigger",
		"power_off":     "busybox poweroff -f",
		"panic":         "echo 1 > /proc/sys/kernel/panic_on_oops; echo c > /proc/sysrq-trigger",
		"output":        "yes",
	} {
		k.endsSomehow(name, k.shellLine(line))
	}
}

// overwritten writes bytes over a symbol and runs a program then.
func (k *kernel) overwritten(name string, b []byte) func() error {
	return func() error {
		at := k.symbol(name).Addr
		if err := k.Machine.PokeText(at, b); err != nil {
			require.NoError(k.t, k.Machine.WriteMem(at, b), name)
		}
		return k.runTrue()
	}
}

func (k *kernel) runTrue() error {
	_, err := k.Exec(&booted.Program{Args: []string{"/bin/busybox", "true"}, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	return err
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// TestKernelsThatRunWild: data that the processor depends on is overwritten, or a call goes to an
// address without code.
func TestKernelsThatRunWild(t *testing.T) {
	k := wild(t)
	for name, c := range map[string]struct {
		call func() error
		why  error
	}{
		"no_handler":       {k.overwritten("asm_exc_page_fault", make([]byte, 32)), nil},
		"no_system_calls":  {k.overwritten("entry_SYSCALL_64", make([]byte, 64)), nil},
		"no_page_tables":   {k.overwritten("init_top_pgt", make([]byte, 4096)), nil},
		"no_tasks":         {k.overwritten("init_task", make([]byte, 1024)), nil},
		"handler_of_noise": {k.overwritten("asm_exc_page_fault", noise(32)), nil},
		"text_of_noise":    {k.overwritten("schedule", noise(64)), nil},
		"tables_of_noise":  {k.overwritten("init_top_pgt", noise(4096)), nil},
		"call_of_data":     {func() error { _, err := k.Machine.CallAddr(k.symbol("init_task").Addr); return err }, nil},
		"call_of_nothing":  {func() error { _, err := k.Machine.CallAddr(8); return err }, nil},
		"panic":            {func() error { _, err := k.Call("panic", "as asked"); return err }, machine.ErrPanicked},
		"halt":             {func() error { _, err := k.Call("machine_halt"); return err }, machine.ErrHalted},
		"reset":            {func() error { _, err := k.Call("native_machine_emergency_restart"); return err }, machine.ErrReset},
	} {
		k.endsSomehow(name, func() error {
			err := c.call()
			if c.why != nil {
				require.ErrorIs(t, err, c.why, name)
			}
			return err
		})
	}
}

// TestDamagedKernelsEnd: other bytes anywhere in a kernel's text and data.
func TestDamagedKernelsEnd(t *testing.T) {
	k := wild(t)
	kernels := uint64(25)
	if testing.Short() {
		kernels = 3
	}
	start, end := k.symbol("_text").Addr, k.symbol("__bss_stop").Addr
	for seed := range kernels {
		r := rand.New(rand.NewPCG(seed, 0))
		for range 1 + r.IntN(200) {
			at := start + x86.Addr(r.Uint64N(uint64(end-start)-64))
			b := make([]byte, 1+r.IntN(64))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			if k.Machine.PokeText(at, b) != nil {
				_ = k.Machine.WriteMem(at, b) // read-only data and freed pages take none
			}
		}
		if err := k.runTrue(); err != nil {
			require.NotContains(t, err.Error(), "\n", "seed %d", seed)
		}
		k.restore()
	}
}
