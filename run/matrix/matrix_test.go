package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/internal/bounded"
	"kprobelab/run"
)

func TestKernelsThatMakeNoMatrix(t *testing.T) {
	many := make([]string, bounded.MatrixKernels+1)
	for i := range many {
		many[i] = fmt.Sprint("6.", i)
	}
	_, err := New(many[1:])
	require.NoError(t, err)
	for name, list := range map[string][]string{"none": nil, "twice": {"6.1", "6.12", "6.1"}, "too_many": many} {
		_, err := New(list)
		require.ErrorIs(t, err, ErrKernels, name)
		require.NotContains(t, err.Error(), "\n")
	}
}

// Two kernels never have one label, and no label leads into another folder.
func TestLabels(t *testing.T) {
	m, err := New([]string{"6.12", "trixie/rt-amd64", "/a/6.1.core", "b/6.1.core", "./6.1.core", "..", "../..", "a:b\n", "6.1.0-56-cloud-amd64"})
	require.NoError(t, err)
	var got []string
	for _, c := range m.Cells {
		got = append(got, c.Label)
		require.NotContains(t, c.Named("out"), "/")
	}
	require.Equal(t, []string{"6.12", "trixie-rt-amd64", "6.1", "6.1-2", "6.1-3", "..", "..-2", "a_b_", "6.1.0-56-cloud-amd64"}, got)
	c := m.Cells[0]
	for file, want := range map[string]string{"": "", "trace.json": "trace-6.12.json", "a.b/out": "a.b/out-6.12", "out/": "out-6.12", ".hidden": ".hidden-6.12", "/x/a.tar.gz": "/x/a.tar-6.12.gz"} {
		require.Equal(t, want, c.Named(file), file)
	}
}

// cells makes a matrix of what was written.
func cells(t *testing.T, out ...string) *Matrix {
	m, err := New([]string{"a", "b", "c", "d"}[:len(out)])
	require.NoError(t, err)
	for i, text := range out {
		m.Cells[i].Stdout.WriteString(text)
		m.Cells[i].Release = "6." + m.Cells[i].Kernel
	}
	return m
}

func TestDifferences(t *testing.T) {
	m := cells(t, "1\n2\n3\n", "1\n2\n3\n", "1\nx\ny\n3\n", "1\n2\n3")
	m.Cells[1].Stderr.WriteString("-e\n--- looks like a head\n")
	for i, want := range []Difference{
		{},
		{"--- a stderr\n+++ b stderr\n@@ -0,0 +1,2 @@\n+-e\n+--- looks like a head\n", 0, 2},
		{"--- a stdout\n+++ c stdout\n@@ -1,3 +1,4 @@\n 1\n-2\n+x\n+y\n 3\n", 1, 2},
		{"--- a stdout\n+++ d stdout\n@@ -1,3 +1,3 @@\n 1\n 2\n-3\n+3\n\\ No newline at end of file\n", 1, 1},
	} {
		require.Equal(t, want, m.Difference(m.Cells[i]), m.Cells[i].Kernel)
	}
}

// The base is the first kernel that ran; what did not run differs in nothing.
func TestTheFirstKernelDidNotRun(t *testing.T) {
	m := cells(t, "", "1\n", "2\n")
	m.Cells[0].Release, m.Cells[0].Code, m.Cells[0].Err = "", 3, errors.New("it cannot\nbe had")
	m.Cells[2].Code = 7
	require.Equal(t, m.Cells[1], m.Base())
	require.Equal(t, 3, m.Code(), "the first that is not 0")
	var b, d bytes.Buffer
	require.NoError(t, m.Table(&b))
	require.Equal(t, "kernel  release  exit  output\na       -        3     it cannot; be had\nb       6.b      0     the base\nc       6.c      7     differs: +1 -1 lines\n", b.String())
	require.NoError(t, m.Diffs(&d, false))
	require.Equal(t, "\n--- b stdout\n+++ c stdout\n@@ -1,1 +1,1 @@\n-1\n+2\n", d.String())

	none := cells(t, "", "")
	for _, c := range none.Cells {
		c.Release, c.Code, c.Err = "", 3, ErrEnded
	}
	require.Nil(t, none.Base())
	require.NoError(t, none.JSON(&d, "p"))
}

