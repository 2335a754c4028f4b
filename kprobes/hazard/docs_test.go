package hazard_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes/hazard"
)

var update = flag.Bool("update", false, "write the table into docs/hazards.md")

// TestDocumentedTable: the page has the package's table.
func TestDocumentedTable(t *testing.T) {
	const page = "../../docs/hazards.md"
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(b), "what follows -->\n")
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, "<!-- table: end -->")
	require.True(t, ok)
	want := head + "what follows -->\n" + documented() + "<!-- table: end -->" + tail
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(b))
}

func documented() string {
	var b strings.Builder
	b.WriteString("\n| hazard | effect | what happens | kernels | field | evidence |\n|---|---|---|---|---|---|\n")
	for _, h := range hazard.All() {
		says := h.Sentence
		if h.Needs != "" {
			says += ". Needs " + h.Needs
		}
		field := ""
		if h.Field != "" {
			field = "`" + h.Field + "`"
		}
		cell := strings.NewReplacer("|", "\\|", "*", "\\*")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", h.ID, h.Effect, cell.Replace(says), h.Span(), field, h.Evidence)
	}
	return b.String() + "\n"
}
