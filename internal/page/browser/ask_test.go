package browser

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// types writes a place, as a reader does.
func types(place string) string {
	return fmt.Sprintf(`($("search").value = %q, $("search").dispatchEvent(new Event("input")), true)`, place)
}

// What perf, ftrace and an oops print is a place; so are aliases, and blanks do no harm.
func TestPlacesThatAreTyped(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image")
	address := ""
	for place, at := range map[string]string{"gcd+0x1c": "28", "gcd+28": "28", " gcd + 0x5 ": "5", "gcd": "null", "nosuch": ""} {
		eval[bool](t, ctx, types(place))
		if at == "" {
			until(t, ctx, `ask.of === null && $("found").textContent !== ""`)
			continue
		}
		until(t, ctx, `ask.of?.name === "gcd" && ask.done && ask.at === `+at)
		require.Equal(t, place, eval[string](t, ctx, `$("search").value`), "what is typed stays")
		address = eval[string](t, ctx, `ask.of.address`)
	}
	for _, prefix := range []string{"", "0x"} {
		eval[bool](t, ctx, types(prefix+address[2:]))
		until(t, ctx, `ask.of?.name === "gcd" && ask.done`)
	}
	require.Equal(t, []string{"+0", "+0x1c"}, eval[[]string](t, ctx, `[...document.querySelectorAll("#code th[scope=row]")].map((h) => h.textContent).filter((x) => x === "+0" || x === "+0x1c")`))
	require.Equal(t, "+28", eval[string](t, ctx, `button(28).closest("tr").querySelector("th").title`))
}

// Answers come row by row, those in sight first, and a later question ends them. All rows have one at the end.
func TestAnswersComeRowByRow(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image")
	eval[bool](t, ctx, `(window.asks = [], window.real = question, question = (q, f) => { window.asks.push(q); return window.real(q, f); }, true)`)
	eval[bool](t, ctx, types("vfs_read"))
	until(t, ctx, `ask.of?.name === "vfs_read" && ask.done`)
	require.Zero(t, eval[int](t, ctx, `[...document.querySelectorAll("#code td.words")].filter((w) => !w.textContent).length`))
	// Scrolled to the end, a function's last rows come first.
	require.True(t, eval[bool](t, ctx, `(async () => {
		document.body.style.minHeight = "500000px";
		const f = ask.of, far = document.querySelector("#code tbody");
		window.asks.length = 0;
		$("search").value = "vfs_read";
		const before = nextRows([...document.querySelectorAll("#code tr[data-row]")], new Set(f.bytes.filter((b) => b.text).map((b) => b.offset)), 3);
		[...document.querySelectorAll("#code tr[data-row]")].at(-1).scrollIntoView({block: "start"});
		const after = nextRows([...document.querySelectorAll("#code tr[data-row]")], new Set(f.bytes.filter((b) => b.text).map((b) => b.offset)), 3);
		return before[0] === 0 && after[0] > 0;
	})()`))
	// Another question while answers come.
	eval[bool](t, ctx, `(window.asks.length = 0, ask.asked({at: null}), ask.turn++, ask.asked({at: null}).then(() => true))`)
	require.True(t, eval[bool](t, ctx, `ask.done`))
	require.LessOrEqual(t, eval[int](t, ctx, `window.asks.filter((q) => q.do === "answers" && q.at.includes(0)).length`), 1, "an answer that nobody waits for is not requested")
}

// The answers are about the function that is shown, whatever the form says before they are all there.
func TestAFormThatChangesWhileAnswersCome(t *testing.T) {
	for name, change := range map[string]string{
		"another_source": `document.querySelector("input[name=source][value=image]").checked = true`,
		"other_bytes":    `$("hex").value = "0f 0b"`,
		"no_bytes":       `$("hex").value = "5g"`,
		"another_rule":   `$("release").value = "2.6.32"`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := tab(t, page(t)+"#ask")
			until(t, ctx, `ask.done`)
			const rows = `[...document.querySelectorAll("#code tr[data-row]")].map((r) => r.textContent)`
			want := eval[[]string](t, ctx, rows)
			eval[bool](t, ctx, `(window.real = question, question = async (q, f) => {
				const answer = await window.real(q, f);
				if (q.do === "code") { `+change+`; question = window.real; }
				return answer;
			}, ask.asked({ at: 1 }).then(() => true))`)
			require.True(t, eval[bool](t, ctx, `ask.done && $("error").hidden`), eval[string](t, ctx, `$("error").textContent`))
			require.Equal(t, want, eval[[]string](t, ctx, rows))
			require.Equal(t, "A probe at example+1", eval[string](t, ctx, `document.querySelector("#detail h3").textContent`))
		})
	}
}

// The jumps of a function are arrows in the margin: one for each, red if it keeps the chosen probe from its jump.
func TestJumpsAreArrows(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?at=1")
	until(t, ctx, `ask.done && !!ask.explained`)
	require.Equal(t, 2, eval[int](t, ctx, `document.querySelectorAll("#code svg g").length`))
	require.Equal(t, "10", eval[string](t, ctx, `document.querySelector("#code svg g.bad").dataset.from`))
	eval[bool](t, ctx, `(button(4).click(), true)`)
	until(t, ctx, `document.querySelector("#code svg g.on")?.dataset.from === "4"`)
}

