package perfetto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/userprobe"
	"kprobelab/x86"
)

// Rule: a probed function is a slice that contains the hits in it and at its return, and nothing overlaps.
func TestUserSlices(t *testing.T) {
	var out bytes.Buffer
	tl := NewTimelineJSON(&out, func(a x86.Addr) string { return fmt.Sprintf("f%x", uint64(a)) })
	thread, regs := Thread{PID: 100, TID: 101, Comm: "prog"}, &x86.PtRegs{IP: 1}
	step := 0
	hit := func(kinds ...userprobe.EventKind) {
		for i, kind := range kinds {
			step++
			tl.User(uint64(step), thread, &userprobe.Event{Kind: kind, Step: i + 1, Addr: 0xa, Regs: regs}, []string{"call"})
			if kind == userprobe.EventReturnHandler {
				tl.UserRecord(uint64(step), thread, "uprobes", "call", true, []Arg{{Name: "ret", Value: "7"}})
			}
		}
	}
	hit(userprobe.EventTrap, userprobe.EventInstance, userprobe.EventCopy, userprobe.EventStepped, userprobe.EventResume)
	hit(userprobe.EventTrap, userprobe.EventEmulated) // a signal takes it away without an end
	hit(userprobe.EventReturn, userprobe.EventReturnHandler, userprobe.EventReturned)
	require.NoError(t, tl.Close())
	var got []string
	for line := range strings.Lines(out.String()) {
		var e struct {
			Kind, Event  string
			Process, PID int
			Args         map[string]string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, []int{100, 101}, []int{e.Process, e.PID})
		if e.Kind != "instant" {
			got = append(got, e.Kind+" "+e.Event+" "+e.Args["ret"])
		}
	}
	require.Equal(t, []string{
		"begin hit of fa ", "begin copy in the XOL area ", "end copy in the XOL area ", "end hit of fa ", "begin call ",
		"begin hit of fa ", "end hit of fa ",
		"begin return of fa ", "end return of fa ", "end call 7",
	}, got)
}

// Rule: each process has its track, and its threads belong to it.
func TestProcessTracks(t *testing.T) {
	packets := parse(t, write(t,
		Event{Time: 1, PID: 101, Process: 100, ProcessName: "one", Name: "a"},
		Event{Time: 2, PID: 102, Process: 102, ProcessName: "two", Name: "b"}))
	require.Len(t, packets, 6)
	for i, want := range []int64{100, 102} {
		process := sub(sub(packets[3*i], "track_descriptor"), "process")
		require.Equal(t, want, field(process, "pid").Int())
		require.Equal(t, want, field(sub(sub(packets[3*i+1], "track_descriptor"), "thread"), "pid").Int())
	}
}
