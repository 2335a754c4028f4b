package running

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/tinyprogram"
	"kprobelab/machine"
)

// sh is a program of a session: a line of shell, with its output if that is wanted.
func sh(line string, out *bytes.Buffer) booted.Program {
	p := booted.Program{Args: []string{"/bin/busybox", "sh", "-c", line}, Env: []string{"PATH=/bin"}}
	if out != nil {
		p.Stdout, p.Stderr = out, out
	}
	return p
}

// whenReady calls do when a program has written that it is ready.
type whenReady struct {
	io.Writer
	do func()
}

func (w whenReady) Write(b []byte) (int, error) {
	if string(b) == "ready\n" {
		w.do()
	}
	return w.Writer.Write(b)
}

// TestSessions: a program of a session has its streams as bytes, its input, signals, and ends by time.
func TestSessions(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		for _, c := range []struct {
			name, line string
			change     func(s *booted.Session)
			code       int
			out        string
		}{
			{"bytes", `printf 'a\0b\377'; exit 3`, nil, 3, "a\x00b\xff"},
			{"a_signal", `kill -9 $$`, nil, 137, ""},
			{"not_init", `grep -c . </proc/$PPID/comm; cat /proc/$PPID/comm; cat /proc/$PPID/stat | cut -d' ' -f4`, nil, 0, "1\nkprobelab\n1\n"},
			{"nothing_to_read", `cat; echo end`, nil, 0, "end\n"},
			{"input", `wc -c; md5sum </dev/null | wc -c`, func(s *booted.Session) { s.Stdin = make([]byte, 300_000) }, 0, "300000\n36\n"},
			{"input_that_comes", `read a; echo got $a; cat`, func(s *booted.Session) {
				s.Stdin, s.Input = []byte("one\n"), io.MultiReader(strings.NewReader("two\n"), strings.NewReader("three\n"))
			}, 0, "got one\ntwo\nthree\n"},
			{"input_that_is_not_read", `echo end`, func(s *booted.Session) { s.Stdin = make([]byte, 300_000) }, 0, "end\n"},
			{"signal_of_the_user", `trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 1; done`, func(s *booted.Session) {
				signals := make(chan syscall.Signal, 1)
				s.Stderr, s.Stdout, s.Signals = s.Stdout, whenReady{s.Stdout, func() { signals <- syscall.SIGINT }}, signals
			}, 5, "ready\ncaught\n"},
			{"time_is_up", `trap 'cut -d. -f1 /proc/uptime; exit 6' INT; cut -d. -f1 /proc/uptime; while :; do sleep 1; done`, func(s *booted.Session) { s.For = 5 * time.Second }, 6, "from to\n"},
			{"files_of_its_own_only", `ls /proc/self/fd`, nil, 0, "0\n1\n2\n3\n"},
			{"a_child_that_stays", `(sleep 100; echo late) & echo end`, nil, 0, "end\n"},
		} {
			t.Run(c.name, func(t *testing.T) {
				k.restore()
				var out bytes.Buffer
				s := &booted.Session{Program: sh(c.line, &out)}
				if c.change != nil {
					c.change(s)
				}
				r, err := k.Run(context.Background(), s)
				require.NoError(t, err, "the kernel's log: %s", k.Machine.Console())
				require.Equal(t, c.code, r.Code, out.String())
				got := out.String()
				if c.name == "time_is_up" {
					var from, to int
					_, err := fmt.Sscan(got, &from, &to)
					require.NoError(t, err, got)
					require.InDelta(t, 5, to-from, 1)
					got = "from to\n"
				}
				require.Equal(t, c.out, got)
				require.Empty(t, r.Trouble)
				require.Equal(t, ended{0, "still here\n", ""}, k.shell("echo still here"))
			})
		}
	})
}

