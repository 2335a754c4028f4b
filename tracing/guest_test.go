package tracing_test

import (
	"encoding/binary"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobestest"
	"kprobelab/tracing"
	"kprobelab/x86"
)

// guest is tracing over the guest kernel, with its module loaded.
type guest struct {
	testing.TB
	*tracing.Tracing
	l   *kprobelab.Lab
	log []string
}

func newGuest(t testing.TB, kernel string, cpus int, o tracing.Options) *guest {
	return newGuestOf(t, &kprobestest.Options{Profile: kernel, CPUs: cpus}, o)
}

// newGuestOf is one of other choices too.
func newGuestOf(t testing.TB, of *kprobestest.Options, o tracing.Options) *guest {
	of.Modules = []string{"../testdata/demo.ko"}
	l := kprobestest.New(t, of).Lab()
	g := &guest{TB: t, l: l}
	o.Log = func(line string) { g.log = append(g.log, line) }
	var err error
	g.Tracing, err = l.Tracing(&o)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

func (g *guest) write(file, text string) {
	require.NoError(g, g.Write(file, text, true), "%s > %s", text, file)
}

func (g *guest) read(file string) string {
	b, err := fs.ReadFile(g, file)
	require.NoError(g, err)
	return string(b)
}

// define defines events and enables them all.
func (g *guest) define(lines ...string) {
	for _, l := range lines {
		g.write("kprobe_events", l)
	}
	g.write("events/enable", "1")
}

func (g *guest) call(name string, args ...any) uint64 {
	v, err := g.l.Machine.Call(name, args...)
	require.NoError(g, err)
	return v
}

// lines returns the lines of trace, without its head.
func (g *guest) lines() []string {
	var list []string
	for line := range strings.Lines(g.read("trace")) {
		if !strings.HasPrefix(line, "# ") && line != "#\n" && !strings.HasPrefix(line, "#  ") {
			list = append(list, strings.TrimSuffix(line, "\n"))
		}
	}
	return list
}

// values returns the text after the probed place in the only line of trace.
func (g *guest) values() string {
	list := g.lines()
	require.Len(g, list, 1)
	_, text, ok := strings.Cut(list[0], ") ")
	require.True(g, ok, list[0])
	require.NoError(g, g.Write("trace", "", false))
	return text
}

// memory puts words into the guest's heap.
func (g *guest) memory(words ...uint64) x86.Addr {
	b := make([]byte, 8*len(words))
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	at, err := g.l.Machine.Alloc(len(b))
	require.NoError(g, err)
	require.NoError(g, g.l.Machine.WriteMem(at, b))
	return at
}

func (g *guest) textAt(s string) x86.Addr {
	at, err := g.l.Machine.Alloc(len(s) + 1)
	require.NoError(g, err)
	require.NoError(g, g.l.Machine.WriteMem(at, append([]byte(s), 0)))
	return at
}

// TestFetchArguments fetches by every rule of docs/spec 9.4, at the entry of
// leaf2(x, y), where x is a structure in memory.
func TestFetchArguments(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	hello, world := g.textAt("hello"), g.textAt("world")
	inner := g.memory(0x1122334455667788, uint64(hello))
	at := g.memory(0xfedcba9876543210, uint64(inner), uint64(hello), uint64(world), 0)
	for arg, want := range map[string]string{
		"%si":                            "0xfffffffffffffffe",
		"%si:u8":                         "254",
		"%si:s8":                         "-2",
		"%si:s16":                        "-2",
		"%si:s32":                        "-2",
		"%si:s64":                        "-2",
		"%si:x8":                         "0xfe",
		"%si:x16":                        "0xfffe",
		"%si:u32":                        "4294967294",
		"%si:b4@4/8":                     "15",
		"%si:b1@0/32":                    "0",
		"%ip:symbol":                     "leaf2+0x1/0x",
		"%ax:symbol":                     "0x",
		"$arg2:s64":                      "-2",
		"+0(%di)":                        "0xfedcba9876543210",
		"+0(%di):u8":                     "16",
		"+4(%di):x16":                    "0xba98",
		"-8(+8(%di)):x8":                 "0x",
		"+0(+8(%di))":                    "0x1122334455667788",
		"+0(+8(+8(%di))):string":         `"hello"`,
		"+0(%di):b8@8/32":                "50",
		"+0(%di):x8[4]":                  "{0x10,0x32,0x54,0x76}",
		"+0(%di):b4@4/8[4]":              "{1,3,5,7}",
		"+0(+16(%di)):string":            `"hello"`,
		"+16(%di):string[2]":             `{"hello","world"}`,
		"+24(%di):string[2]":             `{"world",(fault)}`,
		"@" + hello.String() + ":string": `"hello"`,
		"@" + hello.String() + ":u8":     "104",
		"@linux_proc_banner+1:x8":        "0x73",
		"\\5":                            "0x5",
		"\\-1:s8":                        "-1",
		`\"abc"`:                         `"abc"`,
		"$comm":                          `"init"`,
		"$stack0:symbol":                 "return_to_host",
		"$stack2048":                     "0x0",
		"+0(%si):string":                 "(fault)",
		"+0(%si):u32":                    "0",
		"+u0(%di):u32":                   "0",
		"+u0(+16(%di)):ustring":          "(fault)",
		"+0(+0(%si))":                    "0x0",
		"%ip:symstr":                     `"leaf2+0x1/0x`,
	} {
		t.Run(arg, func(t *testing.T) {
			g.TB = t
			g.define("p:e leaf2 v=" + arg)
			g.call("leaf2", uint64(at), ^uint64(1))
			got := g.values()
			if arg == "$stack0:symbol" {
				require.Regexp(t, `^v=(0xffffffffc[0-9a-f]+|return_to_host.*)$`, got)
			} else {
				require.True(t, strings.HasPrefix(got, "v="+want), "%s, want %s", got, want)
			}
			g.write("events/enable", "0")
			require.NoError(t, g.Write("kprobe_events", "", false))
		})
	}
	g.TB = t
}

func TestStackArguments(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.define("p:e sum8 $arg1 $arg2 $arg3 $arg4 $arg5 $arg6 $arg7 $arg8 $stack1")
	g.call("sum8", 1, 2, 3, 4, 5, 6, 7, 8)
	require.Equal(t, "arg1=0x1 arg2=0x2 arg3=0x3 arg4=0x4 arg5=0x5 arg6=0x6 arg7=0x7 arg8=0x8 arg9=0x7", g.values())
}

func TestReturnProbes(t *testing.T) {
	g := newGuest(t, "6.12", 1, tracing.Options{})
	g.define("r:out leaf2 r=$retval a=$arg1 b=$arg2", "p:in leaf2 $arg1", "r1:deep recurse $retval")
	g.call("leaf2", 30, 12)
	require.Len(t, g.lines(), 2)
	require.Regexp(t, ` in: \(leaf2\+0x[04]/0x[0-9a-f]+\) x=30$`, g.lines()[0])
	require.Regexp(t, ` out: \(.* <- leaf2\) r=\d+ a=0x1e b=0xc$`, g.lines()[1])
	g.call("recurse", 3)
	require.Regexp(t, `(?m)^  deep  +1  +3$`, g.read("kprobe_profile"), "one instance only")
}

func TestModuleEvents(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.define("p:e demo:demo_ft", "p:later nomod:fn")
	require.Equal(t, []string{"This probe might be able to register after target module is loaded. Continue."}, g.log)
	g.call("demo_ft", 1)
	require.Regexp(t, ` e: \(demo_ft\+0x0/0x[0-9a-f]+ \[demo\]\)$`, g.lines()[0])

	require.NoError(t, g.l.Kprobes.ModuleGoing("demo"))
	require.Contains(t, g.read("kprobes/list"), "[GONE]")
	require.Contains(t, g.read("kprobe_events"), "p:kprobes/e demo:demo_ft\n")
	require.NoError(t, g.l.Kprobes.ModuleComing("demo"))
	require.NoError(t, g.l.Kprobes.ModuleLive("demo"))
	g.ModuleComing("demo")
	require.NotContains(t, g.read("kprobes/list"), "[GONE]")
	g.call("demo_ft", 1)
	require.Len(t, g.lines(), 2, "it is planted anew, and the event is still enabled")
}

func TestSeveralProbesOfAnEvent(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.define("p:e leaf x=%di", "p:e leaf2 x=%si")
	g.call("leaf", 1)
	g.call("leaf2", 2, 3)
	require.Len(t, g.lines(), 2)
	require.Contains(t, g.lines()[1], "e: (leaf2+0x0/")
	require.Contains(t, g.lines()[1], "x=0x3", "each has its own fetch")
	require.Equal(t, 2, strings.Count(g.read("kprobe_profile"), "  e "))

	g.write("kprobe_events", "p:e fib x=%ax")
	require.Contains(t, g.read("kprobes/list"), "fib+0x0    [FTRACE]\n", "a probe of an enabled event is enabled")
	g.write("kprobe_events", "-:e leaf2 x=%si")
	require.Equal(t, "p:kprobes/e leaf x=%di\np:kprobes/e fib x=%ax\n", g.read("kprobe_events"))
	require.EqualError(t, g.Write("kprobe_events", "-:e", true), "write kprobe_events: device or resource busy",
		"the last cannot go while the event is enabled")
	require.Equal(t, "p:kprobes/e fib x=%ax\n", g.read("kprobe_events"))
	g.write("events/kprobes/e/enable", "0")
	g.write("kprobe_events", "-:e")
	require.Empty(t, g.read("kprobe_events"))
	_, err := g.Stat("events/kprobes")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestFieldsAndFileNames: 6.12 knows parameters and their fields from BTF.
func TestFieldsAndFileNames(t *testing.T) {
	g := newGuest(t, "6.12", 1, tracing.Options{})
	g.define("p:e vfs_read count name=file->f_path.dentry->d_name.name:string file:%pD", "p:s snprintf fmt:string size")
	g.call("sys_open", "/etc/hostname", 0, 0)
	g.call("sys_read", 3, make([]byte, 16), 16)
	require.Equal(t, `count=16 name="/etc/hostname" arg3="/etc/hostname"`, g.values())
	g.call("snprintf", make([]byte, 8), 8, "%d", 5)
	require.Equal(t, `fmt="%d" size=8`, g.values())
	require.Contains(t, g.read("kprobe_events"), " arg3=+0x0(+0x")
	require.Contains(t, g.read("events/kprobes/e/format"), "\tfield:u64 count;\toffset:16;\tsize:8;\tsigned:0;\n")
}
