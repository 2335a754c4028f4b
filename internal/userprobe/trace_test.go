package userprobe_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/tinyprogram"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/userprobe"
	"kprobelab/machine"
	"kprobelab/profile"
)

// f0 calls f1(7, "text", -2), whose result is its exit code.
func textProgram(t testing.TB) *process.File {
	b, err := tinyprogram.Build([]byte("text\x00\xfe\xff\x05\x00\x00\x20\x40\x00\x00\x00\x00\x00"),
		tinyprogram.Function{Name: "_start", Text: "mov $0x7,%edi\nmov $0x402000,%esi\nmov $0xfffffffe,%edx\ncall 0x401080\nmov %eax,%edi\nmov $0x3c,%eax\nsyscall"},
		tinyprogram.Function{Name: "f", Text: "lea 0x1(%rdi),%eax\nret"})
	require.NoError(t, err)
	return &process.File{Name: "/bin/prog", Data: b}
}

// trace runs the program with events, and gives the lines of trace.
func trace(t *testing.T, release string, lines ...string) []string {
	c, ok := profile.Named(release)
	require.True(t, ok)
	f := textProgram(t)
	k := userprobe.New(c)
	tr := userprobe.NewTrace(c, k, f)
	for _, line := range lines {
		_, err := tr.Define(line)
		require.NoError(t, err)
	}
	require.NoError(t, tr.Enable())
	e, err := engine.Named("interp")
	require.NoError(t, err)
	p, err := process.New(process.Config{Program: f, Tracer: k}, e.New)
	require.NoError(t, err)
	defer p.Close()
	tr.Attach(p)
	x, err := p.Run()
	require.NoError(t, err)
	require.Equal(t, 8, x.Code)
	var out []string
	for line := range strings.Lines(tr.Text()) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	require.Len(t, out, len(lines))
	require.Contains(t, tr.Profile(), "/bin/prog ")
	return out
}

func TestFetch(t *testing.T) {
	const at = "p:g/e /bin/prog:0x1080 "
	for name, c := range map[string]struct{ release, line, want string }{
		"nothing":          {"6.1", "p /bin/prog:0x1080", "p_prog_0x1080: (0x401080)"},
		"automatic_return": {"6.1", "r /bin/prog:0x1080", "p_prog_0x1080: (0x401014 <- 0x401080)"},
		"return_suffix":    {"6.1", "p:g/e /bin/prog:0x1080%return $retval", "e: (0x401014 <- 0x401080) arg1=0x8"},
		"register":         {"6.1", at + "%di n=%di:s32", "e: (0x401080) arg1=0x7 n=7"},
		"register_of_4.4":  {"4.4", at + "%di:u8", "e: (0x401080) arg1=0x7"},
		"signed":           {"6.1", at + "%dx:s32 %dx:s64 %dx:u8", "e: (0x401080) arg1=-2 arg2=4294967294 arg3=254"},
		"string":           {"6.1", at + "+0(%si):string", `e: (0x401080) arg1="text"`},
		"ustring":          {"6.1", at + "+u0(%si):ustring", `e: (0x401080) arg1="text"`},
		"string_fault":     {"6.1", at + "+0(%di):string", "e: (0x401080) arg1=(fault)"},
		"word_fault":       {"6.1", at + "+0(%di) +0(+8(%di)):u8", "e: (0x401080) arg1=0x0 arg2=0"},
		"memory":           {"6.1", at + "@0x402005:s16 +5(%si):s8", "e: (0x401080) arg1=-2 arg2=-2"},
		"file_offset":      {"6.1", at + "@+0x2000:string", `e: (0x401080) arg1="text"`},
		"file_offset_7.0":  {"7.0", at + "@+0x2000:string @+0x2000:x32", "e: (0x401080) arg1=(fault) arg2=0x0"},
		"twice_the_offset": {"7.0", at + "@+0x1000:string +0(@+0x1000):u8 @+0x1000:x8[2]", `e: (0x401080) arg1="text" arg2=0 arg3={0x74,0x65}`},
		"twice":            {"6.1", at + "+0(+9(%si)):string", `e: (0x401080) arg1="text"`},
		"array":            {"6.1", at + "+0(%si):x8[4]", "e: (0x401080) arg1={0x74,0x65,0x78,0x74}"},
		"char_array":       {"6.12", at + "+0(%si):char[2]", "e: (0x401080) arg1={'t','e'}"},
		"bitfield":         {"6.1", at + "%di:b2@1/8", "e: (0x401080) arg1=3"},
		"stack":            {"6.1", at + "$stack0", "e: (0x401080) arg1=0x401014"},
		"comm":             {"6.1", at + "$comm", `e: (0x401080) arg1="prog"`},
		"immediate":        {"6.1", at + `\0x10 \"x"`, `e: (0x401080) arg1=0x10 arg2="x"`},
		"symbol":           {"6.1", at + "%di:symbol", "e: (0x401080) arg1=0x7"},
	} {
		t.Run(name, func(t *testing.T) {
			line := trace(t, c.release, c.line)[0]
			require.True(t, strings.HasSuffix(line, ": "+c.want), line)
			flags := map[string]string{"4.4": "d...", "6.1": "DNZff", "6.12": "DNZff", "7.0": "DBZff"}[c.release]
			require.True(t, strings.HasPrefix(line, "            prog-100     [000] "+flags+"     0.00"), line)
		})
	}
}

