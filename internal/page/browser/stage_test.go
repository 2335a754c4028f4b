package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// laptopWidth and laptopHeight are a laptop's window.
const laptopWidth, laptopHeight = 1366, 768

// On a laptop nobody scrolls while stepping: the caption, the row of the CPU, Forward and the timeline are in sight at every step, and the columns
// stay where they are.
func TestNobodyScrollsWhileStepping(t *testing.T) {
	for _, n := range []int{1, 9} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			ctx := tab(t, page(t)+fmt.Sprintf("#lesson?n=%d", n))
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(laptopWidth, laptopHeight)))
			still(t, ctx)
			until(t, ctx, `!!lesson.machine.view`)
			require.Empty(t, eval[string](t, ctx, `(async () => {
				const m = lesson.machine, bad = [];
				const at = (s) => document.querySelector("#lesson-machine " + s)?.getBoundingClientRect();
				const seen = (r) => r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth;
				const columns = () => [".of-words", ".playhead", ".heads", ".cell", ".pane.lanes"].map((s) => s === ".playhead" ? at(s).top : at(s) && Math.round(at(s).left) + " " + (s === ".of-words" ? "" : Math.round(at(s).top))).join();
				let was = null;
				while (await m.forward()) {
					for (const s of [".caption", "[data-key=forward]", ".playhead"]) if (!seen(at(s))) bad.push(m.view.schedule + " " + s);
					const row = document.querySelector("#lesson-machine .functions tr.here")?.getBoundingClientRect();
					const pane = at(".functions");
					if (row && !(row.top >= pane.top - 1 && row.bottom <= pane.bottom + 1 && seen(row))) bad.push(m.view.schedule + " row");
					if (was !== null && columns() !== was) bad.push(m.view.schedule + " jumps: " + was + " to " + columns());
					was = columns();
					if (scrollY !== 0) bad.push("scrolled");
				}
				return bad.join("; ");
			})()`))
			require.Equal(t, int64(0), eval[int64](t, ctx, `scrollY`))
		})
	}
}

// A click on the timeline goes to its place; Forward goes on in the same run, up to its end; the slider goes by keys.
func TestTheTimelineIsTheController(t *testing.T) {
	ctx := machine(t, "ma8b4")
	end := eval[string](t, ctx, moment+` + watch.machine.view.hash`)
	click := func(mark string) {
		eval[bool](t, ctx, fmt.Sprintf(`(() => { const b = document.querySelector("#machine .bars [data-mark='%s']").getBoundingClientRect(), o = document.querySelector("#machine .tracks");
			for (const type of ["pointerdown", "pointerup"]) document.elementFromPoint(b.x + 5, b.y + 9).dispatchEvent(new PointerEvent(type, {bubbles: true, clientX: b.x + 5, clientY: b.y + 9, pointerId: 1, button: 0}));
			return true; })()`, mark))
	}
	eval[bool](t, ctx, `(HTMLElement.prototype.setPointerCapture = () => {}, true)`)
	mark := eval[string](t, ctx, `[...document.querySelectorAll("#machine .bars li.who-a [data-mark]")].find((m) => m.textContent === "T").dataset.mark`)
	click(mark)
	until(t, ctx, fmt.Sprintf(`(watch.machine.view.steps - 1) + "/" + watch.machine.view.sub === %q`, mark))
	require.Equal(t, "ma8b4", eval[string](t, ctx, `scheduleOf(watch.machine.run.letters)`), "what comes later stays")
	for range 40 {
		eval[bool](t, ctx, `watch.machine.forward()`)
		if eval[string](t, ctx, moment+` + watch.machine.view.hash`) == end {
			break
		}
	}
	require.Equal(t, end, eval[string](t, ctx, moment+` + watch.machine.view.hash`))
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=playhead]"))))
	press(t, ctx, kb.Home)
	until(t, ctx, schedule+` === ""`)
	press(t, ctx, kb.ArrowRight)
	until(t, ctx, schedule+` === "m"`)
	press(t, ctx, kb.End)
	until(t, ctx, schedule+` === "ma8b4"`)
	require.Equal(t, "playhead", eval[string](t, ctx, `document.activeElement.dataset.key`))
	require.Contains(t, eval[string](t, ctx, `document.activeElement.getAttribute("aria-valuetext")`), "step 13 of 13")
}

