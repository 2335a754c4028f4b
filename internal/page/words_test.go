package page

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/profile"
)

// Every event of a hit, by whatever way it came, of the optimizer, the module and the worker has its words; there are no others.
func TestEveryEventHasItsWords(t *testing.T) {
	keys := map[string]bool{"register": true, "unregister": true, "waiting": true, "careless": true, "careless-rest": true}
	for kind := range kprobes.NumEventKinds {
		for way := kprobes.WayInt3; way <= kprobes.WayReturn; way++ {
			keys[hitKey(kind, way)] = true
		}
	}
	for kind := range kprobes.NumOptKinds {
		keys[optKey(kind)] = true
	}
	placeholder := regexp.MustCompile(`\{[a-z]+\}`)
	names := []string{"{who}", "{site}", "{at}", "{ip}", "{probe}"}
	lights := []string{"site", "first", "tail", "jump", "slot", "detour", "ip", "stack"}
	for key := range keys {
		w := dictionaryOfEvents.Events[key]
		require.NotNil(t, w, key)
		require.NotEmpty(t, w.What, key)
		require.NotEmpty(t, w.Why, key)
		for _, p := range placeholder.FindAllString(w.What+w.Why, -1) {
			require.Contains(t, names, p, key)
		}
		require.Subset(t, lights, w.Lights, key)
	}
	for key, w := range dictionaryOfEvents.Events {
		require.True(t, keys[key], "%s is no event", key)
		for _, at := range w.Where {
			require.NotEmpty(t, dictionaryOfEvents.Files[at.File], key)
		}
	}
}

// In each named release an event has at most one function and file, and where it can happen, it has one.
func TestEachReleaseHasOneFunctionForAnEvent(t *testing.T) {
	for _, m := range profile.Models() {
		rules, ok := profile.Named(m.Name)
		require.True(t, ok)
		for key, w := range dictionaryOfEvents.Events {
			n := 0
			for _, at := range w.Where {
				if !at.has(m.Release) {
					continue
				}
				files := 0
				for _, f := range dictionaryOfEvents.Files[at.File] {
					if f.has(m.Release) {
						files++
					}
				}
				require.LessOrEqual(t, files, 1, "%s in %s", key, m.Name)
				n += files
			}
			require.LessOrEqual(t, n, 1, "%s in %s", key, m.Name)
			if can(key, rules) {
				require.Equal(t, 1, n, "%s in %s", key, m.Name)
			}
		}
	}
}

// can reports whether an event can come in a release, for the events of which the profile says it.
func can(key string, c *profile.Config) bool {
	switch key {
	case "register", "unregister", "trap", "pre", "missed", "skipped", "step", "fault", "instance", "no-instance", "return", "return-handler", "returned":
		return true
	case "stepped-debug", "post-debug", "resume-debug":
		return c.Step.TrapFlag
	case "stepped", "post", "resume":
		return !c.Step.TrapFlag
	case "trap-tracer", "pre-tracer":
		return c.KprobesOnFtrace
	case "jprobe-return":
		return c.Jprobes
	case "poke-int3", "poke-tail", "poke-first", "poke-sync", "poke":
		return c.Optimize.Exists && !c.Optimize.StopMachine
	case "poke-stopped":
		return c.Optimize.Exists && c.Optimize.StopMachine
	case "queued", "optimized", "detour", "wait":
		return c.Optimize.Exists
	}
	return false
}