// Each release answers in a row of squares; one of them chosen, all answers are by its rules.
func TestARowOfReleases(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image&function=opt_yes&at=0")
	until(t, ctx, `document.querySelectorAll("#detail .release").length === hello.releases.length`)
	require.Equal(t, "6.1", eval[string](t, ctx, `document.querySelector("#detail .release[aria-pressed=true]").firstChild.textContent`))
	eval[bool](t, ctx, `([...document.querySelectorAll("#detail .release")].find((b) => b.firstChild.textContent === "2.6.32").click(), true)`)
	until(t, ctx, `ask.of?.profile === "2.6.32" && ask.done && ask.at === 0`)
	until(t, ctx, `document.querySelectorAll("#detail .release").length === hello.releases.length`)
}

// What prevents the jump at run time stands there, in the detail of a probe whose code allows it.
func TestWhatPreventsTheJumpAtRunTime(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image&function=opt_yes&at=0")
	until(t, ctx, `!!ask.explained`)
	for _, what := range []string{"a post handler", "its int3 would be overwritten", "debug.kprobes-optimization is 0", "worker has not come yet"} {
		require.Contains(t, eval[string](t, ctx, `$("detail").textContent`), what)
	}
}

// A probe goes from Ask to a machine and back.
func TestAskAndWatchLeadToEachOther(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image&function=gcd&at=5")
	until(t, ctx, `!!document.querySelector("#detail a.action")`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#detail a.action"))))
	until(t, ctx, `watch.machine?.view?.probes[0]?.text === "kprobe gcd+0x5"`)
	until(t, ctx, `!!document.querySelector("#watch-why a")`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#watch-why a"))))
	until(t, ctx, `!$("ask").hidden && ask.of?.name === "gcd" && ask.at === 5`)
}

// What compilers and disassemblers print is taken as it is, and Intel's syntax is offered in GNU's.
func TestAssemblyAsToolsPrintIt(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=asm")
	write := func(text string) {
		eval[bool](t, ctx, fmt.Sprintf(`($("asm").value = %q, $("asm").dispatchEvent(new Event("input")), true)`, text))
	}
	write("\t.text\n\t.globl\tf\nf:\n.LFB0:\n\t.cfi_startproc\n\tpushq\t%rbp\n\tmovq\t%rsp, %rbp\n\tcall\tmemcpy@PLT\n\tret\n")
	until(t, ctx, `ask.of?.size === 10 && ask.done`)
	write("0000000000001139 <f>:\n    1139:\t55                   \tpush   %rbp\n    113a:\teb fd                \tjmp    1139 <f>\n")
	until(t, ctx, `ask.of?.size === 3 && ask.done`)
	write("push rbp\nmov rbp, rsp\nret")
	until(t, ctx, `$("error").textContent.includes("this is Intel syntax") && !!document.querySelector("#error button")`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#error button"))))
	until(t, ctx, `ask.of?.size === 5 && ask.done && $("error").hidden`)
	require.Contains(t, eval[string](t, ctx, `$("asm").value`), "mov %rsp,%rbp")
}

// On a phone the answer stands below its row; on a wide page beside the code.
func TestTheAnswerIsUnderItsRowOnAPhone(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image&function=gcd&at=5")
	until(t, ctx, `!!ask.explained && ask.done`)
	require.Equal(t, "beside", eval[string](t, ctx, `$("detail").parentNode.id`))
	appear(t, ctx, "light", 360)
	until(t, ctx, `$("detail").closest("tr")?.previousSibling.dataset.row === "5"`)
	require.Equal(t, 1, eval[int](t, ctx, `new Set([...document.querySelector("#detail .picture tr").cells].map((c) => Math.round(c.getBoundingClientRect().top))).size`), "the picture's cells are in a line")
	require.Empty(t, eval[string](t, ctx, `[...$("detail").querySelectorAll("p, h3, h4, li, .verdict")].filter((x) => x.getBoundingClientRect().right > innerWidth).map((x) => x.textContent).join()`), "nothing is cut")
	eval[bool](t, ctx, `($("share").open = true)`)
	require.True(t, eval[bool](t, ctx, `(() => { const b = document.querySelector("#share > div").getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth; })()`), "the menu is on the page")
	appear(t, ctx, "light", 1366)
	until(t, ctx, `$("detail").parentNode.id === "beside"`)
}

// The time to the rows in sight, of functions of a distribution's kernel: go test -v prints it.
func TestFiguresOfAnImagesFunctions(t *testing.T) {
	image := kernelImage(t)
	ctx := tab(t, page(t)+"#ask?source=image")
	choose(t, ctx, image)
	until(t, ctx, fmt.Sprintf(`ask.open?.name === %q && $("status").textContent === "Ready"`, filepath.Base(image)))
	for range 3 {
		for _, name := range []string{"vfs_read", "__schedule", "tcp_v4_rcv"} {
			before := worked(t)
			times := eval[[]float64](t, ctx, fmt.Sprintf(`(async () => {
				const t = performance.now();
				$("search").value = %q;
				const all = ask.asked({at: null});
				const seen = () => { const r = [...document.querySelectorAll("#code tr[data-row]")].slice(0, 60).filter((r) => r.getBoundingClientRect().top < innerHeight); return ask.of?.name === %[1]q && r.length > 0 && r.every((x) => x.lastChild.textContent); };
				while (!seen()) await new Promise((d) => setTimeout(d, 5));
				const rows = performance.now() - t;
				await all;
				return [rows, performance.now() - t];
			})()`, name))
			t.Logf("%s: the rows in sight after %.0f ms, all after %.0f ms, of the processor %d ms", name, times[0], times[1], (worked(t) - before).Milliseconds())
		}
	}
}
