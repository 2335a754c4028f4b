package definition

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The messages are those of docs/spec 9.8, in its table and below it.
func TestTextsAreTheSpecs(t *testing.T) {
	b, err := os.ReadFile("../../../docs/spec/09-kprobe-events.md")
	require.NoError(t, err)
	page := strings.Join(strings.Fields(string(b)), " ")
	for id, text := range texts {
		if text != "" {
			require.Contains(t, page, "`"+text+"`", "%d", id)
		}
	}
}
