package explore

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A picture of hostile names is XML, and has no elements and attributes but its own.
func TestPictureOfHostileNames(t *testing.T) {
	for name, evil := range map[string]string{
		"element": "<script>alert(1)</script>", "end": "</text></svg><svg onload=alert(1)>", "attribute": "\" onload=\"alert(1)", "apostrophe": "' x='",
		"entity": "&lt;&#x3c;&amp", "control": "a\x00b\x1b[2J\n", "not_utf8": "a\xff\xfeb", "not_a_character": "a\ufffeb", "cut_in_a_character": strings.Repeat("é", 40), "comment": "<!-- x", "cdata": "]]><![CDATA[",
	} {
		t.Run(name, func(t *testing.T) {
			s := &Schedule{Scenario: evil, Profile: evil, Verdict: Verdict(evil), Reason: evil}
			s.Lines = []Line{{Lane: evil, What: evil}, {Lane: "b", What: evil + evil}}
			d := xml.NewDecoder(strings.NewReader(s.SVG()))
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if e, is := token.(xml.StartElement); is {
					require.Contains(t, []string{"svg", "rect", "text", "line"}, e.Name.Local)
					for _, a := range e.Attr {
						require.False(t, strings.HasPrefix(a.Name.Local, "on"), a.Name.Local)
					}
				}
			}
		})
	}
}