// TestSessionsThatFail: each way in which a program does not run or does not end has its own error.
func TestSessionsThatFail(t *testing.T) {
	k := boot(t, "6.1")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name    string
		session booted.Session
		ctx     context.Context
		check   func(r *booted.Result, err error)
	}{
		{"not_there", booted.Session{Program: booted.Program{Args: []string{"/none"}}}, nil, func(_ *booted.Result, err error) {
			require.ErrorIs(t, err, errno.ENOENT)
			require.EqualError(t, err, "/none: no such file or directory")
		}},
		{"no_program", booted.Session{}, nil, func(_ *booted.Result, err error) { require.ErrorContains(t, err, "no program is named") }},
		{"ends_its_supervisor", booted.Session{Program: sh("kill -9 $PPID; sleep 1", nil)}, nil, func(_ *booted.Result, err error) { require.ErrorIs(t, err, booted.ErrSupervisor) }},
		{"sleeps_for_ever", booted.Session{Program: sh("mkfifo /tmp/f; cat /tmp/f", nil)}, nil, func(_ *booted.Result, err error) {
			require.ErrorIs(t, err, booted.ErrAsleep)
			require.ErrorContains(t, err, "sleeps for ever in ")
		}},
		{"ignores_the_interrupt", booted.Session{Program: sh("trap '' INT; while :; do sleep 1; done", nil), For: time.Second}, nil, func(r *booted.Result, err error) {
			require.NoError(t, err)
			require.True(t, r.Killed)
			require.Equal(t, booted.Exit{Code: 137, Signal: 9}, r.Exit)
		}},
		{"context_has_ended", booted.Session{Program: sh("sleep 1000", nil)}, gone, func(r *booted.Result, err error) {
			require.NoError(t, err)
			require.Equal(t, 130, r.Code)
		}},
		{"many_workloads", booted.Session{Program: sh("true", nil), Workloads: make([]*booted.Program, 8)}, nil, func(_ *booted.Result, err error) {
			require.ErrorContains(t, err, "8 workloads; 7 are possible")
		}},
		{"panics", booted.Session{Program: sh("sleep 0.1; echo c >/proc/sysrq-trigger", nil)}, nil, func(_ *booted.Result, err error) {
			require.ErrorIs(t, err, machine.ErrPanicked)
			var p *booted.PanicError
			require.ErrorAs(t, err, &p)
			require.Contains(t, strings.Join(p.Log, "\n"), " sysrq_handle_crash+0x")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.restore()
			ctx := c.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			c.check(k.Run(ctx, &c.session))
			k.restore()
			require.Equal(t, ended{0, "still here\n", ""}, k.shell("echo still here"))
		})
	}
}

// TestWorkloads: a workload begins when the program is ready, and its end ends the program.
func TestWorkloads(t *testing.T) {
	k := boot(t, "6.1")
	tool := "trap 'echo end >>/tmp/log; cat /tmp/log; exit 4' INT; sleep 0.5; echo ready; echo ready >>/tmp/log; while :; do sleep 1; done"
	for name, c := range map[string]struct {
		ready *regexp.Regexp
		tool  string
	}{
		"by_a_line":  {regexp.MustCompile("^read"), tool},
		"by_a_sleep": {nil, "trap 'echo end >>/tmp/log; cat /tmp/log; exit 4' INT; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; echo ready; echo ready >>/tmp/log; while :; do sleep 1; done"},
	} {
		k.restore()
		var out, first, second bytes.Buffer
		one, two := sh("echo one >>/tmp/log; echo 1", &first), sh("sleep 0.2; echo two >>/tmp/log; echo 2; exit 7", &second)
		r, err := k.Run(context.Background(), &booted.Session{Program: sh(c.tool, &out), Ready: c.ready, Workloads: []*booted.Program{&one, &two}})
		require.NoError(t, err, name)
		require.Equal(t, 4, r.Code, name)
		require.Equal(t, []booted.Exit{{}, {Code: 7}}, r.Workloads, name)
		require.Equal(t, "ready\nready\none\ntwo\nend\n", out.String(), name)
		require.Equal(t, []string{"1\n", "2\n"}, []string{first.String(), second.String()}, name)
	}
	k.restore()
	var out bytes.Buffer
	one, none := sh("sleep 1000", &out), booted.Program{Args: []string{"/none"}}
	r, err := k.Run(context.Background(), &booted.Session{Program: sh("echo ready; sleep 2", &out), Ready: regexp.MustCompile("ready"), Workloads: []*booted.Program{&one, &none}})
	require.NoError(t, err)
	require.Equal(t, []booted.Exit{{Code: 137, Signal: 9}, {}}, r.Workloads, "the workload ends with the program")
	require.ErrorIs(t, r.Unstarted[1], errno.ENOENT)
	r, err = k.Run(context.Background(), &booted.Session{Program: sh("echo no", &out), Ready: regexp.MustCompile("ready"), Workloads: []*booted.Program{&one}})
	require.NoError(t, err)
	require.True(t, r.NeverReady)
}

