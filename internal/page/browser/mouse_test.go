package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A mouse presses Play: the machine goes on by itself until Stop is pressed. The button is found by its CSS selector alone: for a plain string
// chromedp searches the texts of the page, too, and waits until the style sheet that has these words is visible.
func TestPlayIsPressedByAMouse(t *testing.T) {
	ctx := machine(t, "m")
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("[data-key=play]"))))
	until(t, ctx, `watch.machine.view.steps > 3`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("[data-key=play]"))))
	until(t, ctx, `document.querySelector("[data-key=play]").textContent === "Play"`)
}
