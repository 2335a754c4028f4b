package trigger

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/filter"
)

// fakeEvent counts its holds.
type fakeEvent struct {
	group, name string
	holds       int
	soft        bool
	refuses     error
}

var format = &event.Format{Common: event.Common(), Fields: []event.Field{{Name: "x", Type: "u8", Offset: 8, Size: 1}}}

func (e *fakeEvent) Group() string          { return e.group }
func (e *fakeEvent) Name() string           { return e.name }
func (e *fakeEvent) Format() *event.Format  { return format }
func (e *fakeEvent) Release()               { e.holds-- }
func (e *fakeEvent) SoftDisabled() bool     { return e.soft }
func (e *fakeEvent) SetSoftDisabled(s bool) { e.soft = s }
func (e *fakeEvent) Hold() error {
	if e.refuses != nil {
		return e.refuses
	}
	if e.holds++; e.holds == 1 {
		e.soft = true
	}
	return nil
}

// fakeTracer has two events, and counts snapshots and stacks.
type fakeTracer struct {
	on                bool
	a, b              fakeEvent
	snapshots, stacks int
	noRoom            error
}

func newTracer() *fakeTracer {
	return &fakeTracer{on: true, a: fakeEvent{group: "g", name: "a"}, b: fakeEvent{group: "g", name: "b"}}
}

func (t *fakeTracer) TracingOn() bool      { return t.on }
func (t *fakeTracer) SetTracingOn(o bool)  { t.on = o }
func (t *fakeTracer) AllocSnapshot() error { return t.noRoom }
func (t *fakeTracer) Snapshot()            { t.snapshots++ }
func (t *fakeTracer) Stack()               { t.stacks++ }
func (t *fakeTracer) Event(group, name string) Event {
	for _, e := range []*fakeEvent{&t.a, &t.b} {
		if e.group == group && e.name == name {
			return e
		}
	}
	return nil
}

var (
	_ Event  = (*fakeEvent)(nil)
	_ Tracer = (*fakeTracer)(nil)
)

// hit uses the list as its doc describes; recorded reports whether a record would have been
// written.
func hit(l *List, tr *fakeTracer, e *fakeEvent, x byte) (recorded bool) {
	if !l.Conditional() {
		l.Hit(tr)
	}
	was := tr.on
	post := l.Record(tr, append(make([]byte, 8), x), filter.Current{})
	recorded = was && !e.soft
	l.Post(tr, post)
	return recorded
}

func TestReadBack(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"traceon", "traceon:unlimited\n"},
		{"traceoff:3", "traceoff:count=3\n"},
		{" traceoff: 0x10 \n", "traceoff:count=16\n"},
		{"traceoff:010", "traceoff:count=8\n"},
		{"traceoff if x > 1", "traceoff:unlimited if x > 1\n"},
		{"traceoff:1 if  x > 1 ", "traceoff:count=1 if  x > 1\n"},
		{"traceoff:1:2", "traceoff:count=1\n"},
		{"traceoff:18446744073709551615", "traceoff:unlimited\n"},
		{"enable_event:g:b", "enable_event:g:b:unlimited\n"},
		{"stacktrace", "stacktrace:unlimited\n"},
		{"snapshot:2 if x==1", "snapshot:count=2 if x==1\n"},
		{"disable_event:g:b:2 if x == 1", "disable_event:g:b:count=2 if x == 1\n"},
		{"enable_event:g:a:0", "enable_event:g:a:count=0\n"},
	} {
		tr := newTracer()
		var l List
		require.NoError(t, l.Write(c.text, &tr.a, tr))
		require.Equal(t, c.want, l.String(), c.text)
		require.Equal(t, 1, l.Len())
		l.Clear()
		require.Equal(t, Available, l.String())
		require.Zero(t, tr.a.holds+tr.b.holds)
	}
}

