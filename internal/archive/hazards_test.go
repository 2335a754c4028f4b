package archive_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
)

// points are the places of an image where an accepted probe does something wrong.
func points(t testing.TB, img *kimage.Image) (lines []string) {
	list, err := report.HazardPoints(img, nil)
	require.NoError(t, err)
	for i := range list {
		if list[i].Effect != hazard.Refused {
			lines = append(lines, list[i].Addr.String())
		}
	}
	require.NotEmpty(t, lines)
	return lines
}

// Rule: the file has every hazard of the image, with its words, and no other point has one.
func TestEveryHazardIsThere(t *testing.T) {
	img := guest(t)
	k, _ := packed(t, img)
	require.False(t, k.Column().NoHazards)
	for _, row := range cells(t, k, strings.Join(points(t, img), "\n")) {
		require.NotEmpty(t, row.Cells[0].Hazards, row.Text)
	}
	// TestEveryAddressIsAnsweredAlike compares the form of the answers.
}

// Rule: a file from before there were hazards has none and says that it was not asked.
func TestOlderFilesWereNotAsked(t *testing.T) {
	img := guest(t)
	p, err := archive.Pack(img, nil)
	require.NoError(t, err)
	k, err := opened(t, archive.WithoutHazards(t, p.Bytes))
	require.NoError(t, err)
	require.True(t, k.Column().NoHazards)
	at := points(t, img)[0]
	require.Empty(t, cells(t, k, at)[0].Cells[0].Hazards)
	require.NoError(t, k.Err())

	probes, err := report.ReadProbes(strings.NewReader(at))
	require.NoError(t, err)
	var c report.Check
	c.Add(k, probes)
	var text strings.Builder
	require.NoError(t, c.WriteText(&text))
	require.Contains(t, text.String(), "hazards were not asked about on one kernel: ")
}

// Rule: what a check of an archive allows passes on every file.
func TestAllowedHazardsOfFiles(t *testing.T) {
	img := guest(t)
	_, name := packed(t, img)
	probes, err := report.ReadProbes(strings.NewReader("callee_pop+0xa"))
	require.NoError(t, err)
	for want, allow := range map[int]map[hazard.ID]bool{0: {"RET_IMM": true}, 2: {"HALT": true}} {
		c, unread, err := report.Joined(archive.Check([]string{name, name}, probes, allow, nil), allow)
		require.NoError(t, err)
		require.Empty(t, unread)
		require.Equal(t, want, c.Hazardous)
	}
}