// TestPathsThatProgramsName: what programs of a session name is known, by every system call, whether it is there or not.
func TestPathsThatProgramsName(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		s := &booted.Session{Program: sh("cat /none/a; test -e /none/b; /none/c; cat relative; readlink /none/d; exit 3", nil)}
		s.Dir = "/bin"
		r, err := k.Run(context.Background(), s)
		require.NoError(t, err)
		require.Equal(t, 3, r.Code)
		for _, want := range []string{"/none/a", "/none/b", "/none/c", "/none/d", "/bin/relative"} {
			require.Contains(t, r.Asked, want)
		}
		require.True(t, k.Has("/bin/busybox"))
		require.False(t, k.Has("/none/a"))
	})
}

// TestReadyLinesWithoutEnd: a line without end is kept as far as the bound says.
func TestReadyLinesWithoutEnd(t *testing.T) {
	k := boot(t, "6.1")
	var out bytes.Buffer
	one := sh("true", nil)
	r, err := k.Run(context.Background(), &booted.Session{
		Program: sh("trap 'exit 3' INT; head -c 300000 /dev/zero; echo ready; while :; do sleep 1; done", &out),
		Ready:   regexp.MustCompile("\x00ready"), Workloads: []*booted.Program{&one},
	})
	require.NoError(t, err)
	require.Equal(t, 3, r.Code)
	require.Equal(t, 300_006, out.Len())
}

// TestProgramsThatSpeakAsTheSupervisor: a program's own calls with the supervisor's numbers are calls that no kernel has.
func TestProgramsThatSpeakAsTheSupervisor(t *testing.T) {
	k := boot(t, "6.1")
	const hello = uint64(tinyprogram.Data)
	call := func(nr, rdi, rsi, rdx uint64) string {
		return fmt.Sprintf("mov $%#x,%%eax\nmovabs $%#x,%%rdi\nmovabs $%#x,%%rsi\nmovabs $%#x,%%rdx\nsyscall\n", nr, rdi, rsi, rdx)
	}
	for name, text := range map[string]string{
		"begin": call(0x6b700010, 1, 0, 0), "ask": call(0x6b700011, hello, hello, 1), "output": call(0x6b700012, 0x100, hello, 6),
		"end": call(0x6b700013, 0, 99<<8, 0), "end_of_init": call(0x6b700002, 99<<8, 0, 0),
	} {
		k.restore()
		// The exit code is the errno that the call returned.
		program, err := tinyprogram.Build([]byte("hello\n"), tinyprogram.Function{Name: "_start", Text: text + "neg %eax\nmov %eax,%ebx\n" + call(1, 1, hello, 6) + "mov %ebx,%edi\nmov $0xe7,%eax\nsyscall"})
		require.NoError(t, err)
		var out bytes.Buffer
		s := &booted.Session{Program: sh("cat >/tmp/forge; chmod +x /tmp/forge; exec /tmp/forge", &out)}
		s.Stdin = program
		r, err := k.Run(context.Background(), s)
		require.NoError(t, err, name)
		require.Equal(t, int(errno.ENOSYS), r.Code, name)
		require.Equal(t, "hello\n", out.String(), name)
	}
}
