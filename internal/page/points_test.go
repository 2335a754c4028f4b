package page_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page"
	"kprobelab/profile"
)

// The answers that come row by row are those of the whole function.
func TestAnswersRowByRow(t *testing.T) {
	for name, of := range map[string]map[string]any{
		"image": {"do": "function", "name": "gcd"}, "bytes": {"do": "code", "hex": "55 4889e5 eb03 90 48d1e0 ebfa 909090909090 c3", "release": "4.4"},
		"assembly": {"do": "code", "asm": "top: dec %rdi\njne top\nret"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &page.Page{}
			var whole, laid page.Function
			ask(t, p, of, nil, &whole)
			of["lay"] = true
			ask(t, p, of, nil, &laid)
			require.Len(t, laid.Bytes, len(whole.Bytes))
			of["do"] = "answers"
			jumps := 0
			for i, b := range laid.Bytes {
				w := whole.Bytes[i]
				require.Equal(t, []any{w.Value, w.Text, w.Length, w.To}, []any{b.Value, b.Text, b.Length, b.To})
				if b.Kind == "inside" {
					require.Equal(t, "inside", w.Kind)
					continue
				}
				require.Empty(t, b.Kind)
				var one []page.Byte
				of["at"] = []int{i}
				ask(t, p, of, nil, &one)
				require.Len(t, one, 1)
				one[0].Value, one[0].Text, one[0].Length, one[0].To = w.Value, w.Text, w.Length, w.To
				require.Equal(t, w, one[0])
				if b.To != nil {
					jumps++
				}
			}
			require.Positive(t, jumps)
		})
	}
	for _, q := range []string{`{"do":"answers","name":"gcd","at":[-1]}`, `{"do":"answers","name":"gcd","at":[4096]}`, `{"do":"release","name":"gcd","at":[0,1],"by":"6.1"}`, `{"do":"release","name":"gcd","at":[0],"by":"1.0"}`, `{"do":"release","name":"gcd","at":[9999],"by":"6.1"}`} {
		require.Contains(t, complaint(t, &page.Page{}, q, nil), "not one that the page has made", q)
	}
}

// The answer by a release's rules is that of the image opened by them.
func TestAnAnswerByEachRelease(t *testing.T) {
	for _, function := range []string{"gcd", "sys_open", "opt_yes", "strlen"} {
		for _, release := range profile.All() {
			p, other := &page.Page{}, &page.Page{}
			var f page.Function
			other.Answer(`{"do":"open","release":"`+release+`"}`, nil)
			ask(t, other, map[string]any{"do": "function", "name": function}, nil, &f)
			for i, b := range f.Bytes {
				if b.Text == "" {
					continue
				}
				var by page.ByRelease
				ask(t, p, map[string]any{"do": "release", "name": function, "at": []int{i}, "by": release}, nil, &by)
				want, got := b, by.Byte
				want.Value, want.Text, want.Length, want.To = "", "", 0, nil
				a, _ := json.Marshal(want)
				c, _ := json.Marshal(got)
				require.JSONEq(t, string(a), string(c), "%s+%d by %s", function, i, release)
			}
		}
	}
}

// Each probe that can be watched can be run, and a function without a known call gets a call with zeros.
func TestAProbeIsWatched(t *testing.T) {
	p := &page.Page{}
	for function, calls := range map[string]string{"strlen": `strlen("hello")`, "gcd": "gcd(12, 18)\ngcd(7, 21)", "leaf2": "leaf2(0, 0)"} {
		var e struct{ Watch *page.Scenario }
		ask(t, p, map[string]any{"do": "explain", "name": function, "offset": 0}, nil, &e)
		require.NotNil(t, e.Watch, function)
		require.Equal(t, "kprobe "+function, e.Watch.Probes)
		var v page.View
		ask(t, p, map[string]any{"do": "watch", "probes": e.Watch.Probes, "calls": e.Watch.Calls, "release": e.Watch.Release, "by": "protocol", "sub": -1}, nil, &v)
		require.Len(t, v.CPUs, strings.Count(calls, "\n")+1)
	}
	var e struct{ Watch *page.Scenario }
	ask(t, p, map[string]any{"do": "explain", "name": "gcd", "offset": 6}, nil, &e)
	require.Nil(t, e.Watch, "a refused probe cannot be watched")
}

func TestTheLineOfTheCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		q          map[string]any
		line, note string
	}{
		"place":    {map[string]any{"name": "gcd", "offset": 5}, "kprobelab explain - gcd+0x5", ""},
		"image":    {map[string]any{"name": "kfree", "offset": 230, "release": "6.1"}, "kprobelab explain --profile 6.1 - kfree+0xe6", ""},
		"bytes":    {map[string]any{"hex": "55 c3", "offset": 1}, "kprobelab explain --hex 55c3 +0x1", ""},
		"assembly": {map[string]any{"asm": "pushq %rbp", "release": "4.4"}, "kprobelab explain --profile 4.4 --hex 55 +0x0", ""},
		"machine":  {map[string]any{"probes": "kprobe strlen+0x5 post\n", "calls": `strlen("it's")`}, `kprobelab run --steps --kprobe strlen+0x5 --call 'strlen("it'\''s")'`, ""},
		"two":      {map[string]any{"probes": "kprobe gcd+0x5\nkretprobe fib:3", "calls": "gcd(12,18)\nfib(3)", "release": "6.1"}, "kprobelab run --steps --no-post --profile 6.1 --kprobe gcd+0x5 --kretprobe fib:3 --cpus 2 --task 'gcd(12,18)' --task 'fib(3)'", "its scheduler decides who runs when: --seed changes that"},
		"several":  {map[string]any{"probes": "kprobe gcd", "calls": "gcd(1,2); fib(3)"}, "kprobelab run --steps --no-post --kprobe gcd --call 'gcd(1, 2)' --call 'fib(3)'", ""},
		"posts":    {map[string]any{"probes": "kprobe gcd\nkprobe fib post", "calls": "gcd(1,2)", "careless": true}, "kprobelab run --steps --kprobe gcd --kprobe fib --call 'gcd(1, 2)'", "all kprobes have post handlers there; the jump is written with care there"},
	} {
		t.Run(name, func(t *testing.T) {
			var got page.Command
			c.q["do"] = "command"
			ask(t, &page.Page{}, c.q, nil, &got)
			require.Equal(t, page.Command{Line: c.line, Note: c.note}, got)
		})
	}
	require.Contains(t, complaint(t, &page.Page{}, `{"do":"command","probes":"kprobe leaf goto leaf2","calls":"leaf(1)"}`, nil), "the command line has no probe such as")
}

// Intel's syntax is offered in GNU syntax.
func TestIntelSyntaxIsOffered(t *testing.T) {
	p := &page.Page{}
	require.Contains(t, p.Answer(`{"do":"code","asm":"mov rbp, rsp"}`, nil), `"offer":"gnu"`)
	var a page.Asm
	ask(t, p, map[string]any{"do": "gnu", "asm": "mov rbp, rsp"}, nil, &a)
	var f page.Function
	ask(t, p, map[string]any{"do": "code", "asm": a.Asm}, nil, &f)
	require.Len(t, f.Bytes, 3)
}