// What follows an output begins in a line of its own.
func TestWhole(t *testing.T) {
	m := cells(t, "", "a", "a\n", "\n")
	for i, want := range []string{"", "a\n\n", "a\n\n", "\n\n"} {
		require.Equal(t, want, string(m.Cells[i].Whole()))
	}
}

func TestDifferencesWithoutEnd(t *testing.T) {
	m := cells(t, "", strings.Repeat("x\n", bounded.MatrixDiff))
	d := m.Difference(m.Cells[1])
	require.Less(t, len(d.Diff), bounded.MatrixDiff+100)
	require.Regexp(t, `\n… \d+ bytes of differences more\n$`, d.Diff)
	require.Equal(t, bounded.MatrixDiff, d.Added, "the count is of all")
}

// All forms hold what is not text, and what XML cannot hold.
func TestOutputThatIsNoText(t *testing.T) {
	m := cells(t, "a\x00\x1b[31m\xff\xfe]]></system-out>&\n", "")
	m.Cells[1].Code, m.Cells[1].Err = 1, errors.New("<\x01>")
	to := m.Cells[0].Records(1 << 20)
	require.NoError(t, to.Put(run.Wrote{FD: 1, Data: []byte("a\xff")}))
	m.Run(t.Context(), func(context.Context, *Cell) {})

	b, err := m.JUnit("p 'a b' <&>")
	require.NoError(t, err)
	var doc suites
	require.NoError(t, xml.Unmarshal(b, &doc))
	require.Equal(t, "a\ufffd\ufffd[31m\ufffd\ufffd]]></system-out>&\n", doc.Suite.Cases[0].Out)
	require.Equal(t, "<\ufffd>", doc.Suite.Cases[1].Error.Message)
	require.Equal(t, suiteCounts{Tests: 2, Errors: 1, Time: doc.Suite.Time}, doc.suiteCounts)

	var j bytes.Buffer
	require.NoError(t, m.JSON(&j, "p"))
	var got document
	require.NoError(t, json.Unmarshal(j.Bytes(), &got))
	require.Equal(t, "61001b5b33316dfffe5d5d3e3c2f73797374656d2d6f75743e260a", got.Kernels[0].StdoutHex)
	require.Empty(t, got.Kernels[0].StderrHex)
	require.JSONEq(t, `{"event":"output","kind":"stdout","detail":"a\ufffd","hex":"61ff"}`, string(got.Kernels[0].Events[0]))
	require.Equal(t, 1, strings.Count(j.String(), "\n"), "one document")
}

// Events that do not end are cut off.
func TestRecordsAreBounded(t *testing.T) {
	c := &Cell{}
	to := c.Records(1000)
	for range 1000 {
		require.NoError(t, to.Put(run.Logged{From: "kernel", Line: "a line"}))
	}
	require.NoError(t, to.Put(run.Done{}))
	require.NoError(t, c.records.Flush())
	require.Less(t, c.events.Len(), 2000)
	require.Contains(t, c.events.String(), "events more are not printed")
}

// JUnit tells a program that failed, a kernel on which it did not run, and one whose turn did not come from each other.
func TestKindsOfFailures(t *testing.T) {
	m := cells(t, "", "", "", "")
	m.Cells[1].Code = 1
	m.Cells[2].Code, m.Cells[2].Err = 6, run.ErrFailed
	m.Cells[3].Code, m.Cells[3].Err = 1, ErrEnded
	b, err := m.JUnit("p")
	require.NoError(t, err)
	var doc suites
	require.NoError(t, xml.Unmarshal(b, &doc))
	require.Equal(t, suiteCounts{4, 1, 1, 1, doc.Time}, doc.suiteCounts)
	require.Equal(t, "exit code 1", doc.Suite.Cases[1].Failure.Message)
}

