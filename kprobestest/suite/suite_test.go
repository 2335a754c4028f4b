package suite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/report"
	"kprobelab/kprobes"
	"kprobelab/kprobestest/suite"
	"kprobelab/profile"
	"kprobelab/x86"
)

var update = flag.Bool("update", false, "write the answers anew that this program gives")

// lab is the adapter for this program.
type lab struct {
	t        testing.TB
	decision *suite.Decision
	l        *kprobelab.Lab
	start    x86.Addr
	scan     *report.Scan
	probe    *kprobes.Kprobe
	hits     int
}

// newLab loads a decision's text as a module into the guest kernel, with the rules of a
// release.
func newLab(t testing.TB, d *suite.Decision, release string) *lab {
	object := filepath.Join(t.TempDir(), "decision.o")
	require.NoError(t, os.WriteFile(object, d.Object(), 0o600))
	l, err := kprobelab.Open("", &kprobelab.Options{Profile: release, Modules: []string{object}, Optimize: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	k := &lab{t: t, decision: d, l: l, probe: &kprobes.Kprobe{}, scan: report.NewScan(l.Image)}
	for _, s := range l.Image.Symbols() {
		if s.Name == "f" && s.Module != "" {
			k.start = s.Addr
		}
	}
	require.NotZero(t, k.start)
	return k
}

func (k *lab) Register(offset int) string {
	k.hits = 0
	k.probe = &kprobes.Kprobe{Addr: k.start.Add(int64(offset)), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
		k.hits++
		return 0
	}}
	err := k.l.Kprobes.RegisterKprobe(k.probe)
	var e errno.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Name()
	}
	k.t.Fatal(err)
	return ""
}

func (k *lab) explained(offset int) *report.Explanation {
	e, err := k.scan.Explain(fmt.Sprintf("%#x", uint64(k.start)+uint64(offset)))
	require.NoError(k.t, err)
	return e
}

func (k *lab) Runs() string {
	return k.explained(int(k.probe.Addr - k.start)).How
}

func (k *lab) Settle()         { require.NoError(k.t, k.l.Settle()) }
func (k *lab) Optimized() bool { return k.probe.Optimized() }
func (k *lab) Hits() int       { return k.hits }
func (k *lab) Unregister()     { k.l.Kprobes.UnregisterKprobe(k.probe) }

func (k *lab) Call(function string, args []suite.Number) suite.Number {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = uint64(a)
	}
	v, err := k.l.Call(function, list...)
	require.NoError(k.t, err, "%s on %s, with a probe at %s", k.decision.Name, k.l.Kprobes.Config().Name, k.probe.Addr)
	return suite.Number(v)
}

func (k *lab) Text() []byte {
	b := make([]byte, len(k.decision.Text))
	require.NoError(k.t, k.l.Machine.ReadMem(k.start, b))
	return b
}

// answer returns this program's result for each byte.
func (k *lab) answer() (list []suite.Offset) {
	for offset := range k.decision.Text {
		o := suite.Offset{Errno: k.Register(offset)}
		if o.Errno == "" {
			e := k.explained(offset)
			o.Runs = e.How
			if at := int(k.probe.Addr - k.start); at != offset {
				o.At = at
			}
			for _, h := range e.Hazards {
				o.Hazard = string(h.ID)
			}
			k.Settle()
			o.Optimized = k.Optimized()
			if o.Hazard == "" {
				k.Call(k.decision.Call, k.decision.Args)
				o.Hits = k.hits
			}
			k.Unregister()
			k.Settle()
		}
		list = append(list, o)
	}
	return list
}

// releases returns the releases of the suite: all that look where instructions begin. The
// others (2.6.18) take a probe inside of one.
func releases() []string {
	return slices.DeleteFunc(profile.All(), func(name string) bool {
		c, _ := profile.Named(name)
		return !c.Check.Boundary
	})
}

