package browser

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Pictures of each lesson's main moment, the one that answers its question: on a laptop, on a phone, dark, and on paper. In each, no
// text of the caption, the bytes and the buttons is outside of the window. $KPROBELAB_PICTURES keeps them.
func TestEachLessonsMainMoment(t *testing.T) {
	for _, look := range []struct {
		name, scheme, media string
		width               int64
	}{{"laptop", "light", "screen", 1366}, {"phone", "light", "screen", 360}, {"dark", "dark", "screen", 1366}, {"print", "light", "print", 1366}} {
		t.Run(look.name, func(t *testing.T) {
			ctx := tab(t, page(t)+"#lesson")
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(look.width, laptopHeight)))
			as(t, ctx, look.scheme, "screen")
			until(t, ctx, `lesson.list?.length === 11 && !!lesson.machine?.view`)
			for n := range 11 {
				mainMoment(t, ctx, n)
				as(t, ctx, look.scheme, look.media)
				require.LessOrEqual(t, eval[int64](t, ctx, `document.documentElement.scrollWidth`), look.width, "lesson %d", n+1)
				require.Empty(t, eval[string](t, ctx, `[...document.querySelectorAll("#lesson-machine :is(.caption, .cell, .controls button)")].filter((e) => { const b = e.getBoundingClientRect(); return b.width > 0 && (b.left < 0 || b.right > innerWidth || e.scrollWidth > e.clientWidth + 1); }).map((e) => e.textContent).join()`), "lesson %d", n+1)
				require.GreaterOrEqual(t, eval[float64](t, ctx, leastGap), 6.0, "lesson %d: the bytes touch the instruction", n+1)
				switch look.name {
				case "laptop", "phone":
					require.True(t, eval[bool](t, ctx, `(() => { const b = $("verdict").getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight; })()`), "lesson %d: the verdict is in sight", n+1)
					if look.name == "laptop" {
						require.True(t, eval[bool](t, ctx, `(() => { const b = $("try").getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight; })()`), "lesson %d: so is what comes next", n+1)
					}
				case "print":
					require.Empty(t, eval[string](t, ctx, `[...document.querySelectorAll("#lesson :is(.head button, .controls button, [type=file], .foot input)")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML).join()`), "lesson %d", n+1)
					require.Empty(t, eval[string](t, ctx, `[...document.querySelectorAll("#lesson :is(.aside, .says, .pane)")].filter((e) => e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== "visible").map((e) => e.className).join()`), "lesson %d: nothing is cut", n+1)
					require.Empty(t, eval[string](t, ctx, `[...document.querySelectorAll("#lesson p")].filter((p) => p.checkVisibility() && [...p.querySelectorAll("a, button")].some((a) => !a.checkVisibility())).map((p) => p.textContent).join()`), "lesson %d: no sentence without a part of it", n+1)
				}
				if os.Getenv("KPROBELAB_PICTURES") != "" {
					picture(t, ctx, fmt.Sprintf("moment-%02d-%s", n+1, look.name))
				}
				as(t, ctx, look.scheme, "screen")
			}
		})
	}
}

// leastGap is the least distance between an instruction's bytes and its words.
const leastGap = `(() => {
	const range = document.createRange();
	const box = (x) => (range.selectNodeContents(x), range.getBoundingClientRect());
	return Math.min(...[...document.querySelectorAll("#lesson-machine .code.fixed tbody tr")].filter((r) => r.checkVisibility()).map((r) => box(r.cells[3]).left - box(r.cells[2]).right));
})()`

// as sets the colours that the reader prefers, without motion, and the medium.
func as(t *testing.T, ctx context.Context, scheme, media string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media:    media,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	require.NoError(t, err)
}

// mainMoment goes to a lesson, numbered from 0, and gives its right answer.
func mainMoment(t *testing.T, ctx context.Context, n int) {
	t.Helper()
	eval[bool](t, ctx, fmt.Sprintf(`location.hash = "lesson?n=%d", true`, n+1))
	until(t, ctx, fmt.Sprintf(`lesson.n === %d && $("answers").children.length > 0 && lesson.machine.scenario.probes === lesson.list[%d].scenario.probes`, n, n))
	right := eval[int](t, ctx, `question({ do: "predict", of: lesson.list[lesson.n], answer: 0 }).then((c) => c.answer)`)
	eval[bool](t, ctx, fmt.Sprintf(`($("answers").children[%d].click(), true)`, right))
	until(t, ctx, `!!document.querySelector("#try")`)
}
