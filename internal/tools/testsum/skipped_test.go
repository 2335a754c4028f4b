package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test counts here if every run skipped it, and the first reason matches.
func TestSkippedByReason(t *testing.T) {
	tally := strings.Join([]string{
		"skip\tm/a.TestA\tbinding needs root",
		"skip\tm/a.TestA\tshort",
		"skip\tm/a.TestB/one\tneeds root",
		"skip\tm/a.TestB/two\tneeds root",
		"skip\tm/a.TestC\tthe rootfs is not there",
		"skip\tm/a.TestD\tneeds root",
		"pass\tm/a.TestD\t",
		"fail\tm/a.TestE\t",
		"skip\tm/b.x.TestF\tor mount as root",
		"",
	}, "\n")
	var out strings.Builder
	require.NoError(t, printSkipped(&out, strings.NewReader(tally), regexp.MustCompile(`\broot\b`)))
	require.Equal(t, "m/a\t^(TestA|TestB)$\nm/b.x\t^(TestF)$\n", out.String())
}
