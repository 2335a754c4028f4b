package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// The five tasks of docs/page.md, walked through with a mouse, keys or a finger alone.

// A student explains int3 after lesson 1: what he has to say was said to him on the way.
func TestAStudentExplainsInt3(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson")
	until(t, ctx, `!!lesson.machine?.view`)
	heard := []string{eval[string](t, ctx, `$("lesson-text").textContent`)}
	listen := func() {
		heard = append(heard, eval[string](t, ctx, `document.querySelector("#lesson-machine .says").textContent + $("verdict").textContent + $("explain").textContent + ($("goal")?.textContent ?? "")`))
	}
	click(t, ctx, "#answers button:nth-child(1)")
	until(t, ctx, `$("verdict").className === "wrong"`)
	listen()
	click(t, ctx, "#answers button:nth-child(2)")
	until(t, ctx, `!!document.querySelector("#try")`)
	listen()
	for eval[bool](t, ctx, `lesson.machine.steps()`) {
		eval[bool](t, ctx, `(window.was = lesson.machine.view, true)`)
		click(t, ctx, "#lesson-machine [data-key=forward]")
		until(t, ctx, `lesson.machine.view !== window.was`)
		listen()
	}
	all := strings.Join(heard, " ")
	for _, part := range []string{"overwrites the first byte", "cc (int3)", "keeps a copy", "traps", "pre handler", "one past the probed address", "in the slot", "returned 5"} {
		require.Contains(t, all, part)
	}
}

// A lecturer takes the second race as an iframe, and steps it from his slide.
func TestALecturerEmbedsTheRace(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=10")
	until(t, ctx, `!!lesson.machine?.view`)
	click(t, ctx, "#lesson-machine [data-key=worker]")
	until(t, ctx, `lesson.machine.view.schedule === "amw"`)
	frame := shared(t, ctx, "iframe")
	slide := filepath.Join(t.TempDir(), "slide.html")
	require.NoError(t, os.WriteFile(slide, []byte(`<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>The race</title><body data-ready="1"><h1>The race</h1>`+frame+
		`<script>const said = []; addEventListener("message", (e) => e.data.kprobelab === "moved" && said.push(e.data.says)); const send = (m) => document.querySelector("iframe").contentWindow.postMessage(m, "*");</script>`), 0o600))
	ctx = tab(t, "file://"+slide)
	eval[bool](t, ctx, `(window.again = setInterval(() => said.length || send({ kprobelab: "goto", place: "lesson?n=10&schedule=amw" }), 500), true)`)
	until(t, ctx, `said.length > 0`)
	eval[bool](t, ctx, `(clearInterval(again), send({ kprobelab: "goto", place: "lesson?n=10&schedule=amwb2" }), true)`)
	until(t, ctx, `said.at(-1).includes("This is an oops")`)
	picture(t, ctx, "task-slide")
}

// An engineer asks why a jmp of kfree stays an int3, and sends the answer; who opens it is told which image it is about, and drops that.
func TestAnEngineerSendsWhyThereIsNoJump(t *testing.T) {
	image := kernelImage(t)
	ctx := tab(t, page(t)+"#ask?source=image")
	choose(t, ctx, image)
	until(t, ctx, fmt.Sprintf(`ask.open?.name === %q && $("status").textContent === "Ready"`, filepath.Base(image)))
	write := func(text string) {
		eval[bool](t, ctx, `($("search").value = "", $("search").focus(), true)`)
		require.NoError(t, chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS("#search"), text)))
	}
	write("kfree")
	until(t, ctx, `ask.of?.name === "kfree" && ask.done`)
	at := eval[int](t, ctx, `ask.of.bytes.find((b) => b.kind === "accepted" && b.reasons.some((r) => r.id === "JUMP_INTO_REGION" || /JUMP|BRANCH/.test(r.id)))?.offset ?? -1`)
	require.Positive(t, at, "kfree has a place where a jump leads into the region")
	write(fmt.Sprintf("kfree+%#x", at))
	until(t, ctx, fmt.Sprintf(`ask.at === %d && document.querySelector("#detail .verdict")?.textContent === "Accepted: an int3, and it stays one"`, at))
	require.NotEmpty(t, eval[string](t, ctx, `document.querySelector("#detail .reasons").textContent`))
	until(t, ctx, `location.hash.includes("build=")`)
	picture(t, ctx, "task-kfree")
	verdict := eval[string](t, ctx, `document.querySelector("#detail").querySelector(".reasons li").textContent`)
	there := shared(t, ctx, "link")

	ctx = tab(t, there)
	until(t, ctx, `$("error").textContent.includes("Choose its file below")`)
	require.Contains(t, eval[string](t, ctx, `$("error").textContent`), filepath.Base(image))
	choose(t, ctx, image)
	until(t, ctx, fmt.Sprintf(`ask.at === %d && !!document.querySelector("#detail .reasons li")`, at))
	require.Equal(t, verdict, eval[string](t, ctx, `document.querySelector("#detail .reasons li").textContent`))
}

