package profile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Default is the default profile: Debian 12's kernel, which has PREEMPTION.
const Default = "6.1"

// Model is a named profile.
type Model struct {
	Name string
	// Release is the release that the profile describes; it selects the rows of the table.
	Release Version
	// Compared: every field was compared with that kernel, or with its source.
	Compared bool
	// Describes is one line for people.
	Describes string
}

// Models lists the named profiles, oldest first.
func Models() []Model { return slices.Clone(models) }

// models are the named profiles, oldest first. All follow from the table of releases. A profile
// that is not Compared describes its series' newest release.
var models = []Model{
	{"2.6.18", Version{2, 6, 18}, true, "Linux 2.6.18: jprobes, trap-flag stepping, no optimization, no boosting"},
	{"2.6.32", Version{2, 6, 32}, false, "Linux 2.6.32, no PREEMPTION: jprobes, boosting, no optimization, no test of boundaries"},
	{"3.2", Version{3, 2, AnyPatch}, false, "Linux 3.2, no PREEMPTION: jprobes, boosting, optimization by stopping the machine"},
	{"3.10", Version{3, 10, AnyPatch}, false, "Linux 3.10, no PREEMPTION: jprobes, boosting, probes on ftrace sites, optimization by stopping the machine"},
	{"4.4", Version{4, 4, AnyPatch}, true, "Linux 4.4, no PREEMPTION: jprobes, trap-flag stepping, boosting, optimization"},
	{"4.14", Version{4, 14, AnyPatch}, false, "Linux 4.14, no PREEMPTION: jprobes, trap-flag stepping, boosting, optimization"},
	{"4.19", Version{4, 19, AnyPatch}, false, "Linux 4.19, no PREEMPTION: trap-flag stepping, boosting, fault_handler, optimization"},
	{"5.4", Version{5, 4, AnyPatch}, false, "Linux 5.4, no PREEMPTION: trap-flag stepping, boosting, fault_handler, optimization"},
	{"5.8", Version{5, 8, AnyPatch}, true, "Linux 5.8, no PREEMPTION: trap-flag stepping, boosting, fault_handler, optimization"},
	{"5.10", Version{5, 10, 223}, true, "Debian 11's 5.10.223, no PREEMPTION: int3 stepping backported, boosting, fault_handler"},
	{"5.15", Version{5, 15, AnyPatch}, false, "Linux 5.15, no PREEMPTION: int3 stepping, boosting, optimization"},
	{"6.1", Version{6, 1, 192}, true, "Debian 12's 6.1.192, PREEMPTION: int3 stepping, no boosting, rethook, optimization"},
	{"6.6", Version{6, 6, AnyPatch}, false, "Linux 6.6, PREEMPTION: int3 stepping, rethook, optimization of functions with indirect jumps"},
	{"6.8", Version{6, 8, AnyPatch}, false, "Linux 6.8, PREEMPTION and IBT: int3 stepping, rethook, optimization"},
	{"6.9", Version{6, 9, AnyPatch}, false, "Linux 6.9, PREEMPTION and IBT: more instructions boosted, exceptions refused"},
	{"6.12", Version{6, 12, 107}, true, "Debian 13's 6.12.107, PREEMPTION and IBT: int3 stepping, rethook, optimization"},
	{"6.18", Version{6, 18, AnyPatch}, false, "Linux 6.18, PREEMPTION and IBT: the decoder's XOP, another no-operation over ENDBR"},
	{"7.0", Version{7, 0, AnyPatch}, false, "Linux 7.0, PREEMPTION and IBT: the optimizer is a thread"},
	{"7.3", Version{7, 3, AnyPatch}, false, "Linux 7.3, PREEMPTION and IBT: typecasts and $current in kprobe_events"},
}

// Line is Describes for this configuration: if its preemption is not the named profile's, the line
// has its own, with the consequences.
func (c *Config) Line() string {
	named, ok := Named(c.Name)
	if !ok || named.Preemption == c.Preemption {
		return c.Describes
	}
	if !c.Preemption {
		line := strings.Replace(c.Describes, ", PREEMPTION and IBT:", ", IBT, PREEMPTION:", 1)
		line = strings.Replace(line, ", PREEMPTION:", ", no PREEMPTION:", 1)
		return strings.Replace(line, ", no boosting", ", boosting", 1)
	}
	line := strings.Replace(c.Describes, ", no PREEMPTION:", ", PREEMPTION:", 1)
	return strings.Replace(line, " boosting", " no boosting", 1)
}

// Names lists the named profiles that were compared field by field, with the kernel or with its source, oldest first.
func Names() []string { return modelNames(func(m *Model) bool { return m.Compared }) }

// Derived lists the other profiles that Named knows, oldest first: they follow
// from the dates of changes and were not compared field by field.
func Derived() []string { return modelNames(func(m *Model) bool { return !m.Compared }) }

// All lists every name that Named knows, oldest first.
func All() []string { return modelNames(func(*Model) bool { return true }) }

func modelNames(is func(*Model) bool) (list []string) {
	for i := range models {
		if is(&models[i]) {
			list = append(list, models[i].Name)
		}
	}
	return list
}

// Named returns a fresh copy of the profile with that name, and whether there
// is one.
func Named(name string) (*Config, bool) {
	i := slices.IndexFunc(models, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return nil, false
	}
	return ForRelease(models[i].Release), true
}

// ErrUnknown is a name that no profile has.
var ErrUnknown = errors.New("there is no profile")

// Find returns a fresh copy of the profile with that name, or an ErrUnknown that lists the names.
func Find(name string) (*Config, error) {
	c, ok := Named(name)
	if !ok {
		return nil, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(All(), ", "))
	}
	return c, nil
}

// Nearest returns the name of the profile nearest to a release: the last profile whose series is
// not newer. In 2.6, the third number is the series.
func (v Version) Nearest() string {
	near := models[0].Name
	for i := range models {
		m := models[i].Release
		if m.Major > 2 {
			m.Patch = 0
		}
		if !v.before(m) {
			near = models[i].Name
		}
	}
	return near
}

func describe(name string) string {
	return models[slices.IndexFunc(models, func(m Model) bool { return m.Name == name })].Describes
}

// Standing is the degree to which a profile can be trusted for a release.
type Standing string

// The standings.
const (
	// Modelled: the series belongs to a named profile that was compared field by field.
	Modelled Standing = "modelled"
	// Between: the fields follow from the dates of changes.
	Between Standing = "between models"
	// Newer: the release came after the last one whose changes are known.
	Newer Standing = "newer than modelled"
)

// newest is the newest series whose changes are in the table.
var newest = Version{7, 3, AnyPatch}

// Standing returns the standing of ForRelease's profile.
func (v Version) Standing() Standing {
	if newest.before(v) {
		return Newer
	}
	for i := range models {
		if m := &models[i]; m.Compared && m.Release.Major == v.Major && m.Release.Minor == v.Minor {
			return Modelled
		}
	}
	return Between
}

// The multipliers of hash_64 to 4.5, and from 4.6 on.
const (
	goldenRatioPrime = 0x9e37fffffffc0001
	goldenRatio      = 0x61c8864680b583eb
)
