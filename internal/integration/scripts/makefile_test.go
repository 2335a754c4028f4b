package scripts

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	target  = regexp.MustCompile(`^([a-z][a-z0-9-]*):([^=#]*)`)
	goTool  = regexp.MustCompile(`\bgo (run|test|build|install) `)
	withCGO = regexp.MustCompile(`CGO_ENABLED=0|scripts/unicorn\.sh|CGO_LDFLAGS=`)
)

// In a fresh clone Unicorn is not there. A target that links it makes it first (deps, build), or sets up one of its own.
func TestTargetsThatLinkUnicornMakeItFirst(t *testing.T) {
	b, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	name, made, seen := "", false, 0
	for line := range strings.Lines(string(b)) {
		if m := target.FindStringSubmatch(line); m != nil {
			name = m[1]
			made = regexp.MustCompile(`\b(deps|build)\b`).MatchString(m[2])
			continue
		}
		if !strings.HasPrefix(line, "\t") {
			continue
		}
		made = made || withCGO.MatchString(line)
		if goTool.MatchString(line) {
			seen++
			require.True(t, made, "make %s links Unicorn, and does not need deps: %s", name, strings.TrimSpace(line))
		}
	}
	require.Greater(t, seen, 15)
}