// No more run at once than there are processors, each kernel is run once, and the order is that of the command line.
func TestKernelsSideBySide(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	names := strings.Fields("a b c d e f g h i j")
	m, err := New(names)
	require.NoError(t, err)
	var now, most atomic.Int32
	started := make(chan bool, 2)
	m.Run(t.Context(), func(_ context.Context, c *Cell) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if c.Kernel == "a" || c.Kernel == "b" {
			started <- true
			for len(started) < 2 { // the other one
				runtime.Gosched()
			}
		}
		for range 1000 { // time for the others
			runtime.Gosched()
		}
		c.Release = c.Kernel
		if c.Kernel == "c" {
			c.Code, c.Err = 1, errors.New("failed")
		}
	})
	require.EqualValues(t, 2, most.Load())
	for i, c := range m.Cells {
		require.Equal(t, names[i], c.Release, "a failed kernel stops no other")
	}
}

// The end of the context ends the programs, and no run begins after it.
func TestAnEndForAll(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	m, err := New(strings.Fields("a b c d e f g h i j k l m n o p q r s t"))
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	started := make(chan bool, 20)
	plan := Plans(&run.Kernel{Jobs: []run.Job{{Host: &run.HostProgram{}}}})
	m.Run(ctx, func(ctx context.Context, c *Cell) {
		if started <- true; len(started) == 2 {
			end()
		}
		<-plan(ctx, c).Jobs[0].Host.Context.Done()
		c.Code = 130
	})
	require.Len(t, started, 2)
	for i, c := range m.Cells {
		require.Equal(t, i >= 2, errors.Is(c.Err, ErrEnded), c.Kernel)
		require.NotZero(t, c.Code)
	}
}

// The plans of two kernels share nothing that one of them changes.
func TestPlansOfTheirOwn(t *testing.T) {
	inside := 0
	whole := &run.Kernel{Jobs: []run.Job{{Text: "call()"}, {Host: &run.HostProgram{
		Session: booted.Session{Workloads: []*booted.Program{{}}}, Core: "core", Outs: []run.Out{{Guest: "/o", Host: "dir/out.txt"}},
		Wanted: func([]string, func(string) bool) []string {
			inside++
			defer func() { inside-- }()
			return make([]string, inside)
		},
	}}}}
	plan := Plans(whole)
	m, err := New([]string{"6.1", "6.12"})
	require.NoError(t, err)
	m.Run(t.Context(), func(ctx context.Context, c *Cell) {
		p := plan(ctx, c)
		assert.Equal(t, "core-"+c.Kernel, p.Jobs[1].Host.Core)
		assert.Equal(t, []run.Out{{Guest: "/o", Host: "dir/out-" + c.Kernel + ".txt"}}, p.Jobs[1].Host.Outs)
		p.Jobs[0].Text = c.Kernel
		for range 1000 {
			assert.Len(t, p.Jobs[1].Host.Wanted(nil, nil), 1)
		}
	})
	require.Equal(t, "call()", whole.Jobs[0].Text)
	require.Equal(t, "core", whole.Jobs[1].Host.Core)
	require.Equal(t, "dir/out.txt", whole.Jobs[1].Host.Outs[0].Host)
}

func TestRepeatsThatAreNone(t *testing.T) {
	for _, n := range []int{-1, 0, bounded.MatrixRepeats + 1} {
		_, err := Repeat("k", n, 0, true)
		require.ErrorIs(t, err, ErrKernels)
	}
}

