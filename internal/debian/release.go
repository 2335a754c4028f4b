package debian

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrIndex is an index of a suite that is damaged, not of the suite that was asked for, or too old.
var ErrIndex = errors.New("its index is of no use")

// ErrOld is an index past its date of validity; it is an ErrIndex, too.
var ErrOld = fmt.Errorf("%w: it is too old", ErrIndex)

// Release is the index of a suite, whose signature was checked.
type Release struct {
	Suite, Codename  string
	Date, ValidUntil time.Time
	// ByHash is true if files can also be found by their checksums.
	ByHash bool
	files  map[string]Sum
}

// Sum is a file's checksum and size, as an index has them.
type Sum struct {
	SHA256 string
	Size   int64
}

// ParseRelease reads the text of an InRelease or a Release.
func ParseRelease(text []byte) (*Release, error) {
	r := &Release{files: map[string]Sum{}}
	n := 0
	err := stanzas(bytes.NewReader(text), nil, func(f map[string]string) error {
		if n++; n > 1 {
			return fmt.Errorf("%w: it has two stanzas", ErrIndex)
		}
		r.Suite, r.Codename, r.ByHash = f["suite"], f["codename"], f["acquire-by-hash"] == "yes"
		var err1, err2 error
		r.Date, err1 = date(f["date"])
		r.ValidUntil, err2 = date(f["valid-until"])
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("%w: it has a date that is none", ErrIndex)
		}
		for line := range strings.Lines(f["sha256"]) {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			sum, ok := parseSum(words[0], words[min(1, len(words)-1)])
			if !ok || len(words) != 3 {
				return fmt.Errorf("%w: a checksum of it is damaged", ErrIndex)
			}
			r.files[words[2]] = sum
		}
		return nil
	})
	if err == nil && len(r.files) == 0 {
		err = fmt.Errorf("%w: it has no checksums (SHA256)", ErrIndex)
	}
	return r, err
}

func parseSum(hash, size string) (Sum, bool) {
	n, err := strconv.ParseInt(size, 10, 64)
	hex := len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
	return Sum{hash, n}, err == nil && n >= 0 && hex
}

// date is a date of RFC 1123, with the zone's name or its offset; the zero time for none.
func date(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse("Mon, _2 Jan 2006 15:04:05 MST", s)
	if err != nil {
		t, err = time.Parse("Mon, _2 Jan 2006 15:04:05 -0700", s)
	}
	return t, err
}

// Of fails unless the index belongs to a suite and is valid at a time; expired means that its age
// does not matter.
func (r *Release) Of(suite string, at time.Time, expired bool) error {
	switch {
	case suite != r.Suite && suite != r.Codename:
		return fmt.Errorf("%w: it is of %s (%s), not of %s", ErrIndex, r.Codename, r.Suite, suite)
	case !expired && !r.ValidUntil.IsZero() && at.After(r.ValidUntil):
		return fmt.Errorf("%w: it was valid until %s (Check-Valid-Until: no in the sources takes it all the same)",
			ErrOld, r.ValidUntil.UTC().Format("2006-01-02"))
	}
	return nil
}

// Packages returns the name of a component's list of packages for x86-64, and its checksum. Of the
// packed forms it prefers the one that unpacks fastest.
func (r *Release) Packages(component string) (name string, sum Sum, ok bool) {
	for _, ending := range []string{".gz", ".xz", ""} {
		name = component + "/binary-amd64/Packages" + ending
		if sum, ok = r.files[name]; ok {
			return name, sum, true
		}
	}
	return "", Sum{}, false
}

// Path returns the path of a file of the index, below the suite's folder. A path by checksum does
// not change while it is fetched.
func (r *Release) Path(name string, sum Sum) string {
	if !r.ByHash {
		return name
	}
	dir := name[:max(strings.LastIndexByte(name, '/'), 0)]
	return strings.Join(slices.DeleteFunc([]string{dir, "by-hash/SHA256", sum.SHA256}, func(s string) bool { return s == "" }), "/")
}
