package browser

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// withoutProgram opens an address in a browser in which the program never comes.
func withoutProgram(t *testing.T, address string, reduced bool) context.Context {
	t.Helper()
	ctx := blank(t, true)
	if reduced {
		still(t, ctx)
	}
	_, err := chromedp.Call(ctx, cdp.AddScriptToEvaluateOnNewDocument, cdp.AddScriptToEvaluateOnNewDocumentParams{Source: `window.Worker = class { postMessage() {} }`})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(laptopWidth, laptopHeight), chromedp.Navigate(address)))
	return ctx
}

// Before the program is there, the picture of the planted int3 moves: in sight at once, in each view, and for less than five seconds.
func TestSomethingMovesBeforeTheProgram(t *testing.T) {
	for _, view := range []string{"", "#lesson", "#watch", "#film", "#explore"} {
		t.Run(view, func(t *testing.T) {
			ctx := withoutProgram(t, page(t)+view, false)
			require.True(t, eval[bool](t, ctx, `(() => { const b = $("early-stage").getBoundingClientRect(); return b.top > 0 && b.bottom <= innerHeight && b.width > 200; })()`))
			moving := `document.getAnimations().filter((a) => a.effect.target.closest("#early-stage"))`
			require.Greater(t, eval[int](t, ctx, moving+`.length`), 3)
			require.LessOrEqual(t, eval[float64](t, ctx, `Math.max(...`+moving+`.map((a) => a.effect.getComputedTiming().endTime))`), 5000.0)
			eval[bool](t, ctx, moving+`.map((a) => a.finish()).length > 0`)
			picture(t, ctx, "early"+view)
			require.Equal(t, "Starting …", eval[string](t, ctx, `$("status").textContent`))
		})
	}
}

// Where motion is reduced, before and after stand side by side. The bytes are those of the first lesson's machine.
func TestBeforeAndAfterWithoutMotion(t *testing.T) {
	ctx := withoutProgram(t, page(t)+"#lesson", true)
	rows := `[...document.querySelectorAll(".early-still .early-row")].map((r) => [...r.querySelectorAll(".early-cell")].map((c) => c.lastChild.textContent || c.firstChild.textContent).join(" "))`
	require.Zero(t, eval[int](t, ctx, `document.getAnimations().filter((a) => a.effect.target.closest("#early-stage")).length`))
	said := eval[[]string](t, ctx, rows)
	axe, err := os.ReadFile(os.Getenv("KPROBELAB_AXE"))
	require.NoError(t, err)
	eval[bool](t, ctx, string(axe)+`; true`)
	require.Empty(t, eval[[]string](t, ctx, `axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target).join()))`))

	ctx = tab(t, page(t)+"#lesson?n=1")
	until(t, ctx, `!!lesson.machine?.view`)
	require.False(t, eval[bool](t, ctx, `!!$("early-stage")`), "the machine takes its place")
	cells := `[...document.querySelectorAll("#lesson-machine .cell")].map((c) => c.textContent).join(" ")`
	require.Equal(t, eval[string](t, ctx, cells), said[1])
	require.Equal(t, eval[string](t, ctx, `[...document.querySelectorAll("#lesson-machine [data-fly=slot] .insn")].map((c) => c.textContent).join(" ")`), said[2])
	eval[bool](t, ctx, `lesson.machine.forward("m")`)
	require.Equal(t, eval[string](t, ctx, cells), said[0], "without the probe")
}

// A file that comes before the program waits for it.
func TestAFileThatComesBeforeTheProgram(t *testing.T) {
	for name, gives := range map[string]func(ctx context.Context){
		"dropped": func(ctx context.Context) { drop(t, ctx, "x.elf", "bm90IGFuIGltYWdl") },
		"chosen": func(ctx context.Context) {
			file := filepath.Join(t.TempDir(), "x.elf")
			require.NoError(t, os.WriteFile(file, []byte("not an image"), 0o600))
			choose(t, ctx, file)
		},
	} {
		for _, view := range []string{"", "#watch", "#ask?source=image&function=gcd"} {
			t.Run(name+view, func(t *testing.T) {
				ctx := blank(t, true)
				_, err := chromedp.Call(ctx, cdp.AddScriptToEvaluateOnNewDocument, cdp.AddScriptToEvaluateOnNewDocumentParams{Source: `
					const post = Worker.prototype.postMessage, held = [];
					Worker.prototype.postMessage = function (...a) { held.push(() => post.apply(this, a)); };
					window.goOn = () => { Worker.prototype.postMessage = post; held.forEach((f) => f()); return true; };`})
				require.NoError(t, err)
				require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(page(t)+view)))
				eval[bool](t, ctx, `(window.opens = 0, window.really = opened, opened = (f) => (window.opens++, window.really(f)), true)`)
				gives(ctx)
				eval[bool](t, ctx, `window.goOn()`)
				until(t, ctx, `document.body.dataset.ready === "1" && $("error").textContent.includes("x.elf")`)
				until(t, ctx, `$("status").textContent === "Ready"`)
				require.Contains(t, eval[string](t, ctx, `$("error").textContent`), "x.elf", "the sentence stays")
				require.Equal(t, 1, eval[int](t, ctx, `window.opens`))
				require.True(t, eval[bool](t, ctx, goesOn))
			})
		}
	}
}
