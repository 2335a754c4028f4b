package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each edit fits the code as it is: its old text is there once, and the new one is another.
func TestEditsFit(t *testing.T) {
	edits, err := parse(list)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, e := range edits {
		text, err := os.ReadFile(filepath.Join("../../..", e.file))
		require.NoError(t, err, e.name)
		require.Equal(t, 1, strings.Count(string(text), e.old), e.name)
		require.NotEqual(t, e.old, e.new, e.name)
		require.False(t, names[e.name], e.name)
		names[e.name] = true
	}
	require.NotEmpty(t, edits)
}

func TestBadLists(t *testing.T) {
	for text, want := range map[string]string{
		"file x":         "line 1: no edit has begun",
		"edit a\nwhat b": `line 2: "what" begins no line`,
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want)
	}
}

// The library's ends are written, and another one is told.
func TestExplored(t *testing.T) {
	require.ErrorContains(t, explored([]string{"9.9"}, 0, nil), `there is no profile "9.9"`)
	require.ErrorContains(t, explored([]string{"2.6.18"}, 0, []string{"nothing"}), "boosted-slot-is-used-again on 2.6.18: ok")
}