func TestErrorsChangeNothing(t *testing.T) {
	for text, want := range map[string]errno.Errno{
		"":                              errno.EINVAL,
		"!":                             errno.EINVAL,
		"nosuch":                        errno.EINVAL,
		"hist:keys=x":                   errno.EINVAL,
		"enable_hist:g:b":               errno.EINVAL,
		"stacktrace:x":                  errno.EINVAL,
		"snapshot if":                   errno.EINVAL,
		"traceoff:":                     0,
		"traceoff:abc":                  errno.EINVAL,
		"traceoff:1x":                   errno.EINVAL,
		"traceoff:1_0":                  errno.EINVAL,
		"traceoff:0b1":                  errno.EINVAL,
		"traceoff:99999999999999999999": errno.ERANGE,
		"traceoff x > 1":                errno.EINVAL,
		"traceoff if":                   errno.EINVAL,
		"traceoff if y > 1":             errno.EINVAL,
		"traceoff if (x > 1":            errno.ENOENT,
		"enable_event":                  errno.EINVAL,
		"enable_event:g":                errno.EINVAL,
		"enable_event:g:nosuch":         errno.EINVAL,
		"!enable_event:g:nosuch":        errno.EINVAL,
		"enable_event:g:b:":             errno.EINVAL,
		"enable_event:g:b if":           errno.EINVAL,
	} {
		tr := newTracer()
		var l List
		err := l.Write(text, &tr.a, tr)
		if want == 0 {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorIs(t, err, want, text)
		require.Zero(t, l.Len())
		require.Zero(t, tr.a.holds+tr.b.holds)
	}
}

func TestOneOfAKind(t *testing.T) {
	tr := newTracer()
	var l List
	require.NoError(t, l.Write("traceon", &tr.a, tr))
	require.ErrorIs(t, l.Write("traceoff", &tr.a, tr), errno.EEXIST)
	require.NoError(t, l.Write("enable_event:g:b", &tr.a, tr))
	require.ErrorIs(t, l.Write("disable_event:g:b:1", &tr.a, tr), errno.EEXIST)
	require.NoError(t, l.Write("disable_event:g:a", &tr.a, tr))
	require.Equal(t, "disable_event:g:a:unlimited\nenable_event:g:b:unlimited\ntraceon:unlimited\n", l.String())
	require.Equal(t, 4, tr.a.holds)
	require.Equal(t, 1, tr.b.holds)

	require.NoError(t, l.Write("!traceoff", &tr.a, tr)) // removes traceon
	require.NoError(t, l.Write("!traceoff", &tr.a, tr)) // nothing is there
	require.NoError(t, l.Write("!disable_event:g:b", &tr.a, tr))
	require.NoError(t, l.Write("!enable_event:g:a:junk if junk", &tr.a, tr))
	require.Zero(t, l.Len())
	require.Zero(t, tr.a.holds+tr.b.holds)
}

func TestTraceoffRecordsTheEventThatDidIt(t *testing.T) {
	tr := newTracer()
	var l List
	require.NoError(t, l.Write("traceoff:1 if x == 2", &tr.a, tr))
	tr.a.soft = false
	require.True(t, hit(&l, tr, &tr.a, 1))
	require.True(t, tr.on)
	require.True(t, hit(&l, tr, &tr.a, 2))
	require.False(t, tr.on)
	require.Equal(t, "traceoff:count=0 if x == 2\n", l.String())
	tr.on = true
	hit(&l, tr, &tr.a, 2)
	require.True(t, tr.on, "the count is spent")
}

func TestTraceonComesBeforeTheRecord(t *testing.T) {
	tr := newTracer()
	var l List
	require.NoError(t, l.Write("traceon:2", &tr.a, tr))
	tr.a.soft = false
	require.True(t, hit(&l, tr, &tr.a, 1))
	require.Equal(t, "traceon:count=2\n", l.String(), "nothing to switch, nothing spent")
	tr.on = false
	require.True(t, hit(&l, tr, &tr.a, 1))
	require.Equal(t, "traceon:count=1\n", l.String())
}

func TestEnableAndDisableEvent(t *testing.T) {
	tr := newTracer()
	var l List
	require.NoError(t, l.Write("enable_event:g:b:1", &tr.a, tr))
	require.True(t, tr.b.soft)
	hit(&l, tr, &tr.a, 1)
	require.False(t, tr.b.soft)
	tr.b.soft = true
	hit(&l, tr, &tr.a, 1)
	require.True(t, tr.b.soft, "the count is spent")

	require.NoError(t, l.Write("!enable_event:g:b", &tr.a, tr))
	require.NoError(t, l.Write("disable_event:g:b if x == 1", &tr.a, tr))
	tr.b.soft = false
	hit(&l, tr, &tr.a, 0)
	require.False(t, tr.b.soft)
	hit(&l, tr, &tr.a, 1)
	require.True(t, tr.b.soft)
}

func TestSnapshotAndStacktrace(t *testing.T) {
	tr := newTracer()
	var l List
	require.NoError(t, l.Write("stacktrace:3 if x == 1", &tr.a, tr))
	require.NoError(t, l.Write("snapshot:1", &tr.a, tr))
	require.NoError(t, l.Write("traceoff if x == 2", &tr.a, tr), "kinds stand beside each other")
	require.ErrorIs(t, l.Write("stacktrace", &tr.a, tr), errno.EEXIST)
	require.ErrorIs(t, l.Write("snapshot:5", &tr.a, tr), errno.EEXIST)
	hit(&l, tr, &tr.a, 1)
	hit(&l, tr, &tr.a, 1)
	require.True(t, tr.on, "what one put off does not run another")
	hit(&l, tr, &tr.a, 2)
	require.False(t, tr.on)
	require.Equal(t, []int{1, 2}, []int{tr.snapshots, tr.stacks})
	require.Equal(t, "traceoff:unlimited if x == 2\nsnapshot:count=0\nstacktrace:count=1 if x == 1\n", l.String())
	require.NoError(t, l.Write("!snapshot", &tr.a, tr))
	require.NoError(t, l.Write("!stacktrace:7 if junk", &tr.a, tr))
	require.Equal(t, 1, l.Len())
	tr.noRoom = errno.ENOMEM
	require.ErrorIs(t, l.Write("snapshot", &tr.a, tr), errno.ENOMEM)
	require.Equal(t, 1, l.Len())
	require.Equal(t, 1, tr.a.holds)
}

func TestRefusedHolds(t *testing.T) {
	refusal := errors.New("no")
	tr := newTracer()
	var l List
	tr.b.refuses = refusal
	require.ErrorIs(t, l.Write("enable_event:g:b", &tr.a, tr), refusal)
	tr.b.refuses, tr.a.refuses = nil, refusal
	require.ErrorIs(t, l.Write("enable_event:g:b", &tr.a, tr), refusal)
	require.Zero(t, tr.b.holds)
	require.Zero(t, l.Len())
}

func FuzzWrite(f *testing.F) {
	for _, s := range []string{
		"traceoff:3 if x > 1", "!traceon", "enable_event:g:b:1", "disable_event: g:b if x == 1", "!!traceon", "traceoff:1:2", "stacktrace:2 if x", "!snapshot:1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr := newTracer()
		var l List
		if err := l.Write(text, &tr.a, tr); err != nil {
			var e errno.Errno
			require.True(t, errors.As(err, &e), text)
			require.Zero(t, tr.a.holds+tr.b.holds)
			return
		}
		hit(&l, tr, &tr.a, 1)
		_ = l.String()
		l.Clear()
		require.Zero(t, tr.a.holds+tr.b.holds)
	})
}

func Example() {
	tr := newTracer()
	var l List
	for _, text := range []string{"traceoff:1 if x == 7", "enable_event:g:b"} {
		if err := l.Write(text, &tr.a, tr); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Print(l.String())
	// Output:
	// enable_event:g:b:unlimited
	// traceoff:count=1 if x == 7
}
