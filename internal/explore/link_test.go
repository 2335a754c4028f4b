package explore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link has a bad schedule whole: it ends in the same way.
func TestLinks(t *testing.T) {
	c, err := Kernel("", []string{"34"})
	require.NoError(t, err)
	p, err := Open("", []string{"34"})
	require.NoError(t, err)
	res, err := p.Explore(t.Context(), Options{Profile: c, Bound: 2})
	require.NoError(t, err)
	res.Failing.Bugs = []string{"34"}
	link := res.Failing.Link()
	require.Regexp(t, `^[-_A-Za-z0-9]+$`, link)
	require.Less(t, len(link), 2000)
	text, err := FromLink(link)
	require.NoError(t, err)
	again, said, err := Replay(text)
	require.NoError(t, err)
	require.Equal(t, res.Failing.Verdict, again.Verdict)
	require.Equal(t, said, again.Verdict)
	require.Equal(t, res.Failing.String(), again.String())

	for _, bad := range []string{"", "!", link[:len(link)/2], link[5:]} {
		_, err := FromLink(bad)
		require.ErrorIs(t, err, errLink, bad)
	}
	long := (&Schedule{Text: strings.Repeat("x\n", MaxSchedule)}).Link()
	_, err = FromLink(long)
	require.ErrorIs(t, err, errLink)
}

// A Search makes the runs that Explore makes, and goes on after a bad end.
func TestASearchGoesOn(t *testing.T) {
	c, err := Kernel("", []string{"34"})
	require.NoError(t, err)
	p, err := Open("", []string{"34"})
	require.NoError(t, err)
	o := Options{Profile: c, Bound: 2}
	res, err := p.Explore(t.Context(), o)
	require.NoError(t, err)
	s := p.Search(o)
	bad, runs := 0, 0
	for more := true; more; {
		var r *Run
		r, more, err = s.Next()
		require.NoError(t, err)
		require.Len(t, r.Lanes, len(r.Decisions))
		runs++
		if r.Verdict == OK {
			continue
		}
		if bad++; bad == 1 {
			require.Equal(t, res.Counts.Runs, runs)
			small, err := p.Shrink(c, r)
			require.NoError(t, err)
			require.Equal(t, res.Failing.Lines, small.Lines)
		}
	}
	require.Greater(t, bad, 1)
	require.Equal(t, runs, s.Counts().Runs)
	require.False(t, s.Full())
}
