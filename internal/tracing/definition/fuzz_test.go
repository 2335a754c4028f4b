package definition_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tracing/definition"
)

var goodName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// FuzzParse: no text makes the parser panic; a refusal's caret stands in the
// command or right after it; what is read back means the same again.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/definitions.txt")
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		if def, _, ok := strings.Cut(line, " -> "); ok {
			f.Add(def)
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, kernel := range []string{"4.4", "5.8", "5.10", "6.1", "6.12"} {
			d, err := parse(t, kernel, line)
			if err != nil {
				var e *definition.Error
				require.ErrorAs(t, err, &e)
				require.GreaterOrEqual(t, e.Column, 0)
				if kernel != "6.12" { // whose places are those of what it makes of %pD and $arg*
					require.LessOrEqual(t, e.Column, len(e.Command())+1)
				}
				continue
			}
			if !goodName.MatchString(d.Event) || kernel == "4.4" || d.Symbol != "" && !goodName.MatchString(d.Symbol) {
				continue // names that the kernel gives and reads back as something else
			}
			again, err := parse(t, kernel, d.String(d.MaxActive))
			require.NoError(t, err)
			again.Line = d.Line
			if d.Symbol == "" {
				d.Offset = 0
			}
			require.Equal(t, d, again)
		}
	})
}
