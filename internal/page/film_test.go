package page_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/page"
	"kprobelab/run"
)

// played asks for a state of a film.
func played(t *testing.T, p *page.Page, schedule, move, by, who string) *page.View {
	t.Helper()
	var v page.View
	ask(t, p, map[string]any{"do": "film", "film": "vfs_read.film", "schedule": schedule, "move": move, "by": by, "who": who}, nil, &v)
	return &v
}

// The film in the program is played forward and back, by the protocol and by instructions, and back is the same place.
func TestTheFilmOfABootedKernel(t *testing.T) {
	p := &page.Page{}
	var about page.Filmed
	ask(t, p, map[string]any{"do": "openfilm", "name": "vfs_read.film"}, nil, &about)
	require.Equal(t, "6.1.core", about.Kernel)
	require.Greater(t, about.States, 100)

	for _, by := range []string{"protocol", "instruction"} {
		var hashes, schedules, said []string
		v := played(t, p, "", "", by, "")
		require.Empty(t, v.Schedule)
		require.Equal(t, "Before the first step: the kernel as it was before the probes.", v.Did)
		for v.Moved || len(hashes) == 0 {
			hashes, schedules = append(hashes, v.Hash), append(schedules, v.Schedule)
			for _, e := range v.Events {
				said = append(said, e.Who+": "+e.Text)
			}
			v = played(t, p, v.Schedule, "forward", by, "")
		}
		require.Empty(t, v.Next)
		require.Subset(t, said, []string{
			"module: the module has registered kprobe vfs_read at vfs_read", "CPU 0: int3 at the probed address; ip is one past it",
			"CPU 0: resume at the copy in the slot, interrupts off", "CPU 0: the function returned into the trampoline, which built a frame",
			"CPU 0: read(3, buf[64], 64) has returned 64 (0x40)", "module: the module has unregistered kprobe vfs_read",
		})
		for n := len(hashes) - 1; n >= 0; n-- {
			require.Equal(t, hashes[n], v.Hash)
			require.Equal(t, schedules[n], v.Schedule)
			require.Equal(t, hashes[n], played(t, p, schedules[n], "", by, "").Hash)
			v = played(t, p, v.Schedule, "back", by, "")
		}
		require.False(t, v.Moved)
	}
}

// At the trap, the page shows the int3, the slot, the registers that the handler gets, and names.
func TestAFilmShowsAMachine(t *testing.T) {
	p := &page.Page{}
	v := played(t, p, "", "", "protocol", "")
	for len(v.Events) == 0 || !strings.HasPrefix(v.Events[0].Text, "int3 at the probed") {
		v = played(t, p, v.Schedule, "forward", "protocol", "")
		require.True(t, v.Moved)
	}
	require.Equal(t, "vfs_read+0xa", v.CPUs[0].Where)
	require.True(t, v.CPUs[0].Frame)
	require.Empty(t, v.CPUs[0].Insn, "ip is inside of the instruction")
	require.Equal(t, "vfs_read+0xa", v.CPUs[0].Regs[0].Means)
	require.Equal(t, "vfs_read", v.Code[0].Name)
	require.LessOrEqual(t, len(v.Code[0].Rows), 36)
	var probed []page.Row
	gaps := 0
	for _, r := range v.Code[0].Rows {
		if r.Probe {
			probed = append(probed, r)
		}
		if strings.HasPrefix(r.Text, "… ") {
			gaps++
		}
	}
	require.Len(t, probed, 2)
	require.Positive(t, gaps, "vfs_read is too long for the page")
	require.True(t, strings.HasPrefix(probed[0].Text, "call "), probed[0].Text)
	require.NotContains(t, probed[0].Text, "inside of the jump")
	require.Equal(t, "int3", probed[1].Text)
	require.Equal(t, "push %r13", probed[1].Was)
	require.Equal(t, []string{"CPU 0 (+1)"}, probed[1].CPUs)
	require.Equal(t, "slot", v.Code[1].Kind)
	require.Equal(t, "an int3", v.Probes[1].State)

	// A step says what it was.
	v = played(t, p, v.Schedule, "forward", "instruction", "")
	for len(v.Events) > 0 {
		v = played(t, p, v.Schedule, "forward", "instruction", "")
	}
	require.Regexp(t, `^CPU 0 (ran \d+ instructions, of which the film shows no others, and is at|executed .* at) vfs_read\+0x`, v.Did)
}

func TestFilmsThatCannotBePlayed(t *testing.T) {
	require.Contains(t, complaint(t, &page.Page{}, `{"do":"film","film":"x.film"}`, nil), "the film x.film is not open here; drop its file on the page")
	require.Contains(t, complaint(t, &page.Page{}, `{"do":"openfilm","name":"x"}`, []byte("hello")), "x: it is no film: kprobelab run … --film FILE writes one")
	for _, c := range [][2]string{{"w", "a film has one order"}, {"m9999", "a film has one order"}, {"m0", "not one that the page has made"}, {"m99999999999999999999", "not one that the page has made"}} {
		require.Contains(t, complaint(t, &page.Page{}, `{"do":"film","film":"vfs_read.film","schedule":"`+c[0]+`"}`, nil), c[1])
	}
	require.Contains(t, complaint(t, &page.Page{}, `{"do":"film","film":"vfs_read.film","move":"up"}`, nil), "not one that the page has made")
}

// A dump that is dropped gets the command line that makes a film.
func TestADroppedDump(t *testing.T) {
	require.Contains(t, complaint(t, &page.Page{}, `{"do":"open","name":"my.core"}`, []byte("KDUMP   ")),
		"kprobelab run my.core --kprobe vfs_read --call 'read(0, buf[16], 16)' --film run.film; drop that file here")
}

// A film of each booted kernel is small, and is played.
func TestAFilmOfEachDump(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			img, err := kprobelab.OpenImage(runs.File(t, name), nil)
			require.NoError(t, err)
			probe, err := run.Kprobe("vfs_read")
			require.NoError(t, err)
			plan := run.Kernel{
				Probes: []run.KernelProbe{probe}, Jobs: []run.Job{{Text: `openat(-100, "/proc/version", 0, 0)`}, {Text: "read(3, buf[64], 64)"}}, Steps: true,
			}
			var b bytes.Buffer
			rec := run.NewFilm(&b)
			require.NoError(t, plan.Run(img, rec))
			require.NoError(t, rec.Close())
			require.Less(t, b.Len(), 100_000)
			p := &page.Page{}
			var about page.Filmed
			ask(t, p, map[string]any{"do": "openfilm", "name": "run.film"}, b.Bytes(), &about)
			require.Equal(t, name+".core", about.Kernel)
			require.Greater(t, about.States, 30, "each instruction of vfs_read is a state")
			// The kernel left the process that makes the calls on one of its CPUs: the film has the steps of that one.
			var v page.View
			ask(t, p, map[string]any{"do": "film", "film": "run.film"}, nil, &v)
			caller := slices.IndexFunc(v.CPUs, func(c page.CPU) bool { return c.Can })
			require.GreaterOrEqual(t, caller, 0)
			next := func() {
				ask(t, p, map[string]any{"do": "film", "film": "run.film", "schedule": v.Schedule, "move": "forward", "by": "protocol", "who": string(rune('a' + caller))}, nil, &v)
			}
			next()
			require.Contains(t, v.Events[0].Text, "openat")
			next()
			require.Regexp(t, `^vfs_read\+0x[15]$`, v.CPUs[caller].Where, "past the site's address, which an endbr64 may come before")
		})
	}
}
