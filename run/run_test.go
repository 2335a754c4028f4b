package run

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/boot"
	"kprobelab/errno"
	"kprobelab/internal/tinyprogram"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/watch"
	"kprobelab/x86"
)

func guest(t *testing.T) *kimage.Image {
	t.Helper()
	img, err := kprobelab.OpenImage("", nil)
	require.NoError(t, err)
	return img
}

// names keeps the types of events in order.
type names []string

func (n *names) Put(e Event) error {
	*n = append(*n, reflect.TypeOf(e).Name())
	return nil
}

func probes(t *testing.T, parse func(string) (KernelProbe, error), texts ...string) []KernelProbe {
	t.Helper()
	var list []KernelProbe
	for _, text := range texts {
		p, err := parse(text)
		require.NoError(t, err)
		list = append(list, p)
	}
	return list
}

// What is planted is removed, and the counts come last.
func TestEventsComeInOrder(t *testing.T) {
	var got names
	p := Kernel{Probes: probes(t, Kprobe, "gcd"), Jobs: []Job{{Text: "gcd(12, 18)"}}, Events: []string{"p:in gcd"}, NoSettle: true, Records: true}
	require.NoError(t, p.Run(guest(t), &got))
	require.Equal(t, names{"Started", "Planted", "TracingOpened", "Recorded", "Hit", "Hit", "Called", "Traced", "Removed", "Done", "Counters"}, got)
}

func TestTraceInAPlaceOfItsOwn(t *testing.T) {
	var got names
	var text string
	p := Kernel{Jobs: []Job{{Text: "gcd(12, 18)"}}, Events: []string{"p:in gcd"}, Trace: func(s string) error { text = s; return nil }}
	require.NoError(t, p.Run(guest(t), &got))
	require.NotContains(t, got, "Traced")
	require.Contains(t, text, "in: (gcd+0x0/")

	broken := errors.New("no room")
	p.Trace = func(string) error { return broken }
	require.ErrorIs(t, p.Run(guest(t), &got), broken)
}

func TestErrorsHaveTheirKind(t *testing.T) {
	place := func(text string) []watch.Place {
		p, err := watch.Parse(text)
		require.NoError(t, err)
		return []watch.Place{p}
	}
	tasks := strings.Split(strings.Repeat("gcd(1, 2);", 300), ";")[:300]
	for name, c := range map[string]struct {
		plan Kernel
		kind Kind
	}{
		"no symbol":                {Kernel{Probes: probes(t, Kprobe, "nosuch")}, Refused},
		"inside an instruction":    {Kernel{Probes: probes(t, Kprobe, "gcd+2")}, Refused},
		"no symbol to watch":       {Kernel{Watches: place("nosuch")}, Refused},
		"no symbol of an event":    {Kernel{Events: []string{"p:x nosuch"}}, Refused},
		"a call that faults":       {Kernel{Jobs: []Job{{Text: "strlen(1)"}}}, Refused},
		"no file of tracing":       {Kernel{Tracefs: []boot.TraceWrite{{File: "nosuch", Text: "1"}}}, Refused},
		"a sysctl without a value": {Kernel{Sysctls: []string{"debug.kprobes-optimization"}}, Misused},
		"another sysctl":           {Kernel{Sysctls: []string{"kernel.panic=1"}}, Misused},
		"too many tasks":           {Kernel{Tasks: tasks}, Misused},
		"a program without a dump": {Kernel{Jobs: []Job{ProgramJob([]string{"/bin/true"})}}, Unusable},
		"a task without a dump":    {Kernel{As: "1"}, Unusable},
		"a log without a dump":     {Kernel{Dmesg: true}, Unusable},
		"uprobes without a dump":   {Kernel{Points: []UserPoint{{File: "/bin/true", Place: "main"}}}, Unusable},
		"events without a dump":    {Kernel{Events: []string{"e:x sched.sched_switch"}}, Unusable},
	} {
		t.Run(name, func(t *testing.T) {
			var e *Error
			require.ErrorAs(t, c.plan.Run(guest(t), &names{}), &e)
			require.Equal(t, c.kind, e.Kind, e)
			require.NotContains(t, e.Error(), "\n")
		})
	}
}

// fixed is a sink that writes an event's type, as bytes of an output.
type fixed struct{ bytes.Buffer }

func (f *fixed) Put(e Event) error {
	if w, ok := e.(Wrote); ok {
		f.Write(w.Data)
		return nil
	}
	if l, ok := e.(Logged); ok {
		fmt.Fprintf(f, "[%s]", l.Line)
		return nil
	}
	fmt.Fprintf(f, "%s ", reflect.TypeOf(e).Name())
	return nil
}

