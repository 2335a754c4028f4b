package web

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var topLevel = regexp.MustCompile(`(?m)^(?:async )?(?:function\*?|class|const|let|var) ([\w$]+)`)

// All scripts share one scope: of two functions of one name the second would replace the first without an error.
func TestEachNameOfTheScriptsIsGivenOnce(t *testing.T) {
	given := map[string]string{}
	for _, file := range scripts {
		text, err := files.ReadFile(file)
		require.NoError(t, err)
		for _, m := range topLevel.FindAllStringSubmatch(string(text), -1) {
			require.Empty(t, given[m[1]], "%s in %s", m[1], file)
			given[m[1]] = file
		}
	}
	require.Greater(t, len(given), 100)
}
