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

// Matches reports whether both are the same release, as far as they tell it.
func (v Version) Matches(w Version) bool {
	return v.Major == w.Major && v.Minor == w.Minor &&
		(v.Patch == w.Patch || v.Patch == AnyPatch || w.Patch == AnyPatch)
}