// What guest code can make endless is left out past the bound, all else comes, and it is said what is missing.
func TestCapped(t *testing.T) {
	for name, c := range map[string]struct {
		most   uint64
		events []Event
		want   string
	}{
		"hits":          {8, []Event{Hit{}, Hit{}, Hit{}, Called{}, Done{}, Counters{}}, "Hit Hit Called [1 events more are not printed: the output has reached --max-output 8]Done Counters "},
		"none":          {8, []Event{Hit{}, Called{}, Done{}, Counters{}}, "Hit Called Done Counters "},
		"a step":        {0, []Event{Step{}, Accessed{}, Returned{}, Done{}}, "[3 events more are not printed: the output has reached --max-output 0]Done "},
		"a log":         {1, []Event{Logged{Line: "a"}, Logged{Line: "b"}, Done{}}, "[a][1 events more are not printed: the output has reached --max-output 1]Done "},
		"output":        {3, []Event{Wrote{FD: 1, Data: []byte("abc")}, Wrote{FD: 1, Data: []byte("d")}, Done{}}, "abc[1 events more are not printed: the output has reached --max-output 3]Done "},
		"workload":      {3, []Event{Logged{workload, "abc"}, Logged{workload, "d"}, Done{}}, "[abc][1 events more are not printed: the output has reached --max-output 3]Done "},
		"all of it":     {3, []Event{Done{}, Wrote{FD: 1, Data: []byte("abcd"), All: true, Lost: 4}}, "Done [8 bytes more were written, and are not shown (--max-output)]"},
		"all that fits": {9, []Event{Done{}, Wrote{FD: 1, Data: []byte("abcd"), All: true}}, "Done abcd"},
		"lost before":   {9, []Event{Done{}, Wrote{FD: 1, Data: []byte("abcd"), All: true, Lost: 2}}, "Done abcd[2 bytes more were written, and are not shown (--max-output)]"},
	} {
		t.Run(name, func(t *testing.T) {
			out := &fixed{}
			to := Capped(out, c.most, func() uint64 { return uint64(out.Len()) })
			for _, e := range c.events {
				if err := to.Put(e); err != nil {
					require.ErrorIs(t, err, ErrOutput)
					require.EqualError(t, err, "the output has reached --max-output 3, and the program had not ended")
					require.Contains(t, []string{"output", "workload"}, name)
				}
			}
			require.Equal(t, c.want, out.String())
		})
	}
}

// Tee puts an event into every Sink, even after one has failed, and returns the error.
func TestTeeJoinsErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	var got names
	to := Tee(Func(func(Event) error { return broken }), &got)
	require.ErrorIs(t, to.Put(Wrote{}), broken)
	require.Equal(t, names{"Wrote"}, got)
}

func TestRecords(t *testing.T) {
	at, missed := x86.Addr(0x1000), uint64(2)
	probe := Probe{Kind: "kprobe", Text: "gcd", Addr: &at, Hits: 1, Missed: &missed}
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"refused":        {RefusedProbe{Probe: Probe{Kind: "watchpoint", Text: "x"}, Err: errno.ENOSPC}, `{"event":"refused","kind":"watchpoint","probe":"x","errno":-28,"error":"no space left on device"}`},
		"trace":          {Traced{"# head\n one\n two\n"}, `{"event":"trace","detail":" one"}{"event":"trace","detail":" two"}`},
		"no time":        {Returned{Probe: &probe, Value: 6, Duration: -1}, `{"event":"return","kind":"kprobe","probe":"gcd","addr":"0x1000","cpu":0,"task":0,"time_ns":0,"value":"0x6"}`},
		"a duration":     {Returned{Probe: &probe, Where: Where{CPU: 1, Task: 2, Now: 3}, Duration: 4}, `{"event":"return","kind":"kprobe","probe":"gcd","addr":"0x1000","cpu":1,"task":2,"time_ns":3,"value":"0x0","duration_ns":4}`},
		"of a process":   {Step{Where: Where{PID: 100, Task: 101}, Number: 1, Addr: at, Text: "trap"}, `{"event":"step","addr":"0x1000","pid":100,"task":101,"time_ns":0,"step":1,"detail":"trap"}`},
		"call":           {Called{Call: "f()", Value: 1, Result: "1", Buffers: []Buffer{{Arg: 1, Data: []byte("a\x00")}}}, `{"event":"call","task":0,"call":"f()","value":"0x1","result":"1","buffers":[{"arg":1,"hex":"6100","shown":"\"a\" {61 00}"}]}`},
		"failed call":    {Failed{Call: "f()", Err: errors.New("a fault")}, `{"event":"failed","task":0,"call":"f()","error":"a fault"}`},
		"failed program": {Failed{Task: -1, Call: "/bin/x"}, `{"event":"failed","call":"/bin/x"}`},
		"not UTF-8":      {Wrote{FD: 2, Data: []byte{0xff}}, `{"event":"output","kind":"stderr","detail":"\ufffd","hex":"ff"}`},
		"no output":      {Wrote{FD: 1, All: true}, ``},
		"counters":       {Counters{Probes: []Probe{probe, {Kind: "watchpoint", Text: "w"}}}, `{"event":"counters","kind":"kprobe","probe":"gcd","addr":"0x1000","hits":1,"nmissed":2}{"event":"counters","kind":"watchpoint","probe":"w","hits":0}`},
		"stats":          {Counters{Text: "text"}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			o := NewJSON(&b)
			require.NoError(t, o.Put(c.event))
			require.NoError(t, o.Flush())
			require.Equal(t, c.want, strings.ReplaceAll(b.String(), "\n", ""))
		})
	}
}