// What no longer applies after a change stays hatched; the run before is under the new one, with the first difference; undo brings it back.
func TestTwoRunsOverEachOther(t *testing.T) {
	ctx := machine(t, "ma9w3")
	before := eval[string](t, ctx, schedule)
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=part1]"))))
	press(t, ctx, kb.ArrowLeft)
	until(t, ctx, `!!document.querySelector("#machine .other")`)
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#machine .differs-here").textContent`), "first difference: step 1")
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=undo]"))))
	press(t, ctx, kb.Enter)
	until(t, ctx, schedule+fmt.Sprintf(` === %q`, before))
	require.False(t, eval[bool](t, ctx, `!!document.querySelector("#machine .other")`))

	// A worker before the module has nothing to do.
	ctx = machine(t, "mw")
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=part1]"))))
	press(t, ctx, kb.ArrowLeft)
	until(t, ctx, `document.querySelector("#machine .not-needed")?.title === "worker, 1 step: not needed in this order"`)

	// Careful and careless, of one order.
	ctx = tab(t, page(t)+"#watch?probes=kprobe+opt_yes&calls=opt_yes(1)&release=6.1&schedule=amwwa")
	until(t, ctx, `watch.machine?.view?.steps === 5`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#careless"))))
	until(t, ctx, `document.querySelector("#machine .differs-here")?.textContent === "first difference: step 3"`)
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#machine .head.beside").textContent`), "careful")
}

// After a change of the order, its undoing, Forward and the timeline are in sight, with four CPUs and in smaller windows, too.
func TestUndoIsInSight(t *testing.T) {
	ctx := tab(t, page(t)+"#watch?probes=kprobe+opt_yes&calls=opt_yes(1)%0Aopt_yes(2)%0Agcd(12,8)%0Afib(3)&release=6.1&schedule=ma3b3c2d2w3")
	until(t, ctx, `!!watch.machine?.view && !!document.querySelector("[data-key=part1]")`)
	eval[bool](t, ctx, `(document.querySelector("[data-key=part1]").focus(), true)`)
	press(t, ctx, kb.ArrowLeft)
	until(t, ctx, `!!document.querySelector("#machine [data-key=undo]") && !!document.querySelector("#machine [data-key=alone]")`)
	for _, size := range [][2]int64{{1200, 761}, {laptopWidth, laptopHeight}} {
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(size[0], size[1])))
		until(t, ctx, fmt.Sprintf(`innerWidth === %d`, size[0]))
		require.Empty(t, eval[string](t, ctx, `(scrollTo(0, 0), ["begin", "back", "forward", "play", "undo", "alone", "playhead", "module", "lane3", "worker"].filter((k) => {
			const r = document.querySelector("#machine [data-key=" + k + "]").getBoundingClientRect();
			return !(r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth);
		}).join())`), "%v", size)
	}
}

// Each step says what, why and where; a word of the glossary is explained by keyboard.
func TestWordsBesideEachStep(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=1")
	until(t, ctx, `!!lesson.machine.view`)
	eval[bool](t, ctx, `lesson.machine.forward()`)
	require.Equal(t, "CPU 0 executes the int3 at strlen+0x5: a trap. regs->ip is strlen+0x6, one past it.", eval[string](t, ctx, `document.querySelector("#lesson-machine .caption").textContent`))
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#lesson-machine .because").textContent`), "In Linux 6.1: kprobe_int3_handler, arch/x86/kernel/kprobes/core.c")
	require.True(t, strings.HasSuffix(eval[string](t, ctx, `document.querySelector("#lesson-machine .where a").href`), "/linux/v6.1/A/ident/kprobe_int3_handler"))
	require.Equal(t, "cc", eval[string](t, ctx, `document.querySelector("#lesson-machine .cell.lit").textContent`))
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("#lesson-machine .caption .term"))))
	press(t, ctx, kb.Enter)
	until(t, ctx, `!$("says-term").hidden && $("says-term").textContent.startsWith("int3: the one-byte breakpoint instruction")`)
	press(t, ctx, kb.Escape)
	until(t, ctx, `$("says-term").hidden`)
}