// Rule: every answer of the suite is this program's, on each release; so are the bytes in the text,
// and the calls' results.
func TestDecisions(t *testing.T) {
	list := suite.Decisions()
	if *update {
		write(t, list)
		list = suite.Decisions()
	}
	ask := releases()
	if testing.Short() {
		ask = []string{"4.4", "5.10", "6.1", "6.12"}
	}
	for i := range list {
		d := &list[i]
		t.Run(d.Name, func(t *testing.T) {
			for _, release := range ask {
				differences, known := d.Check(release, newLab(t, d, release))
				require.True(t, known, release)
				require.Empty(t, differences)
			}
		})
	}
}

// write records the answers.
func write(t *testing.T, list []suite.Decision) {
	for i := range list {
		d := &list[i]
		d.Answers = nil
		for _, release := range releases() {
			k := newLab(t, d, release)
			d.Result = k.Call(d.Call, d.Args)
			offsets := k.answer()
			same := slices.IndexFunc(d.Answers, func(a suite.Answer) bool { return slices.Equal(a.Offsets, offsets) })
			if same < 0 {
				d.Answers = append(d.Answers, suite.Answer{Offsets: offsets})
				same = len(d.Answers) - 1
			}
			d.Answers[same].Releases = append(d.Answers[same].Releases, release)
		}
	}
	require.NoError(t, os.WriteFile("decisions.json", layout(t, list), 0o666))
}

// layout writes a line for each field and for each byte's answer.
func layout(t *testing.T, list []suite.Decision) []byte {
	var b bytes.Buffer
	line := func(v any) string {
		s, err := json.Marshal(v)
		require.NoError(t, err)
		return string(s)
	}
	for i, d := range list {
		fmt.Fprintf(&b, "%c{\n \"name\": %s,\n \"about\": %s,\n \"asm\": %s,\n \"text\": %s,\n \"symbols\": %s,\n \"call\": %s, \"args\": %s, \"result\": %s,\n \"answers\": [",
			"[,"[min(i, 1)], line(d.Name), line(d.About), line(d.Asm), line(d.Text), line(d.Symbols), line(d.Call), line(d.Args), line(d.Result))
		for j, a := range d.Answers {
			fmt.Fprintf(&b, "%s{\"releases\": %s, \"offsets\": [", []string{"", ","}[min(j, 1)], line(a.Releases))
			for o := range a.Offsets {
				fmt.Fprintf(&b, "%s\n  %s", []string{"", ","}[min(o, 1)], line(a.Offsets[o]))
			}
			b.WriteString("]}")
		}
		b.WriteString("]}\n")
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// wrong is an implementation with one mistake.
type wrong struct {
	*lab
	mistake string
}

func (k wrong) Register(offset int) string {
	errno := k.lab.Register(offset)
	if errno == "EILSEQ" && k.mistake == "errno" {
		return "EINVAL"
	}
	return errno
}

func (k wrong) Optimized() bool { return k.lab.Optimized() != (k.mistake == "optimized") }

func (k wrong) Runs() string {
	if k.mistake == "how it runs" {
		return "boosted"
	}
	return k.lab.Runs()
}

func (k wrong) Hits() int {
	if k.mistake == "hits" {
		return 0
	}
	return k.lab.Hits()
}

func (k wrong) Call(function string, args []suite.Number) suite.Number {
	if k.mistake == "the result of the call" {
		return 1
	}
	return k.lab.Call(function, args)
}

func (k wrong) Text() []byte {
	b := k.lab.Text()
	if k.mistake == "the text with the probe" {
		b[len(b)-1]++
	}
	return b
}

// Rule: each kind of mistake is a difference that says so.
func TestMistakesAreFound(t *testing.T) {
	d := &suite.Decisions()[0]
	for _, mistake := range []string{"errno", "optimized", "how it runs", "hits", "the result of the call", "the text with the probe"} {
		t.Run(mistake, func(t *testing.T) {
			differences, known := d.Check("6.1", &wrong{newLab(t, d, "6.1"), mistake})
			require.True(t, known)
			require.NotEmpty(t, differences)
			require.Equal(t, mistake, differences[0].What)
			require.Contains(t, differences[0].String(), d.Name+"+0x")
			require.Contains(t, differences[0].String(), " on 6.1: "+mistake+" is ")
		})
	}
	_, known := d.Check("9.9", newLab(t, d, "6.1"))
	require.False(t, known)
}