// prog is a program that calls twice(3), and returns what it returns.
func prog(t *testing.T) *Files {
	t.Helper()
	b, err := tinyprogram.Build(nil,
		tinyprogram.Function{Name: "_start", Text: fmt.Sprintf("mov $0x3,%%edi\ncall 0x%x\nmov %%eax,%%edi\nmov $0x3c,%%eax\nsyscall", uint64(tinyprogram.At(1)))},
		tinyprogram.Function{Name: "twice", Text: "push %rbx\nlea (%rdi,%rdi,1),%eax\npop %rbx\nret"})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "prog")
	require.NoError(t, os.WriteFile(name, b, 0o755))
	files, err := OpenFiles(name)
	require.NoError(t, err)
	return files
}

// A program without a kernel gives events of the same types.
func TestEventsOfAProgram(t *testing.T) {
	rules, ok := profile.Named(profile.Default)
	require.True(t, ok)
	files := prog(t)
	point, err := ParseUserPoint(files.program.Name+":twice", false)
	require.NoError(t, err)
	back, err := ParseUserPoint(files.program.Name+":twice", true)
	require.NoError(t, err)
	var list []Event
	p := Program{Files: files, Args: []string{"prog"}, Points: []UserPoint{point, back}, Rules: rules, Steps: true, Counters: true}
	err = p.Run(Func(func(e Event) error {
		list = append(list, e)
		return nil
	}))
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 6, exit.Code)

	var got names
	for _, e := range list {
		if _, step := e.(Step); !step {
			_ = got.Put(e)
		}
	}
	require.Equal(t, names{"Planted", "Planted", "Started", "Hit", "Returned", "Done", "Counters", "Exited", "Traced"}, got)
	for _, e := range list {
		if c, ok := e.(Counters); ok {
			require.Equal(t, []string{"uprobe", "uretprobe"}, []string{c.Probes[0].Kind, c.Probes[1].Kind})
			require.EqualValues(t, 1, c.Probes[0].Hits)
			require.EqualValues(t, 1, c.Probes[1].Hits)
		}
		if r, ok := e.(Returned); ok {
			require.EqualValues(t, 6, r.Value)
		}
	}
}

// TestModulesWithoutFiles: a plan that names modules, and has nothing that finds them, is refused before anything runs.
func TestModulesWithoutFiles(t *testing.T) {
	var e *Error
	require.ErrorAs(t, (&runner{}).set(&HostProgram{Modprobe: []string{"veth"}}, nil), &e)
	require.Equal(t, Misused, e.Kind)
}

func TestErrorsOfAProgramHaveTheirKind(t *testing.T) {
	rules, _ := profile.Named(profile.Default)
	files := prog(t)
	name := files.program.Name
	for text, c := range map[string]struct {
		plan Program
		kind Kind
	}{
		"no symbol":     {Program{Points: []UserPoint{{File: name, Place: "nosuch"}}}, Refused},
		"no place":      {Program{Points: []UserPoint{{File: name, Place: "a+b"}}}, Misused},
		"another file":  {Program{Points: []UserPoint{{File: "/nosuch", Place: "x"}}}, Refused},
		"no definition": {Program{Events: []string{"p:x " + name + ":zz"}}, Misused},
		"no process":    {Program{PID: 5}, Misused},
		"no processor":  {Program{CPUModel: "nosuch"}, Misused},
	} {
		t.Run(text, func(t *testing.T) {
			c.plan.Files, c.plan.Args, c.plan.Rules = files, []string{name}, rules
			var e *Error
			require.ErrorAs(t, c.plan.Run(&names{}), &e)
			require.Equal(t, c.kind, e.Kind, e)
		})
	}
	_, err := OpenFiles(filepath.Join(t.TempDir(), "nosuch"))
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, Unusable, e.Kind)
}