// Lesson 8 by keyboard alone, from the page's first view to the variation's goal.
func TestLesson8ByKeyboardAlone(t *testing.T) {
	ctx := tab(t, page(t))
	until(t, ctx, `!!ask.of`)
	keys := 0
	to := func(what, selector string) {
		for n := range 60 {
			if eval[bool](t, ctx, fmt.Sprintf(`!!document.activeElement?.matches(%q)`, selector)) {
				return
			}
			require.Less(t, n, 59, "Tab does not come to %s; the last is %s", what, eval[string](t, ctx, `document.activeElement.outerHTML.slice(0, 200)`))
			press(t, ctx, kb.Tab)
			keys++
		}
	}
	enter := func(what, selector string) {
		to(what, selector)
		press(t, ctx, kb.Enter)
		keys++
	}
	enter("Lessons", `nav [data-view=lesson]`)
	until(t, ctx, `!!lesson.machine?.view && !$("lesson").hidden`)
	enter("all lessons", `#lesson-where`)
	enter("lesson 8", `#lesson-list a[href$="n=8"]`)
	until(t, ctx, `lesson.n === 7 && lesson.machine.scenario.probes === "kprobe opt_no_jump_in"`)
	enter("a wrong answer", `#answers button:nth-child(1)`)
	until(t, ctx, `$("verdict").className === "wrong"`)
	enter("the right answer", `#answers button:nth-child(3)`)
	until(t, ctx, `!!document.querySelector("#try")`)
	enter("Try it", `#try`)
	until(t, ctx, `!!$("vary-probes")`)
	to("the field", `#vary-probes`)
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent(kb.End)))
	press(t, ctx, "+0x3")
	keys += 5
	until(t, ctx, `lesson.machine.scenario.probes === "kprobe opt_no_jump_in+0x3" && lesson.machine.view.steps === 0`)
	enter("Forward", `#lesson-machine [data-key=forward]`)
	until(t, ctx, `$("goal").className === "right"`)
	t.Logf("%d keys", keys)
	require.Less(t, keys, 150)
}

// Lesson 6 on a phone, by taps alone: nothing of what is needed lies under the buttons at the lower edge, or is too small to hit.
func TestLesson6OnAPhone(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=6")
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(360, 740, chromedp.EmulateTouch)))
	until(t, ctx, `!!lesson.machine?.view && $("answers").children.length === 3`)
	tap := func(selector string) {
		eval[bool](t, ctx, fmt.Sprintf(`(document.querySelector(%q).scrollIntoView({ block: "center" }), true)`, selector))
		require.Empty(t, eval[string](t, ctx, fmt.Sprintf(`(() => { const e = document.querySelector(%q), b = e.getBoundingClientRect(), top = document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2);
			return !e.contains(top) && !top?.contains(e) ? "under " + top?.outerHTML.slice(0, 100) : b.height < 24 ? b.height + " high" : ""; })()`, selector)), selector)
		require.NoError(t, chromedp.Do(ctx, chromedp.Tap(chromedp.CSS(selector))))
	}
	answers := eval[[]string](t, ctx, `[...$("answers").children].map((b) => b.textContent)`)
	require.Equal(t, []string{"none", "one", "both"}, answers)
	tap("#answers button:nth-child(1)")
	until(t, ctx, `$("verdict").className === "wrong"`)
	tap("#answers button:nth-child(2)")
	until(t, ctx, `!!document.querySelector("#try")`)
	tap("#try")
	until(t, ctx, `!!$("vary-probes")`)
	tap("#vary-probes")
	require.True(t, eval[bool](t, ctx, `document.activeElement.id === "vary-probes"`))
	for _, key := range []string{kb.End, kb.Backspace, "2"} {
		press(t, ctx, key)
	}
	until(t, ctx, `lesson.machine.scenario.probes === "kretprobe sys_open:2" && lesson.machine.view.steps === 0`)
	for n := 0; !eval[bool](t, ctx, `$("goal").className === "right"`); n++ {
		require.Less(t, n, 60)
		eval[bool](t, ctx, `(window.was = lesson.machine.view, true)`)
		tap("#lesson-machine [data-key=forward]")
		until(t, ctx, `lesson.machine.view !== window.was`)
		until(t, ctx, `$("goal").className === "right" || lesson.machine.steps()`)
	}
	require.True(t, eval[bool](t, ctx, `(() => { const b = $("goal").getBoundingClientRect(); return b.width > 0; })()`))
	picture(t, ctx, "task-phone")
}

func click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector))), selector)
}
