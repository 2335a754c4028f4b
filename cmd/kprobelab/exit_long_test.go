package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// An error says what is wrong, however long the words are that it is about.
func TestErrorLinesAreShort(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	for name, args := range map[string][]string{
		"image": {"info", long}, "image_in_a_folder": {"info", "/" + long}, "flag": {"run", "--" + long}, "value": {"run", "--budget", long, "x"},
		"command": {long}, "call": {"run", "--call", long, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.NotZero(t, execute(append([]string{"kprobelab"}, args...), &out, &errs))
			for _, line := range strings.Split(errs.String(), "\n") {
				require.Less(t, len(line), bounded.ErrorLine+100)
				require.True(t, utf8.ValidString(line))
			}
			require.NotEmpty(t, errs.String())
			require.Less(t, errs.Len(), 4*bounded.ErrorLine)
		})
	}
}
