package script_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/script"
)

// reader is a language's way to read a script.
type reader func(img *kimage.Image, text string) (*script.Script, error)

var languages = map[string]reader{
	"stap":     func(img *kimage.Image, text string) (*script.Script, error) { return script.Stap(img, text, nil) },
	"bpftrace": func(img *kimage.Image, text string) (*script.Script, error) { return script.Bpftrace(img, text, nil) },
}

// counting are scripts that print how often a function was called, and its first argument.
var counting = map[string]string{
	"stap":     `global n probe kprobe.function("%s") { n++; printf("%s %%d\n", int_arg(1)) } probe end { printf("@n: %%d\n", n) }`,
	"bpftrace": `kprobe:%s { $x = (int32)arg0; printf("%s %%d\n", $x); @n = count(); } `,
}

func open(t *testing.T) *kprobelab.Lab {
	lab, err := kprobelab.Open("", &kprobelab.Options{Optimize: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lab.Close() })
	return lab
}

func call(t *testing.T, lab *kprobelab.Lab, name string, args ...any) {
	t.Helper()
	_, err := lab.Call(name, args...)
	require.NoError(t, err)
}

// lines are the lines of a script's output, without the empty ones.
func lines(out *bytes.Buffer) (list []string) {
	for l := range strings.Lines(out.String()) {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	return list
}

// Scripts of both languages, several of each, run on one machine and do not see each other.
func TestScriptsSideBySide(t *testing.T) {
	lab := open(t)
	type one struct {
		run  *script.Run
		out  bytes.Buffer
		want []string
	}
	var list []*one
	for _, function := range []string{"gcd", "crc32_le"} {
		for language, text := range counting {
			s, err := languages[language](lab.Image, fmt.Sprintf(text, function, function))
			require.NoError(t, err)
			o := &one{want: []string{function + " 12", function + " 30", "@n: 2"}}
			o.run, err = s.Start(lab, &script.Output{Out: &o.out})
			require.NoError(t, err)
			list = append(list, o)
		}
	}
	for _, n := range []int{12, 30} {
		call(t, lab, "gcd", n, 18)
		call(t, lab, "crc32_le", n, "abc", 3)
	}
	for _, o := range list {
		require.NoError(t, o.run.Close())
		require.Equal(t, o.want, lines(&o.out))
	}
	call(t, lab, "gcd", 7, 18)
	for _, o := range list {
		require.Equal(t, o.want, lines(&o.out), "it is closed")
		require.NoError(t, o.run.Close())
	}
	require.Empty(t, lab.Kprobes.List())
}

// What a language keeps of one script is of that script: several are read at once.
func TestScriptsAreReadAtOnce(t *testing.T) {
	img, err := kprobelab.OpenImage("", nil)
	require.NoError(t, err)
	texts := map[string]string{
		`global a probe begin { a[1] = "x" println(a[1], strlen("abc")) exit() }`:                                "stap",
		`function f(n) { return n * 2 } probe begin { println(f(21)) exit() }`:                                   "stap",
		`probe kernel.function("gcd") { println($a) }`:                                                           "stap",
		`probe timer.ms(10) { printf("%d %s\n", gettimeofday_ms() > 0, execname()) exit() }`:                     "stap",
		`kprobe:gcd { @[comm] = hist(arg0); }`:                                                                   "bpftrace",
		`probe syscall.read, nd_syscall.open* ? { println(name, argstr) }`:                                       "stap",
		`global h probe begin { h <<< 3 h <<< 40 print(@hist_log(h)) println(@count(h), @sum(h)) exit() }`:       "stap",
		`@define twice(x) %( @x * 2 %) probe begin { println(@twice(21), errno_str(19), task_state(0)) exit() }`: "stap",
		`%( 1 == 1 %? probe begin { try { error("e") } catch (m) { println(m) } exit() } %: probe never { } %)`:  "stap",
		`probe begin { println(tokenize("a b c", " "), tokenize("", " "), tokenize("", " ")) exit() }`:           "stap",
		`probe begin { println(tokenize("x,y", ","), tokenize("", ",")) exit() }`:                                "stap",
		`BEGIN { @h = lhist(3, 0, 10, 1); @q = stats(4); printf("%s\n", strerror(19)); exit(); }`:                "bpftrace",
		`enum e { A = 3, B }; BEGIN { $x = B; printf("%d %s\n", $x, (enum e)3); exit(); }`:                       "bpftrace",
		`BEGIN { printf("%s\n", strftime("%Y", nsecs)); exit(); }`:                                               "bpftrace",
		`struct s { int a; char b[4]; }; BEGIN { printf("%d\n", sizeof(struct s)); exit(); }`:                    "bpftrace",
		`interval:ms:10 { @n++; if (@n > 3) { exit(); } } END { printf("%s\n", probe); print((1, "two", 3)); }`:  "bpftrace",
	}
	ran := func(language, text string) string {
		s, err := languages[language](img, text)
		if err != nil {
			return err.Error()
		}
		if s.Waits() {
			return "waits"
		}
		var out bytes.Buffer
		run, err := s.Start(nil, &script.Output{Out: &out})
		if err != nil {
			return err.Error()
		}
		run.Wait(time.Second)
		if err := run.Close(); err != nil {
			return err.Error()
		}
		return out.String()
	}
	alone := map[string]string{}
	for text, language := range texts {
		alone[text] = ran(language, text)
	}
	var all sync.WaitGroup
	for range 4 {
		for text, language := range texts {
			all.Go(func() {
				if got := ran(language, text); got != alone[text] {
					t.Errorf("%s: %q, alone %q", text, got, alone[text])
				}
			})
		}
	}
	all.Wait()
}

// What tokenize has left belongs to a running script: not to another one, nor to the same one started again.
func TestWhatIsLeftOfATextIsOfOneScript(t *testing.T) {
	lab := open(t)
	const text = `global n probe kprobe.function("gcd") { println(n++ ? tokenize("", " ") : tokenize("%s", " ")) }`
	var outs [2]bytes.Buffer
	for range 2 {
		var runs []*script.Run
		for i, words := range []string{"a b c", "1 2"} {
			s, err := script.Stap(lab.Image, fmt.Sprintf(text, words), nil)
			require.NoError(t, err)
			outs[i].Reset()
			run, err := s.Start(lab, &script.Output{Out: &outs[i]})
			require.NoError(t, err)
			runs = append(runs, run)
		}
		for range 4 {
			call(t, lab, "gcd", 12, 18)
		}
		for _, r := range runs {
			require.NoError(t, r.Close())
		}
		require.Equal(t, "a\nb\nc\n\n", outs[0].String())
		require.Equal(t, "1\n2\n\n\n", outs[1].String())
	}
}

func TestAScriptIsStartedAgain(t *testing.T) {
	for language, text := range counting {
		t.Run(language, func(t *testing.T) {
			lab := open(t)
			s, err := languages[language](lab.Image, fmt.Sprintf(text, "gcd", "gcd"))
			require.NoError(t, err)
			for range 2 {
				var out bytes.Buffer
				run, err := s.Start(lab, &script.Output{Out: &out})
				require.NoError(t, err)
				call(t, lab, "gcd", 12, 18)
				require.NoError(t, run.Close())
				require.Equal(t, []string{"gcd 12", "@n: 1"}, lines(&out))
			}
		})
	}
}

func TestScriptsThatAreNotAccepted(t *testing.T) {
	lab := open(t)
	for _, c := range []struct{ language, text, says, ends string }{
		{"stap", `probe begin {`, "parse error: expected statement", "Pass 1: parse failed."},
		{"stap", `probe begin { println(x[1]) }`, "semantic error", "Pass 2: analysis failed."},
		{"stap", `probe kernel.function("no_such") { }`, "semantic error: while resolving probe point", "Pass 2: analysis failed."},
		{"bpftrace", `BEGIN { printf("%d", }`, "ERROR: syntax error", "the script is not accepted"},
		{"bpftrace", `BEGIN { @x = nothing(1); }`, "ERROR: ", "the script is not accepted"},
	} {
		_, err := languages[c.language](lab.Image, c.text)
		var refused *script.RefusedError
		require.ErrorAs(t, err, &refused, c.text)
		require.Contains(t, refused.Text, c.says, c.text)
		require.EqualError(t, err, c.ends, c.text)
	}
}

func TestScriptsThatCannotStart(t *testing.T) {
	lab := open(t)
	s, err := script.Bpftrace(lab.Image, `kprobe:gcd { }`, nil)
	require.NoError(t, err)
	_, err = s.Start(nil, nil)
	require.ErrorContains(t, err, "no machine")
	other, err := kprobelab.Open("", nil)
	require.NoError(t, err)
	defer other.Close()
	_, err = s.Start(other, nil)
	require.ErrorContains(t, err, "the script is for")
	s, err = script.Bpftrace(lab.Image, `kprobe:no_such* { }`, nil)
	require.NoError(t, err)
	require.ErrorIs(t, s.Attachable(), script.ErrNoProbe)
	_, err = s.Start(lab, nil)
	require.ErrorIs(t, err, script.ErrNoProbe)
	require.Empty(t, lab.Kprobes.List())
}

// A script that ends with an error says so once it is closed, and its probes are gone.
func TestAScriptThatEndsWithAnError(t *testing.T) {
	lab := open(t)
	s, err := script.Stap(lab.Image, `probe kprobe.function("gcd") { error("enough") } probe error { println("end") }`, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	var log []string
	run, err := s.Start(lab, &script.Output{Out: &out, Log: func(line string) { log = append(log, line) }})
	require.NoError(t, err)
	call(t, lab, "gcd", 12, 18)
	call(t, lab, "gcd", 12, 18)
	require.True(t, run.Ended())
	require.EqualError(t, run.Close(), "Pass 5: run failed.")
	require.Equal(t, []string{"end"}, lines(&out))
	require.Contains(t, strings.Join(log, "\n"), "ERROR: enough")
	require.Empty(t, lab.Kprobes.List())
	require.EqualValues(t, 1, run.Counts()[0].Hits)
}
