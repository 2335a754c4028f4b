package userprobes

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/engine"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/process"
	"kprobelab/internal/tinyprogram"
	"kprobelab/internal/userprobe"
	"kprobelab/machine"
	"kprobelab/profile"
)

// bootedKernel is a booted kernel, whose own uprobes are used by its own files.
type bootedKernel struct {
	*kprobelab.Lab
	*booted.Kernel
	t     *testing.T
	clean *machine.Snapshot
}

func boot(t *testing.T, name string) *bootedKernel {
	img, err := kprobelab.OpenImage(runs.File(t, name), nil)
	require.NoError(t, err)
	l, err := kprobelab.New(img, &kprobelab.Options{Budget: 4_000_000_000})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	k, err := l.Booted()
	require.NoError(t, err)
	b := &bootedKernel{Lab: l, Kernel: k, t: t}
	if b.clean, err = l.Machine.Snapshot(); err != nil {
		t.Fatal(err)
	}
	return b
}

// eachKernel runs a test on every kernel that there is a dump of.
func eachKernel(t *testing.T, test func(t *testing.T, b *bootedKernel)) {
	for _, name := range slices.Concat(dumps.Running, dumps.Between) {
		t.Run(name, func(t *testing.T) { test(t, boot(t, name)) })
	}
}

// What open takes.
const (
	openWrite  = 0x1
	openCreate = 0x40
	openFresh  = 0x200
	openAppend = 0x400
	atCWD      = -100
)

// tracefs is the folder of the kernel's tracing files.
const tracefs = "/sys/kernel/tracing/"

// call makes a system call; its error is the kernel's.
func (b *bootedKernel) call(name string, args ...any) (int64, error) {
	v, err := b.SystemCall(name, args...)
	require.NoError(b.t, err)
	if v < 0 {
		return v, errno.Errno(-v)
	}
	return v, nil
}

func (b *bootedKernel) write(path string, flags int, data []byte) error {
	fd, err := b.call("openat", atCWD, path, flags, 0o755)
	require.NoError(b.t, err, path)
	for len(data) > 0 {
		n, err := b.call("write", fd, data[:min(len(data), 1<<16)], min(len(data), 1<<16))
		if err != nil {
			_, _ = b.call("close", fd)
			return err
		}
		data = data[n:]
	}
	_, err = b.call("close", fd)
	return err
}

func (b *bootedKernel) read(path string) string {
	fd, err := b.call("openat", atCWD, path, 0, 0)
	require.NoError(b.t, err, path)
	var text strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := b.call("read", fd, buf, len(buf))
		require.NoError(b.t, err)
		if n == 0 {
			break
		}
		text.Write(buf[:n])
	}
	_, err = b.call("close", fd)
	require.NoError(b.t, err)
	return text.String()
}

// ended is the exit code, output and trace of a program.
type ended struct {
	code           int
	stdout, stderr string
	trace          []string
}