// The first seed that fails is found, in whatever order runs end; without seeds, the first run that differs is.
func TestRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		vary       bool
		bad        func(c *Cell, n int)
		cells      []string
		code       int
		says       string
		runs, most int
	}{
		"none_fails":       {vary: true, bad: func(*Cell, int) {}, cells: []string{"k seed 5"}, says: "20 runs with the seeds from 5 on: none failed", runs: 20, most: 20},
		"one_fails":        {vary: true, bad: func(c *Cell, n int) { c.Code = 3 * (n / 7 % 2) }, cells: []string{"k seed 5", "k seed 12"}, code: 3, says: "seed 12 fails with exit code 3; --seed 12 --repeat 1 repeats it", runs: 8, most: 12},
		"the_first_fails":  {vary: true, bad: func(c *Cell, n int) { c.Code = 1 }, cells: []string{"k seed 5"}, code: 1, says: "seed 5 fails with exit code 1; --seed 5 --repeat 1 repeats it", runs: 1, most: 6},
		"output_varies":    {vary: true, bad: func(c *Cell, n int) { fmt.Fprint(&c.Stdout, n) }, cells: []string{"k seed 5"}, says: "20 runs with the seeds from 5 on: none failed", runs: 20, most: 20},
		"the_same":         {bad: func(c *Cell, n int) { c.Code = 2 }, cells: []string{"k run 1"}, code: 2, says: "20 runs: the same bytes", runs: 20, most: 20},
		"a_byte_differs":   {bad: func(c *Cell, n int) { fmt.Fprint(&c.Stderr, n/3) }, cells: []string{"k run 1", "k run 4"}, code: 1, says: "k run 4: " + ErrDiffers.Error(), runs: 4, most: 20},
		"the_code_differs": {bad: func(c *Cell, n int) { c.Code = n / 19 * 6 }, cells: []string{"k run 1", "k run 20"}, code: 6, says: "k run 20: " + ErrDiffers.Error(), runs: 20, most: 20},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
			m, err := Repeat("k", 20, 5, c.vary)
			require.NoError(t, err)
			all := m.Cells
			var second atomic.Bool
			m.Run(t.Context(), func(_ context.Context, cell *Cell) {
				n := int(cell.Seed) - 5
				if !c.vary {
					_, _ = fmt.Sscanf(cell.Kernel, "k run %d", &n)
					n--
				}
				for n == 0 && !second.Load() { // the second run ends before the first
					runtime.Gosched()
				}
				cell.Release = "6.1"
				cell.Stdout.WriteString("out")
				c.bad(cell, n)
				if n == 1 {
					second.Store(true)
				}
			})
			var got []string
			for _, cell := range m.Cells {
				got = append(got, cell.Kernel)
				require.NotZero(t, cell.Stdout.Len())
			}
			require.Equal(t, c.cells, got)
			require.Equal(t, c.code, m.Code())
			require.Equal(t, c.says, m.Repeated())
			require.GreaterOrEqual(t, m.repeated.runs, c.runs)
			require.LessOrEqual(t, m.repeated.runs, c.most)
			if len(m.Cells) == 1 && c.runs == 20 {
				require.Zero(t, all[10].Stdout.Len(), "outputs of no interest are forgotten")
			}
		})
	}
}

// A run that the end of the context cuts short is no run that differs or fails.
func TestRepeatsThatAreCutShort(t *testing.T) {
	for name, c := range map[string]struct {
		vary  bool
		whole int
		says  string
		code  int
	}{
		"the_same":         {whole: 6, says: "ended after 6 of 20 runs: these have the same bytes"},
		"seeds":            {vary: true, whole: 6, says: "ended after 6 of 20 runs with the seeds from 5 on: none of these failed"},
		"the_first":        {says: "ended before the first run had ended: nothing is compared", code: 130},
		"the_first_seed":   {vary: true, says: "ended before the first run had ended: nothing is compared", code: 130},
		"between_two_runs": {whole: 1, says: "ended after 1 of 20 runs: these have the same bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			m, err := Repeat("k", 20, 5, c.vary)
			require.NoError(t, err)
			ctx, end := context.WithCancel(t.Context())
			ran := 0
			m.Run(ctx, func(_ context.Context, cell *Cell) {
				if cell.Release = "6.1"; ran == c.whole {
					end()
					cell.Code = 130
					cell.Stdout.WriteString("o")
					return
				}
				ran++
				cell.Stdout.WriteString("out")
			})
			require.Equal(t, c.whole, ran)
			require.Len(t, m.Cells, 1)
			require.Equal(t, c.code, m.Code())
			require.Equal(t, c.says, m.Repeated())
		})
	}
}
