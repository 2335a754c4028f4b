package profile

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a kernel release: 6.1.192 is {6, 1, 192}. A Patch of AnyPatch is a
// release of which only the series is known, as with vendors that number their
// own ("5.15.0-91-generic"): it counts as the series' newest.
type Version struct{ Major, Minor, Patch int }

// AnyPatch is the patch level of a release that does not tell it.
const AnyPatch = 1 << 30

// ParseVersion reads the numbers at the start of a release or of a
// distribution's version ("6.1.192-1"). A third number of 0 with a suffix after
// it is a vendor's, and says nothing of the patch level.
func ParseVersion(release string) (v Version, ok bool) {
	var n [3]int
	rest, found := release, 0
	for ; found < len(n); found++ {
		end := strings.IndexFunc(rest+".", func(r rune) bool { return r < '0' || r > '9' })
		x, err := strconv.Atoi(rest[:end])
		if err != nil {
			break
		}
		n[found], rest = x, rest[end:]
		if after, dot := strings.CutPrefix(rest, "."); dot {
			rest = after
			continue
		}
		found++
		break
	}
	if found == 3 && n[2] == 0 && strings.HasPrefix(rest, "-") {
		n[2] = AnyPatch
	}
	return Version{n[0], n[1], n[2]}, found >= 2
}

