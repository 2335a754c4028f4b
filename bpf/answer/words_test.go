package answer

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWordsOfAnswers(t *testing.T) {
	yes, no := true, false
	for word, c := range map[string]struct {
		program Program
		bad     bool
	}{
		"attaches":               {Program{Loads: true, Attaches: &yes}, false},
		"loads":                  {Program{Loads: true}, false},
		"not attached":           {Program{Loads: true, Attaches: &no}, true},
		"not attached, optional": {Program{Loads: true, Attaches: &no, Optional: true}, false},
		"refused":                {Program{}, true},
		"refused, optional":      {Program{Optional: true}, false},
		"not asked":              {Program{Unasked: true, Optional: true}, false},
	} {
		t.Run(word, func(t *testing.T) {
			assert.Equal(t, word, c.program.Word())
			assert.Equal(t, c.bad, c.program.Bad())
		})
	}
}
