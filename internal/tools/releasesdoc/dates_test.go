package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

var dated = regexp.MustCompile(`\((?:(\d+\.\d+(?:\.\d+)?) and later|to (\d+\.\d+)|(\d+\.\d+(?:\.\d+)?) to (\d+\.\d+))`)

// A field's sentence dates it as the table does: "(6.1 and later" is the From of a row, "(to 5.9" the last series before an
// Until, "(5.11 to 6.1" both.
func TestDatesOfSentencesAreThoseOfTheTable(t *testing.T) {
	about, order, err := comments("../../../profile")
	require.NoError(t, err)
	begins, ends := map[string][]string{}, map[string][]profile.Version{}
	for _, c := range profile.Changes() {
		begins[c.Field] = append(begins[c.Field], c.From.String())
		ends[c.Field] = append(ends[c.Field], c.Until)
	}
	n := 0
	for _, field := range order {
		for _, m := range dated.FindAllStringSubmatch(about[field], -1) {
			if len(begins[field]) == 0 { // no named profile has it
				continue
			}
			n++
			if from := m[1] + m[3]; from != "" && !aboutTwo(about[field]) {
				assert.Contains(t, begins[field], from, "%s: %s", field, about[field])
			}
			if last, ok := profile.ParseVersion(m[2] + m[4]); ok {
				assert.True(t, slices.ContainsFunc(ends[field], func(until profile.Version) bool { return follows(until, last) }), "%s: %s", field, about[field])
			}
		}
	}
	require.Greater(t, n, 80)
}

// aboutTwo reports whether a sentence is about two fields, each with its date.
func aboutTwo(sentence string) bool { return len(dated.FindAllString(sentence, -1)) > 1 }

// follows reports whether until is the first release after the series of last. The last series of a major number is not known
// here.
func follows(until, last profile.Version) bool {
	if until.Patch > 0 {
		return until.Major == last.Major && until.Minor == last.Minor
	}
	return until.Major == last.Major && until.Minor == last.Minor+1 || until.Major == last.Major+1 && until.Minor == 0
}
