package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// described returns a Sink that appends each step's title, the What of its lines, and its Next to the lists.
func described(titles, lines, next *[]string) Sink {
	return Func(func(e Event) error {
		step, ok := e.(Step)
		if !ok {
			return nil
		}
		d := step.Describe()
		if d.Title != "" {
			*titles = append(*titles, d.Title)
		}
		for _, l := range append(d.Head, d.After...) {
			*lines = append(*lines, l.What)
		}
		*next = append(*next, d.Next)
		return nil
	})
}

// Steps of a kernel and of a program without one are described by values of the same type.
func TestStepsAreDescribed(t *testing.T) {
	var titles, lines, next []string
	p := Kernel{Probes: probes(t, Kprobe, "gcd"), Jobs: []Job{{Text: "gcd(12, 18)"}}, Steps: true}
	require.NoError(t, p.Run(guest(t), described(&titles, &lines, &next)))
	require.Equal(t, []string{"hit of gcd"}, titles)
	require.Subset(t, lines, []string{"text before", "text now"})
	require.NotEmpty(t, next[0])

	titles, lines, next = nil, nil, nil
	rules, _ := profile.Named(profile.Default)
	files := prog(t)
	point, err := ParseUserPoint(files.program.Name+":twice", false)
	require.NoError(t, err)
	u := Program{Files: files, Args: []string{"prog"}, Points: []UserPoint{point}, Rules: rules, Steps: true}
	var exit *ExitError
	require.ErrorAs(t, u.Run(described(&titles, &lines, &next)), &exit)
	require.Equal(t, []string{"hit of twice"}, titles)
	require.Equal(t, []string{"file", "text before", "text now"}, lines)
	require.Contains(t, next[len(next)-1], "twice+0x1: ")
}
