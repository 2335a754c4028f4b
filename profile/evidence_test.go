package profile

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func evidence(t *testing.T) (asked []Asked, records []Record) {
	text, err := os.ReadFile("testdata/asked.txt")
	require.NoError(t, err)
	asked, err = ReadAsked(string(text))
	require.NoError(t, err)
	text, err = os.ReadFile("testdata/records.txt")
	require.NoError(t, err)
	records, err = ReadRecords(string(text))
	require.NoError(t, err)
	return asked, records
}

// TestAskedReleases: the table gives each release the values that were found in its image.
func TestAskedReleases(t *testing.T) {
	asked, _ := evidence(t)
	n := 0
	for _, a := range asked {
		for _, v := range a.Releases {
			require.Equal(t, a.Value, ForRelease(v).Field(a.Field), "%s of %s, %s", a.Field, v, a.How)
			n++
		}
	}
	require.Greater(t, n, 3000)
}

// TestRecords: each record belongs to a date of a row of the field.
func TestRecords(t *testing.T) {
	_, records := evidence(t)
	dates := map[string]bool{}
	for _, c := range Changes() {
		for _, d := range c.Dates() {
			dates[c.Field+" "+d.String()] = true
		}
	}
	for _, r := range records {
		for _, f := range r.Fields {
			require.True(t, dates[f+" "+r.Release.String()], "%s has no date %s (%s)", f, r.Release, r.Title)
		}
	}
}

func TestEvidence(t *testing.T) {
	asked, records := evidence(t)
	for field, want := range map[string]string{
		"Tracing.MatchCut 6.12.101":              `6.12.100 booted has it, 6.12.101 booted has it not; changelog: "tracing/probes: Avoid temporary buffer truncation in trace_probe_match_command_args()"`,
		"Tracing.LoneQuote 6.19.14":              "6.19.13 booted has it, 6.19.14 booted has it not",
		"Optimize.FirstProbeEndsSearch 6.12.113": `6.12.111 booted has it, 6.12.113 booted has it not; changelog: "kprobes: Skip disarmed probes when checking optkprobe overlap"`,
		"Check.CFISymbols 6.5":                   "",
	} {
		name, date, _ := strings.Cut(field, " ")
		v := version(t, date)
		for _, c := range Changes() {
			if c.Field == name {
				got := c.Evidence(v, asked, records)
				if want == "" {
					require.NotEmpty(t, got, field)
					continue
				}
				require.Equal(t, want, got, field)
			}
		}
	}
	_, err := ReadAsked("A b c")
	require.Error(t, err)
	_, err = ReadAsked("A b c x")
	require.Error(t, err)
	_, err = ReadRecords("commit 6.1 A")
	require.Error(t, err)
}

// TestEveryDateHasEvidence: a row's date is shown by a tree, a kernel or a record.
func TestEveryDateHasEvidence(t *testing.T) {
	asked, records := evidence(t)
	var bare []string
	for _, c := range Changes() {
		for _, d := range c.Dates() {
			name := c.Field + " " + d.String()
			if c.Evidence(d, asked, records) == "" && !slices.Contains(bare, name) {
				bare = append(bare, name)
			}
		}
	}
	require.Empty(t, bare)
}

// TestRecordOfMainlineHasItsHash: 12 digits before a title are the commit's hash.
func TestRecordOfMainlineHasItsHash(t *testing.T) {
	list, err := ReadRecords("commit 2.6.33 A f5ad31158d60 kprobes/x86-64: Allow\ncommit 6.1 A deadbeef title of eight digits")
	require.NoError(t, err)
	require.Equal(t, "f5ad31158d60", list[0].Commit)
	require.Equal(t, "kprobes/x86-64: Allow", list[0].Title)
	require.Empty(t, list[1].Commit)
	require.Equal(t, "deadbeef title of eight digits", list[1].Title)
}

// TestValueIsOneWord: a value with spaces, with none, and no text at all come back.
func TestValueIsOneWord(t *testing.T) {
	for _, value := range []string{"_do_fork", "kprobes: ", "", "Oops! Kretprobe fails to find correct return address.", "true"} {
		word := WriteValue(value)
		require.NotContains(t, word, " ")
		list, err := ReadAsked("Log.Prefix tree " + word + " 6.1")
		require.NoError(t, err)
		require.Equal(t, value, list[0].Value)
	}
}
