package web_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page/web"
)

// Without JavaScript the page says what it needs, and does not start for ever.
func TestWithoutJavaScript(t *testing.T) {
	page, err := web.Build(nil, nil, &web.Texts{Lessons: []web.Lesson{{Title: "A <title>", Text: []string{"Text & more."}}}})
	require.NoError(t, err)
	require.Contains(t, string(page), "<h3>1. A &lt;title&gt;</h3>\n<p>Text &amp; more.</p>")
	require.Contains(t, string(page), "This page is a program: it needs JavaScript.")
	require.Regexp(t, `(?s)<noscript><style>#lesson\[hidden\] { display: block.*</noscript>`, string(page))
	require.NotContains(t, string(page), `role="status">Starting`)
}

// The glossary's table becomes words and meanings, without the table's notation.
func TestTheGlossaryIsInThePage(t *testing.T) {
	page, err := web.Build(nil, nil, &web.Texts{Glossary: []byte("| word | meaning |\n|---|---|\n| **slot** | a *copy*, `CC`, see [there](x.md) and <b> |\n")})
	require.NoError(t, err)
	require.Contains(t, string(page), `{"slot":"a copy, CC, see there and \u003cb\u003e"}`)
}
