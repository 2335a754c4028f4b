package explore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScenariosByName(t *testing.T) {
	name := Library()[0]
	p, err := Open(name, nil)
	require.NoError(t, err)
	require.Equal(t, name, p.Scenario().Name)

	bug := Switches()[0]
	p, err = Open("", []string{bug.ID})
	require.NoError(t, err)
	require.Equal(t, bug.Scenario, p.Scenario().Name)

	_, err = Open("nosuch", nil)
	require.ErrorIs(t, err, ErrNone)
	_, err = Open("", []string{"nosuch"})
	require.Error(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("no scenario"), 0o600))
	_, err = Open(file, nil)
	require.ErrorContains(t, err, file+": ")
}

func TestReports(t *testing.T) {
	bug := Switches()[0]
	p, err := Open("", []string{bug.ID})
	require.NoError(t, err)
	kernel, err := Kernel("", []string{bug.ID})
	require.NoError(t, err)
	res, err := p.Explore(t.Context(), Options{Profile: kernel, Bound: 2})
	require.NoError(t, err)
	var text, json strings.Builder
	r := p.Report(kernel, []string{bug.ID}, 2, res)
	require.NoError(t, r.WriteText(&text))
	require.NoError(t, r.WriteJSON(&json))
	require.NotEqual(t, OK, r.Verdict)
	require.Contains(t, text.String(), "up to 2 switches")
	require.Contains(t, text.String(), string(r.Verdict)+": "+r.Reason)
	require.Contains(t, json.String(), `"verdict":"`+string(r.Verdict)+`"`)
	require.NotEmpty(t, r.Schedule)
}

// The library has the verdicts that it expects, but for one that is broken by a bug; the list names every scenario and bug.
func TestTheLibraryIsChecked(t *testing.T) {
	var list strings.Builder
	require.NoError(t, WriteLibrary(&list))
	require.Equal(t, len(Library())+1+len(Switches()), strings.Count(list.String(), "\n"))

	kernel, err := Kernel("", nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var out strings.Builder
	begun := []string(nil)
	ends := 0
	good, err := CheckLibrary(ctx, &Checks{Out: &out, Begin: func(name string) {
		if begun = append(begun, name); len(begun) == 2 {
			cancel()
		}
	}, End: func() { ends++ }}, Library(), Options{Profile: kernel, MaxRuns: 1})
	require.NoError(t, err)
	require.False(t, good)
	require.Equal(t, Library()[:2], begun)
	require.Equal(t, 2, ends)
	require.Contains(t, out.String(), begun[0]+" ")
	require.Contains(t, out.String(), "; expected: ")
	require.Contains(t, out.String(), fmt.Sprintf("interrupted at scenario 2 of %d\n", len(Library())))
}

// A schedule is replayed to its end, and drawn as lanes in both forms of a trace.
func TestSchedulesAreReplayed(t *testing.T) {
	kernel, err := Kernel("", []string{Switches()[0].ID})
	require.NoError(t, err)
	p, err := Open("", []string{Switches()[0].ID})
	require.NoError(t, err)
	res, err := p.Explore(context.Background(), Options{Profile: kernel, Bound: 2})
	require.NoError(t, err)
	require.NotNil(t, res.Failing)
	res.Failing.Bugs = []string{Switches()[0].ID}
	again, said, err := Replay(res.Failing.String())
	require.NoError(t, err)
	require.Equal(t, res.Verdict, said)
	require.Equal(t, said, again.Verdict)
	var lines, packed strings.Builder
	require.NoError(t, again.WritePerfetto(&lines, true))
	require.NoError(t, again.WritePerfetto(&packed, false))
	require.Equal(t, 2*len(again.Lines), strings.Count(lines.String(), "\n"))
	require.NotEmpty(t, packed.String())
	_, _, err = Replay("nothing")
	require.Error(t, err)
}