// String is the release as 6.1 or 6.1.5; a patch level of 0, or any, is left out.
func (v Version) String() string {
	if v.Patch == 0 || v.Patch == AnyPatch {
		return fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// before compares two releases.
func (v Version) before(w Version) bool {
	switch {
	case v.Major != w.Major:
		return v.Major < w.Major
	case v.Minor != w.Minor:
		return v.Minor < w.Minor
	}
	return v.Patch < w.Patch
}

// span is the releases in which a field's value differs from that of the
// nearest named profile or of its neighbours.
type span struct {
	// Field is the field's name in Config.
	Field string
	// From is the first release that has it, Until the first that has not; a
	// zero Until is open.
	From, Until Version
	// Stable has, per stable series, the first release that does as the
	// mainline after From (or after Until, if that is later than the series).
	Stable []Version
	set    func(c *Config, on bool)
	// Note says what the field means where its name does not, or what is not
	// known of the dates.
	Note string
}

// holds reports whether the field is set in a release.
func (s *span) holds(v Version) bool {
	on := !v.before(s.From) && (s.Until == Version{} || v.before(s.Until))
	for _, from := range s.Stable {
		if from.Major == v.Major && from.Minor == v.Minor && !v.before(from) {
			return v.before(s.From) // the next change after the series
		}
	}
	return on
}

// spans dates the fields that changed between the named profiles, in trees of 24
// releases of Linux 4.18 to 7.3 and in images from 6.16 on. Fields that are not
// here have the value of the nearest named profile.
var spans = []span{
	{Field: "Step.TrapFlag", Until: Version{5, 13, 0}, Stable: []Version{{5, 10, 133}}, set: SetTrapFlag,
		Note: "with it the rules of slots and of stepping; the patch level of 5.10 is known to be at or before 133"},
	{Field: "Decoder.EVEX", From: Version{4, 9, 0}, set: func(c *Config, on bool) { c.Decoder.EVEX = on }},
	{Field: "Decoder.EmulatePrefix", From: Version{5, 5, 0}, set: func(c *Config, on bool) { c.Decoder.EmulatePrefix = on }},
	{Field: "Decoder.Errors", From: Version{5, 13, 0}, Stable: []Version{{5, 10, 133}}, set: func(c *Config, on bool) { c.Decoder.Errors = on }},
	{Field: "Decoder.REX2", From: Version{6, 10, 0}, set: func(c *Config, on bool) { c.Decoder.REX2 = on }},
	{Field: "Decoder.INV64", From: Version{6, 16, 0}, set: func(c *Config, on bool) { c.Decoder.INV64 = on },
		Note: "6.14 has it not, 6.16.12 has"},
	{Field: "Decoder.XOP", From: Version{6, 18, 0}, set: func(c *Config, on bool) { c.Decoder.XOP = on }},
	{Field: "FaultHandler", Until: Version{5, 14, 0}, set: func(c *Config, on bool) { c.FaultHandler = on }},
	{Field: "Check.BugTable", From: Version{4, 19, 0}, set: func(c *Config, on bool) { c.Check.BugTable = on }},
	{Field: "Check.StaticCalls", From: Version{5, 10, 0}, set: func(c *Config, on bool) { c.Check.StaticCalls = on }},
	{Field: "Check.PaddingInt3", From: Version{6, 2, 0},
		Stable: []Version{{5, 10, 162}, {5, 15, 86}, {6, 0, 16}, {6, 1, 2}}, set: func(c *Config, on bool) { c.Check.PaddingInt3 = on }},
	{Field: "Optimize.Int3Blocks", From: Version{3, 0, 0}, Until: Version{6, 2, 0},
		Stable: []Version{{5, 10, 162}, {5, 15, 86}, {6, 0, 16}, {6, 1, 2}}, set: func(c *Config, on bool) { c.Optimize.Int3Blocks = on },
		Note: "until then an int3 that is not followed by int3 only, up to the end of the function"},
	{Field: "Optimize.Int3Tail", From: Version{5, 11, 0}, Until: Version{6, 2, 0},
		Stable: []Version{{5, 15, 86}, {6, 0, 16}, {6, 1, 2}}, set: func(c *Config, on bool) { c.Optimize.Int3Tail = on }},
	{Field: "Check.CFISymbols", From: Version{6, 11, 0}, Stable: []Version{{6, 1, 0}}, set: func(c *Config, on bool) { c.Check.CFISymbols = on },
		Note: "from 6.5 on with the arguments of the test swapped, so that it refused nothing; the patch level of 6.1 is not known"},
	{Field: "Step.JLENeedsBoth", From: Version{5, 13, 0}, Until: Version{6, 0, 0}, Stable: []Version{{5, 15, 64}, {5, 19, 6}},
		set: func(c *Config, on bool) { c.Step.JLENeedsBoth = on }},
	{Field: "Kret.EntryErrno", From: Version{5, 11, 0}, Stable: []Version{{4, 19, 175}, {5, 4, 97}, {5, 10, 15}},
		set: func(c *Config, on bool) { c.Kret.EntryErrno = on }, Note: "5.4.286 and 5.10.218 have it; where in their series it came is not known from trees"},
	{Field: "Kret.MaxDataSize", From: Version{5, 16, 0}, Stable: []Version{{4, 19, 220}, {5, 4, 164}, {5, 10, 84}, {5, 15, 7}}, set: func(c *Config, on bool) {
		c.Kret.MaxDataSize = 0
		if on {
			c.Kret.MaxDataSize = 4096
		}
	}, Note: "4096; 5.4.286, 5.10.218 and 5.15.85 have it, where in their series it came is not known from trees"},
	{Field: "Kret.BlacklistSwitchTo", From: Version{3, 0, 0}, Until: Version{6, 9, 0}, set: func(c *Config, on bool) { c.Kret.BlacklistSwitchTo = on },
		Note: "6.8 has it, 6.12 not"},
	{Field: "Kret.DefaultMaxActive", From: Version{6, 1, 0}, set: func(c *Config, on bool) {
		if !on && c.Kret.DefaultMaxActive == MaxActivePossible {
			c.Kret.DefaultMaxActive = MaxActiveCPUs
		}
	}, Note: "MaxActivePossible"},
	{Field: "Tracing.StarRefused", From: Version{7, 3, 0}, Stable: []Version{{6, 12, 115}, {7, 2, 13}},
		set: func(c *Config, on bool) { c.Tracing.StarRefused = on }},
	{Field: "Tracing.Types", From: Version{6, 3, 0}, set: func(c *Config, on bool) {
		switch {
		case on:
			c.Tracing.Types = Types612
		case c.Tracing.Types == Types612:
			c.Tracing.Types = Types61
		}
	}, Note: "Types612: char"},
	{Field: "Check.FtraceSiteMiddle", From: Version{3, 0, 0}, Until: Version{5, 18, 0}, set: func(c *Config, on bool) { c.Check.FtraceSiteMiddle = on },
		Note: "stable releases of 5.10 dropped it at a level that is not known; the code says"},
	{Field: "Check.IRQEntryText", From: Version{5, 1, 0}, Until: Version{5, 8, 0}, set: func(c *Config, on bool) { c.Check.IRQEntryText = on },
		Note: "5.4 has it, 5.8 not; the code says"},
	{Field: "Optimize.IRQEntryText", From: Version{4, 14, 0}, Until: Version{5, 8, 0}, set: func(c *Config, on bool) { c.Optimize.IRQEntryText = on },
		Note: "5.4 has it, 5.8 not; the code says"},
	{Field: "Check.ExceptionInsn", From: Version{6, 9, 0}, set: func(c *Config, on bool) { c.Check.ExceptionInsn = on }},
	{Field: "Slot.BoostRule", From: Version{6, 9, 0}, set: func(c *Config, on bool) {
		if on {
			c.Slot.BoostRule = Boost612
		} else if c.Slot.BoostRule == Boost612 {
			c.Slot.BoostRule = Boost61
		}
	}, Note: "Boost612"},
	{Field: "Step.VanishedInt3", Until: Version{6, 3, 0}, set: func(c *Config, on bool) { c.Step.VanishedInt3 = on }},
	{Field: "Resolve.NeedsSymbol", From: Version{5, 18, 0}, set: func(c *Config, on bool) { c.Resolve.NeedsSymbol = on }},
	{Field: "Resolve.EntryFlag", From: Version{6, 1, 0}, set: func(c *Config, on bool) { c.Resolve.EntryFlag = on }},
	{Field: "Resolve.NoplPoison", From: Version{6, 18, 0}, set: func(c *Config, on bool) { c.Resolve.NoplPoison = on }},
	{Field: "Kret.Rethook", From: Version{5, 18, 0}, set: func(c *Config, on bool) { c.Kret.Rethook = on }},
	{Field: "Optimize.SSWord", From: Version{5, 18, 0}, set: func(c *Config, on bool) { c.Optimize.SSWord = on },
		Note: "5.17 has it not, 5.19 has"},
	{Field: "Optimize.IndirectJumps", From: Version{3, 0, 0}, Until: Version{6, 5, 0}, set: setIndirectJumps,
		Note: "with Optimize.ThunkRange; later only where neither retpolines nor IBT are built in"},
}

// newestOf has, per named profile, the last series that it is the nearest to.
// Where one ends is where behaviour changed most: 4.19 dropped jprobes, 5.10 is
// Debian's backport of int3 stepping, 5.18 brought rethook and the symbol rule,
// 6.7 the newer tables.
var newestOf = []struct {
	major, minor int
	name         string
}{
	{2, 6, "2.6.18"}, {4, 18, "4.4"}, {5, 9, "5.8"}, {5, 17, "5.10"}, {6, 6, "6.1"},
}

// Nearest is the name of the profile that is nearest to a release in behaviour.
func (v Version) Nearest() string {
	for _, n := range newestOf {
		if v.Major < n.major || v.Major == n.major && v.Minor <= n.minor {
			return n.name
		}
	}
	return "6.12"
}

// Standing says how far a profile can be trusted for a release.
type Standing string

// The standings.
const (
	// Modelled: the series is that of a named profile, which was compared with
	// a kernel.
	Modelled Standing = "modelled"
	// Between: the fields follow from the dates of changes.
	Between Standing = "between models"
	// Newer: the release came after the last one whose changes are known.
	Newer Standing = "newer than modelled"
)

// newest is the newest series whose changes are in the table.
var newest = Version{7, 3, AnyPatch}

// Standing is that of ForRelease's profile.
func (v Version) Standing() Standing {
	if newest.before(v) {
		return Newer
	}
	n, _ := ParseVersion(v.Nearest())
	if n.Major == v.Major && n.Minor == v.Minor {
		return Modelled
	}
	return Between
}

// ForRelease is the profile of a release: the nearest named one, under whose
// name it goes, with the fields that differ by the dates of their changes. A
// configuration can decide otherwise.
func ForRelease(v Version) *Config {
	c, _ := Named(v.Nearest())
	for i := range spans {
		spans[i].set(c, spans[i].holds(v))
	}
	return c
}

func setIndirectJumps(c *Config, on bool) { c.Optimize.IndirectJumps, c.Optimize.ThunkRange = on, on }

// SetTrapFlag takes the stepping, the slots and the emulation of a release that
// steps by the trap flag, or by an int3: the three came together.
func SetTrapFlag(c *Config, on bool) {
	if c.Step.TrapFlag == on {
		return
	}
	p := v510()
	if on {
		p = v58()
	}
	c.Step, c.Slot = p.Step, p.Slot
}