// run runs a program of the kernel's own, with events of uprobe_events.
func (b *bootedKernel) run(f *process.File, args []string, env []string, events ...string) ended {
	require.NoError(b.t, b.Machine.Restore(b.clean))
	require.NoError(b.t, b.write(f.Name, openWrite|openCreate|openFresh, f.Data))
	if len(events) > 0 {
		require.NoError(b.t, b.write(tracefs+"uprobe_events", openWrite|openAppend, []byte(strings.Join(events, "\n")+"\n")))
		require.NoError(b.t, b.write(tracefs+"events/uprobes/enable", openWrite, []byte("1")))
	}
	var out, bad bytes.Buffer
	code, err := b.Exec(&booted.Program{Args: append([]string{f.Name}, args...), Env: env, Stdout: &out, Stderr: &bad})
	require.NoError(b.t, err)
	e := ended{code: code, stdout: out.String(), stderr: bad.String()}
	if len(events) > 0 {
		for line := range strings.Lines(b.read(tracefs + "trace")) {
			if !strings.HasPrefix(line, "#") {
				e.trace = append(e.trace, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return e
}

// small is a program of assembled functions.
func small(t *testing.T, data []byte, functions ...string) *process.File {
	var list []tinyprogram.Function
	for i, text := range functions {
		list = append(list, tinyprogram.Function{Name: fmt.Sprintf("f%d", i), Text: text})
	}
	b, err := tinyprogram.Build(data, list...)
	require.NoError(t, err)
	return &process.File{Name: "/prog", Data: b}
}

// told returns the hits in lines of trace, without task, CPU and time.
func told(lines []string) (list []string) {
	for _, line := range lines {
		_, text, _ := strings.Cut(line, ": ")
		flags := strings.Fields(line)[2]
		list = append(list, flags+" "+text)
	}
	return list
}

// alone runs a program without a kernel, with the uprobes of a kernel's rules.
func (b *bootedKernel) alone(f *process.File, args, env []string, events ...string) ended {
	c := b.Image.Profile()
	k := userprobe.New(c)
	tr := userprobe.NewTrace(c, k, f)
	for _, line := range events {
		_, err := tr.Define(line)
		require.NoError(b.t, err)
	}
	require.NoError(b.t, tr.Enable())
	e, err := engine.Named("")
	require.NoError(b.t, err)
	p, err := process.New(process.Config{Program: f, Args: append([]string{f.Name}, args...), Env: env, Tracer: k}, e.New)
	require.NoError(b.t, err)
	defer p.Close()
	tr.Attach(p)
	x, err := p.Run()
	require.NoError(b.t, err)
	out, _ := p.Stdout()
	bad, _ := p.Stderr()
	r := ended{code: x.Code, stdout: string(out), stderr: string(bad)}
	if x.Signal != 0 {
		r.code = 128 + int(x.Signal)
	}
	for line := range strings.Lines(tr.Text()) {
		if !strings.HasPrefix(line, "#") {
			r.trace = append(r.trace, strings.TrimSuffix(line, "\n"))
		}
	}
	return r
}

// exit ends a program of assembled functions with edi.
const exit = "\nmov $0x3c,%eax\nsyscall"

// Rule: a program with uprobes behaves without a kernel as on a kernel with that kernel's own, and
// has the same trace.
func TestAsOnBootedKernels(t *testing.T) {
	// A call of f1 whose own calls are traced, and then whatever each case is about.
	cases := map[string]struct {
		functions []string
		data      string
		events    []string
		every     bool // an event on each instruction
	}{
		"nothing": {functions: []string{"mov $0x5,%edi" + exit}},
		"arguments": {
			functions: []string{"mov $0x7,%edi\nmov $0x402000,%esi\nmov $0xfffffffe,%edx\ncall 0x401080\nmov %eax,%edi" + exit, "lea 0x1(%rdi),%eax\nret"},
			data:      "text\x00\xfe\xff\x05\x00\x00\x20\x40\x00\x00\x00\x00\x00",
			events: []string{
				"p:uprobes/a /prog:0x1080 n=%di:s32 s=+0(%si):string %dx:u8 %dx:s32", `p:uprobes/b /prog:0x1080 +0(+9(%si)):string +0(%di):string +0(%di):u8 \0x10`,
				"p:uprobes/c /prog:0x1080 +0(%si):x8[4] %di:b2@1/8 $stack0 $comm @+0x2000:string @0x402005:s16",
				"r:uprobes/d /prog:0x1080 $retval v=$retval:s32", "p /prog:0x1080",
			},
		},
		"order": {
			functions: []string{"call 0x401080\ncall 0x401080\nxor %edi,%edi" + exit, "push %rbx\npop %rbx\nret"},
			events:    []string{"p:uprobes/a /prog:0x1080", "p:uprobes/b /prog:0x1080", "r:uprobes/c /prog:0x1080", "r:uprobes/d /prog:0x1080", "p:uprobes/e /prog:0x1081"},
		},
		"recursion_and_tail_call": {
			functions: []string{"mov $0x3,%edi\ncall 0x401100\nmov %eax,%edi" + exit, "dec %edi\njs out\npush %rdi\ncall 0x401080\npop %rax\nout: ret", "jmp 0x401080"},
			events:    []string{"r:uprobes/a /prog:0x1080 $retval", "r:uprobes/b /prog:0x1100 $retval", "p:uprobes/c /prog:0x1082 %di"},
		},
		"longjmp": {
			functions: []string{"call 0x401080\ncall 0x401080\nxor %edi,%edi" + exit, "mov %rsp,%rbx\ncall 0x401100\nud2", "push %rax\nmov %rbx,%rsp\nret"},
			events:    []string{"r:uprobes/a /prog:0x1080", "r:uprobes/b /prog:0x1100", "p:uprobes/c /prog:0x1101"},
		},
		"too_deep": {
			functions: []string{"mov $0x50,%edi\ncall 0x401080\nxor %edi,%edi" + exit, "dec %edi\njs out\ncall 0x401080\nout: ret"},
			events:    []string{"r:uprobes/a /prog:0x1080 %di"},
		},
		"reference_counter": {
			functions: []string{"mov $0x402002,%ebx\nmovzwl (%rbx),%edi" + exit, "ret"}, data: "\x00\x00\x05\x00",
			events: []string{"p:uprobes/a /prog:0x1000(0x2002)"},
		},
		"every_way": {
			functions: []string{
				"stc\nmov $0x401080,%ebx\ncall *%rbx\nadc $0x0,%eax\nmov 0xff0(%rip),%esi\npush %rsi\npop %rdi\ntest %edi,%edi\nje out\nnop\nnopl 0x0(%rax,%rax,1)\nout: add %eax,%edi" + exit,
				"mov $0x7,%eax\nret",
			},
			data:  "\x01",
			every: true,
		},
		"flags_that_are_pushed": {functions: []string{"pushf\npop %rdi\nshr $0x8,%edi" + exit}, events: []string{"p:uprobes/a /prog:0x1000"}},
		"syscall_then_ret":      {functions: []string{"call 0x401080\nxor %edi,%edi" + exit, "mov $0x27,%eax\nsyscall\nret"}, events: []string{"p:uprobes/a /prog:0x1085 %ax"}},
		"syscall_then_jump":     {functions: []string{"mov $0x27,%eax\nsyscall\njmp out\nud2\nout: xor %edi,%edi" + exit}, events: []string{"p:uprobes/a /prog:0x1005 %ax"}},
		"fault_at_the_probe":    {functions: []string{"mov (%rdi),%eax"}, events: []string{"p:uprobes/a /prog:0x1000 %di"}},
		"own_int3":              {functions: []string{"nop\nint3"}, events: []string{"p:uprobes/a /prog:0x1000"}},
	}
	eachKernel(t, func(t *testing.T, b *bootedKernel) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				f := small(t, []byte(c.data), c.functions...)
				if c.every {
					c.events = onEach(t, f, b.Image.Profile(), len(c.functions))
				}
				want, got := b.run(f, nil, nil, c.events...), b.alone(f, nil, nil, c.events...)
				require.Equal(t, told(want.trace), told(got.trace))
				require.Equal(t, want.code, got.code)
				require.Equal(t, want.stdout, got.stdout)
				require.Equal(t, len(c.events) > 0, len(got.trace) > 0)
			})
		}
	})
}

// onEach has an event on each instruction of a program's functions that can be probed.
func onEach(t *testing.T, f *process.File, c *profile.Config, functions int) (events []string) {
	for n := range functions {
		for at := tinyprogram.Offset(n); f.Data[at] != 0xcc; {
			k, err := decoder.DecodeKernel(f.Data[at:], &c.Decoder)
			require.NoError(t, err)
			if _, err := userprobe.Check(c, f, at, 0); err == nil {
				events = append(events, fmt.Sprintf("p:uprobes/e%x /prog:0x%x %%ax %%di %%si %%bx", at, at))
			}
			at += uint64(k.Length)
		}
	}
	return events
}
