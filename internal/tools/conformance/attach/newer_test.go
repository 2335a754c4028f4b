package attach

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a kernel with few functions.
type fake struct{}

func (fake) Typed(function, _ string) (int, bool) { return 1, function != "untyped" }

func (fake) Trampoline(function string, ret bool) (bool, error) {
	switch function {
	case "unverified":
		return true, errors.New("refused")
	case "several":
		return false, errors.New("refused")
	}
	return false, nil
}

func (fake) Kprobe(place string, _ bool) error {
	if place == "several" || place == "one+3" {
		return errors.New("refused")
	}
	return nil
}

// Each row of the table of versions, with what missing_probes makes of it.
func TestNewerRules(t *testing.T) {
	n := &newer{ways: fake{}, traced: listed([]string{"one", "two_one", "several", "untyped", "unverified", "rcu_one", "default_idle"}), events: []string{"sched:switch"}, points: []string{"switch"}}
	for points, want := range map[string]struct {
		ignore, failing bool // with "ignore", with "error"
		rule            string
	}{
		"kprobe:one":                      {true, true, ""},
		"k:vmlinux:one+4":                 {true, true, ""},
		"kprobe:unlisted":                 {false, false, ruleUnlisted},
		"kprobe:unlisted,kprobe:one":      {true, false, ruleUnlisted},
		"kprobe:several":                  {true, false, ruleSkipped},
		"kprobe:one+3":                    {true, false, ruleSkipped},
		"kprobe:nothere:one":              {false, false, ruleModule},
		"kprobe:nothere:one,kprobe:one":   {false, false, ruleModule},
		"kprobe:nothere:o*,kprobe:one":    {true, true, ruleModule},
		"kprobe:*_one":                    {true, true, ""},
		"kprobe:rcu_*":                    {false, false, ruleEmpty},
		"kprobe:default_idle":             {false, false, ruleUnlisted},
		"fentry:rcu_one":                  {false, false, ruleHarmful},
		"f*:rcu_one,kprobe:one":           {true, false, ruleHarmful},
		"kprobe:o*x":                      {false, false, ruleEmpty},
		"kprobe:one,kprobe:one":           {true, true, ruleTwice},
		"fentry:untyped":                  {true, false, ruleSkipped},
		"fentry:nothere:one":              {false, false, ruleModule},
		"fentry:several":                  {true, false, ruleSkipped},
		"fexit:unverified":                {false, false, ruleRefused},
		"fentry:absent,kprobe:one":        {true, false, ruleBefore},
		"tracepoint:sched:switch":         {true, true, ""},
		"tracepoint:swi*":                 {true, true, ""},
		"t:sched:absent,kprobe:one":       {true, false, ruleBefore},
		"rt:absent,kprobe:one":            {true, true, ruleRaw},
		"rt:absent":                       {false, false, ruleRaw},
		"k*:one":                          {true, true, ""},
		"*:one":                           {false, false, ruleBefore},
		"x*:one":                          {false, false, ""},
		"kprobe:one { }\nkprobe:unlisted": {true, false, ruleUnlisted},
	} {
		for setting, accepted := range map[string]bool{"ignore": want.ignore, "error": want.failing} {
			got, rules := n.verdict(command{text: points + " { }", setting: setting})
			require.Equal(t, accepted, got, "%s %s", points, setting)
			if want.rule != "" {
				require.Contains(t, rules, want.rule, points)
			}
		}
	}
	// --unsafe has the kernel asked.
	got, _ := n.verdict(command{text: "kprobe:unlisted { }", setting: "error", unsafe: true})
	require.True(t, got)
}

func TestCommandLines(t *testing.T) {
	cmd, ok := commandOf(one{Args: []string{"--unsafe", "-e", "config = { missing_probes = \"warn\" }\nkprobe:f { }"}}, "")
	require.True(t, ok)
	require.True(t, cmd.unsafe)
	require.Equal(t, "warn", cmd.setting)
	_, ok = commandOf(one{Args: []string{"-l", "kprobe:f"}}, "")
	require.False(t, ok)
}

func TestStarsAreGreedy(t *testing.T) {
	for pattern, fit := range map[string]bool{"one": true, "o*": true, "*e": true, "on*": true, "o*n": false, "*": true, "x*": false, "o*n*": true} {
		require.Equal(t, fit, greedy(pattern, "one"), pattern)
	}
	require.False(t, greedy("*_lock", "a_lock_lock"))
}

// What a boot that ended early left unfinished is no answer, and does not spoil the next one.
func TestAnswersOfABootThatEndedEarly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "all")
	require.NoError(t, os.WriteFile(file, []byte("=== 0 0\na\n=== err\n=== end\n=== 1 255\nb\n=== err\n=== 1 1\nc\n=== err\nd\n=== end\n=== 2 0\n=== err\n"), 0o600))
	got, err := theirs(file)
	require.NoError(t, err)
	require.Equal(t, map[int]said{0: {out: "a\n"}, 1: {code: 1, out: "c\n", err: "d\n"}}, got)
}
