package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A job that begins with an absolute path is a program, all others are calls.
func TestJobs(t *testing.T) {
	for text, args := range map[string][]string{
		"gcd(1, 2)": nil, "sys:mount(\"/a\", 0)": nil, "": nil,
		"/bin/x a 'b c'": {"/bin/x", "a", "b c"}, " '/bin/x y'": {"/bin/x y"}, `"/bin/x"`: {"/bin/x"},
	} {
		j, err := ParseJob(text)
		require.NoError(t, err, text)
		require.Equal(t, text, j.Text)
		if args == nil {
			require.Nil(t, j.Program, text)
			continue
		}
		require.Equal(t, args, j.Program.Args, text)
	}
	var misuse *Error
	_, err := ParseJob("/bin/x '")
	require.ErrorAs(t, err, &misuse)
	require.Equal(t, Misused, misuse.Kind)
}

// What no kernel could do is refused before one is opened.
func TestPlansThatCannotBe(t *testing.T) {
	for name, p := range map[string]Kernel{
		"no absolute path":       {Jobs: []Job{ProgramJob([]string{"x"})}},
		"no program":             {Jobs: []Job{ProgramJob(nil)}},
		"no variable":            {Jobs: []Job{ProgramJob([]string{"/x"}, "NAME")}},
		"CPUs":                   {CPUs: -1},
		"a timeout":              {Timeout: -1},
		"an empty event":         {Events: []string{" "}},
		"registers":              {Registers: true},
		"as and uprobes":         {As: "1", Points: []UserPoint{{File: "/x", Place: "y"}}},
		"a file and own events":  {Trace: func(string) error { return nil }, Events: []string{"p /x:0x1"}},
		"another system setting": {Sysctls: []string{"x=1"}},
	} {
		var misuse *Error
		require.ErrorAs(t, p.Check(), &misuse, name)
		require.Equal(t, Misused, misuse.Kind, name)
	}
}

// A booted kernel's own events are told from our own, and what they need with them.
func TestEventsAreDivided(t *testing.T) {
	p := Kernel{Events: []string{"p:x vfs_read", "p /bin/x:0x1", "t:x sched.sched_switch"}, Points: []UserPoint{{File: "/x"}}}
	rest, own := p.divided()
	require.Equal(t, []string{"p:x vfs_read"}, rest.Events)
	require.Equal(t, []string{"p /bin/x:0x1", "t:x sched.sched_switch"}, own.events)
	require.EqualValues(t, ProgramBudget, rest.Budget)
	rest, own = (&Kernel{Events: []string{"p:x vfs_read"}}).divided()
	require.False(t, own.any())
	require.EqualValues(t, CallBudget, rest.Budget)
}
