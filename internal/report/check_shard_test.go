package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/internal/report"
	"kprobelab/kprobes/rule"
)

// Rule: a column of a file is printed as it was, with its refusals and hazards.
func TestColumnsOfShards(t *testing.T) {
	probes, err := report.ReadProbes(strings.NewReader("vfs_read\nnosuch\ncallee_pop+0xa\nvfs_*\nr:x gcd\np:9 gcd\n"))
	require.NoError(t, err)
	c := &report.Check{}
	c.Add(report.OfImage(guestImage(t)), probes)
	var again report.Column
	b, err := json.Marshal(report.Column{Check: c})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &again))
	for i := range c.Probes {
		require.Equal(t, c.Probes[i].Cells, again.Check.Probes[i].Cells)
	}
	require.Equal(t, c.Images, again.Check.Images)

	b, err = json.Marshal(report.Column{Unread: errors.New("no \xff")})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &again))
	require.EqualError(t, again.Unread, "no \xff")

	// The probes of standard input may differ from shard to shard.
	other := &report.Check{}
	other.Add(report.OfImage(guestImage(t)), probes[:2])
	_, _, err = report.Joined([]report.Column{{Check: c}, {Check: other}}, nil)
	require.ErrorIs(t, err, report.ErrProbes)

	// What is damaged is an error, or is printed; it is no panic.
	whole, err := json.Marshal(report.Column{Check: c})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(whole)
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.SampledFrom([]byte(`0123456789-"abcxyz{}[],:`)).Draw(t, "byte")
		}
		var one report.Column
		if json.Unmarshal(b, &one) != nil {
			return
		}
		for _, format := range report.CheckFormats {
			for files := range 2 {
				form := report.CheckForm{Format: format, Files: files}
				_, _, err := form.Write(&bytes.Buffer{}, io.Discard, []report.Column{one, {Check: c}})
				require.True(t, err == nil || errors.Is(err, report.ErrProbes))
			}
		}
	})
	for _, text := range []string{`{}`, `{"check":{"images":[]}}`, `{"check":{"images":[{}],"probes":[{"images":[]}]}}`, `{"check":{"images":[{}],"probes":[{"images":[{"hazards":[{"id":"x"}]}]}]}}`} {
		require.Error(t, json.Unmarshal([]byte(text), &again), text)
	}
}

func TestRulesByName(t *testing.T) {
	for _, kind := range []rule.Kind{rule.Registration, rule.OutOfLine, rule.Asking} {
		for _, id := range rule.Of(kind) {
			var again rule.ID
			require.NoError(t, again.UnmarshalText([]byte(id.String())))
			require.Equal(t, id.String(), again.String())
		}
	}
	var id rule.ID
	require.NoError(t, id.UnmarshalText(nil))
	require.Equal(t, rule.None, id)
	require.EqualError(t, id.UnmarshalText([]byte("NOSUCH")), `there is no rule "NOSUCH"`)
}
