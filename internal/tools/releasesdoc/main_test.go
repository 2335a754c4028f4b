package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// TestPageIsUpToDate: docs/releases.md agrees with the table, and has every row.
func TestPageIsUpToDate(t *testing.T) {
	page, err := releases("../../../profile")
	require.NoError(t, err)
	have, err := os.ReadFile("../../../docs/releases.md")
	require.NoError(t, err)
	require.Equal(t, string(have), string(page), "run go generate ./profile")
	rows := bytes.Count(page, []byte("\n| ")) - bytes.Count(page, []byte("\n| field")) - bytes.Count(page, []byte("\n| name"))
	require.Equal(t, len(profile.Changes())+len(profile.All()), rows)
}

func TestCellEscapesBars(t *testing.T) {
	require.Equal(t, `p\|r. at the end.`, cell("p|r.", "", "at the end"))
}
