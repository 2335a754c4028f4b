package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"

	"kprobelab/internal/bounded"
)

// A scenario may have as much of each thing as the bound says, and one more is an error of one sentence.
func TestScenariosAreBounded(t *testing.T) {
	lines := func(n int, format string) (text string) {
		for i := range n {
			text += fmt.Sprintf(format, i) + "\n"
		}
		return text
	}
	columns := func(n int) string {
		var list []string
		for i := range n {
			name := fmt.Sprintf("cpu%d", i%bounded.ScenarioCPUs)
			if i >= bounded.ScenarioCPUs {
				name += ".irq"
			}
			list = append(list, name)
		}
		return strings.Join(list, " | ") + "\n"
	}
	const head, f = "scenario a\n", "text f: mov ret\n"
	for name, c := range map[string]struct {
		most int
		text func(n int) string
		want string
	}{
		"functions":    {bounded.ScenarioFunctions, func(n int) string { return head + lines(n, "text f%d: ret") + "cpu0\n" }, "up to 8 functions of 1 to 24 instructions"},
		"instructions": {bounded.ScenarioCode, func(n int) string { return head + "text f: " + strings.Repeat("mov ", n-1) + "ret\ncpu0\n" }, "up to 8 functions of 1 to 24 instructions"},
		"probes":       {bounded.ScenarioProbes, func(n int) string { return head + f + lines(n, "probe p%d: f") + "cpu0\n" }, "up to 16 probes and sites"},
		"columns":      {bounded.ScenarioColumns, func(n int) string { return head + f + columns(n) }, "a table of 1 to 12 columns"},
		"processors":   {bounded.ScenarioCPUs, func(n int) string { return head + f + fmt.Sprintf("cpu%d\n", n-1) }, "is no column"},
		"actions":      {bounded.ScenarioActions, func(n int) string { return head + f + "cpu0\n" + strings.Repeat("call f\n", n) }, "up to 24 actions"},
		"instances":    {bounded.ScenarioActive, func(n int) string { return head + f + fmt.Sprintf("probe p: f return active=%d\ncpu0\n", n) }, "is no word of a probe"},
		"data":         {bounded.ScenarioData, func(n int) string { return head + f + fmt.Sprintf("probe p: f return data=%d\ncpu0\n", n) }, "is no word of a probe"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(c.text(c.most)); err != nil {
				require.NotContains(t, err.Error(), c.want)
			}
			_, err := Compile(c.text(c.most + 1))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// An exploration remembers no more states and places than it may; what it has is told.
func TestStatesThatAreTooMany(t *testing.T) {
	p := compile(t, "optimize-hit")
	all := explore(t, p, Options{Profile: kernel(t, profile.Default), Bound: 1})
	for _, r := range []Reduction{ByState, ByOrder, None} {
		o := Options{Profile: kernel(t, profile.Default), Bound: 1, Reduction: r, MaxStates: all.Counts.States / 2}
		res := explore(t, p, o)
		require.Equal(t, Unfinished, res.Verdict)
		require.Contains(t, res.Reason, "there are too many states; try fewer switches, or walks")
		require.Less(t, res.Counts.States, all.Counts.States)
	}
	res := explore(t, p, Options{Profile: kernel(t, profile.Default), Bound: 1, MaxStates: MaxStates + 1})
	require.Equal(t, all.Verdict, res.Verdict)
	require.Equal(t, all.Counts.States, res.Counts.States)
}