func TestSeveral(t *testing.T) {
	lines := trace(t, "6.1", "p:a /bin/prog:0x1080", "p:b /bin/prog:0x1080", "r:c /bin/prog:0x1080")
	require.Contains(t, lines[0], "a: ")
	require.Contains(t, lines[1], "b: ")
	require.Contains(t, lines[2], "c: ")
}

func TestRefusedDefinitions(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		id    definition.ID
		errno errno.Errno
	}{
		"no_file":            {"p /bin/other:0x10", definition.FileNotFound, errno.ENOENT},
		"no_offset":          {"p /bin/prog:f", definition.NotAProbe, errno.ECANCELED},
		"bad_offset":         {"p /bin/prog:1x", definition.BadUprobeOffs, errno.EINVAL},
		"suffix":             {"p /bin/prog:0x10%ret", definition.BadAddrSuffix, errno.EINVAL},
		"counter_not_closed": {"p /bin/prog:0x10(0x2", definition.RefcntOpenBrace, errno.EINVAL},
		"counter_suffix":     {"p /bin/prog:0x10(0x2)x", definition.BadRefcntSuffix, errno.EINVAL},
		"counter_number":     {"p /bin/prog:0x10(x)", definition.BadRefcnt, errno.EINVAL},
		"symbol":             {"p /bin/prog:0x1080 @main", definition.SymOnUprobe, errno.EINVAL},
		"argument":           {"p /bin/prog:0x1080 $arg1", definition.BadVar, errno.EINVAL},
		"retval":             {"p /bin/prog:0x1080 $retval", definition.RetvalOnProbe, errno.EINVAL},
		"event_name":         {"p:1x /bin/prog:0x1080", definition.BadEventName, errno.EINVAL},
		"twice":              {"p:taken /bin/prog:0x1080", definition.EventExist, errno.EEXIST},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := profile.Named("6.1")
			tr := userprobe.NewTrace(p, userprobe.New(p), textProgram(t))
			_, err := tr.Define("p:taken /bin/prog:0x1000")
			require.NoError(t, err)
			_, err = tr.Define(c.line)
			var e *definition.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.Equal(t, c.id, e.ID)
			require.Equal(t, c.errno, e.Errno)
			require.Equal(t, c.id == definition.NotAProbe, e.ID.Text(&p.Tracing) == "")
		})
	}
	for name, c := range map[string]struct {
		line string
		want errno.Errno
	}{
		"instruction_that_is_refused": {"p /bin/prog:0x1100", errno.ENOTSUPP}, // int3
		"past_the_end":                {"p /bin/prog:0x100000", errno.EINVAL},
		"odd_counter":                 {"p /bin/prog:0x1080(0x2001)", errno.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := profile.Named("6.1")
			_, err := userprobe.NewTrace(p, userprobe.New(p), textProgram(t)).Define(c.line)
			require.Equal(t, c.want, errno.Of(err))
		})
	}
}

// Rule: a definition is refused with a reason, or the program runs to its end.
func FuzzDefine(f *testing.F) {
	for _, line := range []string{"p:g/e /bin/prog:0x1080(0x2000) %di:b2@1/8", "r /bin/prog:0x1080%return $retval:string", "p /bin/prog:0 +0(+8(%si)):x8[3] @+0x2000:string"} {
		f.Add(line)
	}
	c, _ := profile.Named("6.12")
	e, err := engine.Named("interp")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, line string) {
		prog := textProgram(t)
		k := userprobe.New(c)
		tr := userprobe.NewTrace(c, k, prog)
		if _, err := tr.Define(line); err != nil {
			require.NotZero(t, errno.Of(err), line)
			return
		}
		if err := tr.Enable(); err != nil {
			require.NotZero(t, errno.Of(err), line)
			return
		}
		p, err := process.New(process.Config{Program: prog, Tracer: k}, e.New)
		require.NoError(t, err)
		defer p.Close()
		tr.Attach(p)
		_, err = p.Run()
		require.NotErrorIs(t, err, machine.ErrHandler)
	})
}

// The text of a trace has a bound. What does not fit counts as written, and as lost.
func TestTracesThatAreTooLong(t *testing.T) {
	c, ok := profile.Named(profile.Default)
	require.True(t, ok)
	line := trace(t, profile.Default, "p:a/one /bin/prog:0x1080")[0]
	for room, want := range map[int]string{2*len(line) + 2: "# entries-in-buffer/entries-written: 2/3 ", 3*len(line) + 3: "# entries-in-buffer/entries-written: 3/3 ", 0: "# entries-in-buffer/entries-written: 0/3 "} {
		f := textProgram(t)
		k := userprobe.New(c)
		tr := userprobe.NewTrace(c, k, f)
		require.Equal(t, bounded.UserTrace, tr.Room())
		tr.SetRoom(room)
		hits := 0
		tr.OnHit = func(*userprobe.Record) { hits++ }
		for _, name := range []string{"one", "two", "six"} {
			_, err := tr.Define("p:a/" + name + " /bin/prog:0x1080")
			require.NoError(t, err)
		}
		require.NoError(t, tr.Enable())
		e, err := engine.Named("interp")
		require.NoError(t, err)
		p, err := process.New(process.Config{Program: f, Tracer: k}, e.New)
		require.NoError(t, err)
		tr.Attach(p)
		_, err = p.Run()
		require.NoError(t, err)
		require.Contains(t, tr.Text(), want)
		require.Equal(t, 3, hits, "who is told of hits is told of all")
		p.Close()
	}
}