// The five bytes: a write shows the old byte under the new one, and who wrote it; with reduced motion nothing moves.
func TestTheFiveBytes(t *testing.T) {
	ctx := tab(t, page(t)+"#watch?probes=kprobe+opt_yes&calls=opt_yes(1)%0Aopt_yes(2)&release=6.1&schedule=amw7a5w10")
	until(t, ctx, `watch.machine?.view?.steps === 24`)
	eval[bool](t, ctx, `(Element.prototype.animate = () => { window.stirred = (window.stirred ?? 0) + 1; return {}; }, true)`)
	cells := `[...document.querySelectorAll("#machine .cell")].slice(0, 5).map((c) => c.textContent)`
	require.Equal(t, "e9", eval[[]string](t, ctx, cells)[0])
	require.Equal(t, "48", eval[string](t, ctx, `document.querySelector("#machine .byte-col .was").textContent`))
	require.Equal(t, "DCR,JTPR", eval[string](t, ctx, `[...document.querySelectorAll("#machine .bracket")].map((b) => b.textContent).join()`))
	there := eval[int](t, ctx, `watch.machine.view.steps`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`#machine [data-key=byte2]`))))
	until(t, ctx, fmt.Sprintf(`watch.machine.view.steps < %d && document.querySelector("#machine .asked").textContent.includes("was written in this step")`, there))
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#machine .caption").textContent`), "text_poke writes the tail")
	require.Equal(t, "cc", eval[[]string](t, ctx, cells)[0])
	// Until the synchronization, the CPUs may fetch the old bytes.
	require.True(t, slices.Contains(eval[[]string](t, ctx, `[...document.querySelectorAll("#machine .stale-byte")].map((c) => c.title)`), "CPU 1 may still fetch f8"))
	require.Positive(t, eval[int](t, ctx, `window.stirred ?? 0`), "bytes turn")
	still(t, ctx)
	eval[bool](t, ctx, `(window.stirred = 0, watch.machine.forward())`)
	eval[bool](t, ctx, `watch.machine.forward()`)
	require.Zero(t, eval[int](t, ctx, `window.stirred`))
	// A return probe's instances are cards.
	ctx = tab(t, page(t)+"#watch?probes=kretprobe+fib%3A1&calls=fib(3)&release=6.1&schedule=ma30")
	until(t, ctx, `!!document.querySelector("#machine .card")`)
	require.Len(t, eval[[]string](t, ctx, `[...document.querySelectorAll("#machine .card")].map((c) => c.textContent)`), 1)
}

// A jump into the bytes of a probe's jump is an arrow that lands at its byte; a CPU that has failed inside of a jump stands there.
func TestAnIllegalJumpLandsInTheRed(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=8&schedule=m")
	until(t, ctx, `!!lesson.machine?.view`)
	require.Equal(t, "▲ +0x9 je jumps here", eval[string](t, ctx, `document.querySelector("#lesson-machine .lands").textContent`))
	require.Equal(t, "byte3", eval[string](t, ctx, `document.querySelector("#lesson-machine .cell.landed").dataset.key`))
	ctx = tab(t, page(t)+"#lesson?n=10&schedule=amwwa")
	until(t, ctx, `!!lesson.machine?.view`)
	require.Equal(t, "CPU 0 oops", eval[string](t, ctx, `document.querySelector("#lesson-machine .cell.landed").previousSibling.textContent`))
}

// The trampoline is code, and the CPU's row of it is in sight.
func TestTheTrampolineIsShown(t *testing.T) {
	ctx := tab(t, page(t)+"#watch?probes=kprobe+leaf&calls=leaf(1)&release=6.1&schedule=ma12&by=instruction")
	until(t, ctx, `!!watch.machine?.view`)
	require.True(t, eval[bool](t, ctx, `(() => {
		const row = document.querySelector("#machine .made tr.here"), r = row.getBoundingClientRect(), p = row.closest(".pane").getBoundingClientRect();
		return row.closest("section").ariaLabel === "ftrace_trampoline" && r.top >= p.top && r.bottom <= p.bottom;
	})()`))
}

// A frame of 900 by 480 pixels has the bytes, Forward and the timeline.
func TestAFrameHasATimeline(t *testing.T) {
	ctx := tab(t, page(t)+"?embed#watch?probes=kprobe+opt_yes&calls=opt_yes(1)%0Aopt_yes(2)&release=6.1&schedule=mw4a")
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(900, 480)))
	until(t, ctx, `!!watch.machine?.view`)
	for _, part := range []string{".cell", "[data-key=forward]", ".timeline .tracks", "tr[data-row]", ".caption"} {
		require.True(t, eval[bool](t, ctx, `(() => { const b = document.querySelector("#machine `+part+`").getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight && b.width > 0; })()`), part)
	}
	require.LessOrEqual(t, eval[int](t, ctx, `document.documentElement.scrollHeight`), 480)
}

