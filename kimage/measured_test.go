package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// An answer that differs from the release's row shows the row's value; a row without a value shows
// that it has none.
func TestAnswersThatDifferFromTheRelease(t *testing.T) {
	for name, c := range map[string]struct{ before, answer, says string }{
		"another":   {"a: ", "b: ", "asked; it was taken for a: "},
		"none":      {"", "b: ", "asked; the release gives no value"},
		"the_same":  {"b: ", "b: ", "asked"},
		"now_empty": {"a: ", "", "asked; it was taken for a: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := &profile.Config{}
			p.Log.Prefix = c.before
			img := &Image{profile: p}
			img.answer(Answer{Field: "Log.Prefix", Value: c.answer, Evidence: "asked"})
			require.Equal(t, c.says, img.Fact("Log.Prefix").Evidence)
			require.Equal(t, c.answer, img.profile.Log.Prefix)
			require.Equal(t, c.before, p.Log.Prefix, "the release's row stays")
		})
	}
}
