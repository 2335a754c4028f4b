package web_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page/web"
)

// Without JavaScript the page says what it needs, and does not start for ever.
func TestWithoutJavaScript(t *testing.T) {
	page, err := web.Build(nil, nil)
	require.NoError(t, err)
	require.Contains(t, string(page), "<noscript><p>This page is a program: it needs JavaScript.")
	require.NotContains(t, string(page), `role="status">Starting`)
}