// On a phone Forward stays at the thumb, wherever the page is scrolled, and a swipe steps.
func TestForwardAtTheThumb(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=6")
	appear(t, ctx, "light", 360)
	until(t, ctx, `!!lesson.machine?.view`)
	for _, y := range []string{"0", "document.body.scrollHeight"} {
		require.True(t, eval[bool](t, ctx, `(scrollTo(0, `+y+`), (() => { const b = document.querySelector("#lesson-machine [data-key=forward]").getBoundingClientRect(); return b.bottom <= innerHeight && b.bottom > innerHeight - 90 && b.width >= 90; })())`), y)
	}
	swipe := func(from, to int) {
		eval[bool](t, ctx, fmt.Sprintf(`(() => {
			const at = document.querySelector("#lesson-machine .says"), touch = (x) => new Touch({identifier: 1, target: at, clientX: x, clientY: 20});
			at.dispatchEvent(new TouchEvent("touchstart", {touches: [touch(%d)], changedTouches: [touch(%d)]}));
			at.dispatchEvent(new TouchEvent("touchend", {touches: [], changedTouches: [touch(%d)]}));
			return true;
		})()`, from, from, to))
	}
	swipe(300, 100)
	until(t, ctx, `lesson.machine.view.steps > 1`)
	swipe(100, 300)
	until(t, ctx, `lesson.machine.view.steps <= 1`)
}

// In each lesson, a CPU's token stands in the part of the picture that its address is in: at a byte, in the slot, in the detour buffer; so
// does that of a CPU in a handler, whose address is the one at which it goes on.
func TestATokenStandsAtItsAddress(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson")
	still(t, ctx)
	until(t, ctx, `lesson.list?.length === 11 && !!lesson.machine?.view`)
	seen := map[string]int{}
	for n := range 11 {
		eval[bool](t, ctx, fmt.Sprintf(`views.lesson.show(new URLSearchParams("n=%d")).then(() => true)`, n+1))
		for range 40 {
			for _, at := range eval[[]string](t, ctx, `(() => {
				const m = lesson.machine, v = m.view, s = v.strips?.[m.parts[1].chosen];
				if (!s) return [];
				return v.cpus.flatMap((c, i) => {
					if (!c.regs[0]) return [];
					const ip = BigInt("0x" + c.regs[0].value), first = BigInt(s.address);
					const inside = (p) => p && ip >= BigInt(p.address) && ip <= BigInt(p.address) + BigInt(p.rows.reduce((n, r) => n + r.bytes.length, 0));
					const made = (kind, address) => address && v.code.find((x) => x.kind === kind && x.address === address);
					const want = ip >= first && ip < first + BigInt(s.cells.length) ? "+" + (ip - first) : inside(made("slot", s.slot)) ? "slot" : inside(made("detour", s.detour)) ? "detour" : "elsewhere";
					const token = m.parts[1].box.querySelector("[data-fly=cpu" + i + "]"), column = token.closest(".byte-col");
					const is = column ? "+" + [...column.parentElement.querySelectorAll(".byte-col")].indexOf(column) : token.closest(".five-part").dataset.fly ?? "elsewhere";
					return [is === want ? want.replace(/\d+/, "") : v.schedule + "/" + v.sub + ": " + token.textContent + " is at " + is + ", its address is in " + want];
				});
			})()`) {
				seen[at]++
			}
			if !eval[bool](t, ctx, `lesson.machine.forward()`) {
				break
			}
		}
	}
	for at := range seen {
		require.Contains(t, []string{"+", "slot", "detour", "elsewhere"}, at)
	}
	require.Len(t, seen, 4, "each part has had one: %v", seen)
}

// A step that comes before the machine of another lesson is there is one of that machine.
func TestAStepWaitsForTheMachine(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=6")
	until(t, ctx, `!!lesson.machine?.view`)
	for _, step := range []string{"forward()", "back()", "begin()"} {
		for _, n := range []int{10, 2, 9} {
			require.True(t, eval[bool](t, ctx, fmt.Sprintf(`(async () => {
				const came = views.lesson.show(new URLSearchParams("n=%d"));
				await Promise.resolve();
				await lesson.machine.%s;
				await came;
				return $("error").hidden && lesson.machine.view.schedule.startsWith(lesson.list[lesson.n].start ?? "") && lesson.n === %[1]d - 1;
			})()`, n, step)), "%d %s", n, step)
		}
	}
}
