package browser

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// machine opens Watch with a machine that has taken steps.
func machine(t *testing.T, schedule string) context.Context {
	ctx := tab(t, page(t)+"#watch?probes=kprobe+gcd%2B0x5&calls=gcd(12,18)%0Agcd(7,21)&release=6.1&schedule="+schedule)
	until(t, ctx, `!!watch.machine?.view`)
	return ctx
}

func press(t *testing.T, ctx context.Context, key string) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent(key)))
}

const (
	schedule = `watch.machine.view.schedule`
	// moment is the machine's place in time, by the steps of the protocol.
	moment = `(watch.machine.view.schedule + "/" + watch.machine.view.sub)`
)

// A machine is stepped, and its order changed, by the keyboard alone.
func TestWatchByKeyboard(t *testing.T) {
	ctx := machine(t, "")
	// Tab reaches the button from the top of the page.
	for range 40 {
		if eval[bool](t, ctx, `document.activeElement.dataset.key === "forward"`) {
			break
		}
		press(t, ctx, kb.Tab)
	}
	moves := []string{eval[string](t, ctx, moment)}
	move := func(key string) {
		press(t, ctx, key)
		until(t, ctx, fmt.Sprintf("%s !== %q", moment, moves[len(moves)-1]))
		moves = append(moves, eval[string](t, ctx, moment))
		require.Equal(t, "forward", eval[string](t, ctx, `document.activeElement.dataset.key`), "the focus stays")
	}
	move(kb.ArrowRight)
	move(kb.ArrowRight)
	move(kb.Enter)
	require.NotEqual(t, moves[1], moves[2])
	move(kb.ArrowLeft)
	move(kb.ArrowLeft)
	require.Equal(t, []string{moves[1], moves[2], moves[3], moves[2], moves[1]}, moves[1:])

	ctx = machine(t, "ma2b2")
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=part2]"))))
	press(t, ctx, kb.ArrowLeft)
	until(t, ctx, schedule+` === "mb2a2"`)
	require.Equal(t, "part1", eval[string](t, ctx, `document.activeElement.dataset.key`), "the focus goes with the part")
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=apart]"))))
	press(t, ctx, " ")
	until(t, ctx, `document.querySelectorAll(".bars li").length === 5`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=part2]"))))
	press(t, ctx, kb.ArrowRight)
	until(t, ctx, schedule+` === "mbaba"`)
}

// The CPUs are interleaved as one drags them.
func TestTheOrderIsDragged(t *testing.T) {
	ctx := machine(t, "ma2b2")
	require.NoError(t, chromedp.Do(ctx, chromedp.DragAndDrop("[data-key=part2]", "[data-key=part1]")))
	until(t, ctx, schedule+` === "mb2a2"`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("[data-key=apart]"))))
	until(t, ctx, `document.querySelectorAll(".bars li").length === 5`)
	require.NoError(t, chromedp.Do(ctx, chromedp.DragAndDrop("[data-key=part4]", "[data-key=part2]")))
	until(t, ctx, schedule+` === "mbaba"`)

	// What has nothing to do in the new order is left out, and the change can be undone.
	ctx = machine(t, "mw")
	require.NoError(t, chromedp.Do(ctx, chromedp.DragAndDrop("[data-key=part1]", "[data-key=part0]")))
	until(t, ctx, `document.querySelector("#machine .caption").textContent.includes("left out: worker, 1 step.")`)
	require.Equal(t, "m", eval[string](t, ctx, schedule))
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("[data-key=undo]"))))
	until(t, ctx, schedule+` === "mw"`)
}

func TestPlayGoesOnByItself(t *testing.T) {
	ctx := machine(t, "m")
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=play]"))))
	press(t, ctx, kb.Enter)
	until(t, ctx, `watch.machine.view.steps > 3`)
	require.Equal(t, "play", eval[string](t, ctx, `document.activeElement.dataset.key`), "the focus stays")
	press(t, ctx, kb.Enter)
	until(t, ctx, `document.querySelector("[data-key=play]").textContent === "Play"`)
}

// Answers that differ under another release are marked, with the old answer.
func TestAReleaseMarksWhatItChanges(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?release=6.1&hex=55+e8+00+00+00+00+90+90+90+90+c3")
	until(t, ctx, `!!ask.of && ask.done`)
	require.Zero(t, eval[int](t, ctx, `document.querySelectorAll(".differs").length`))
	eval[bool](t, ctx, `($("release").value = "4.4", $("release").dispatchEvent(new Event("change")), true)`)
	until(t, ctx, `ask.of.profile === "4.4" && ask.done`)
	require.Positive(t, eval[int](t, ctx, `document.querySelectorAll(".differs").length`))
	require.Contains(t, eval[string](t, ctx, `document.querySelector(".differs .was").textContent`), "by 6.1: int3")
	eval[bool](t, ctx, `($("hex").value = "90", $("hex").dispatchEvent(new Event("input")), true)`)
	until(t, ctx, `ask.of.size === 1`)
	require.Zero(t, eval[int](t, ctx, `document.querySelectorAll(".differs").length`))
}

// The bytes of an image's function can be edited, by the rules that it was asked by.
func TestAFunctionsBytesAreEdited(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image&function=gcd&release=5.10")
	until(t, ctx, `ask.of?.name === "gcd"`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#edit"))))
	until(t, ctx, `ask.of?.name === "example"`)
	require.Equal(t, "5.10", eval[string](t, ctx, `ask.of.profile`))
	require.Equal(t, eval[int](t, ctx, `ask.of.size`), eval[int](t, ctx, `$("hex").value.split(" ").length`))
	require.NoError(t, chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS("#hex"), " 0f 0b")))
	until(t, ctx, `ask.of.bytes.at(-1).value === "0b"`)
}

// A function is written in assembly, and the bytes go along to the other form and back.
func TestAFunctionIsWrittenInAssembly(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?release=6.1&hex=55+eb+01+90+c3")
	until(t, ctx, `ask.of?.size === 5`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("input[value=asm]"))))
	until(t, ctx, `$("asm").value.startsWith("push %rbp\njmp +0x4")`)
	until(t, ctx, `$("error").hidden && ask.of?.size === 5`)
	eval[bool](t, ctx, `($("asm").value = "top: dec %rdi\njne top\nret", $("asm").dispatchEvent(new Event("input")), true)`)
	until(t, ctx, `ask.of?.bytes.map((b) => b.value).join("") === "48ffcf75fbc3"`)
	fresh := tab(t, eval[string](t, ctx, `location.href`))
	until(t, fresh, `ask.of?.size === 6`)
	require.Equal(t, "top: dec %rdi\njne top\nret", eval[string](t, fresh, `$("asm").value`))
	eval[bool](t, ctx, `($("asm").value = "frob", $("asm").dispatchEvent(new Event("input")), true)`)
	until(t, ctx, `$("error").textContent.includes("there is no instruction frob")`)
	eval[bool](t, ctx, `($("asm").value = "nop", $("asm").dispatchEvent(new Event("input")), true)`)
	until(t, ctx, `$("error").hidden && ask.of?.size === 1`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("input[value=hex]"))))
	until(t, ctx, `$("hex").value === "90"`)
}

// Back, then Forward is the same place; so is a demonstration that begins again.
func TestForwardComesBackToWhatBackHasLeft(t *testing.T) {
	ctx := machine(t, "")
	there := func() string { return eval[string](t, ctx, moment+` + watch.machine.view.hash`) }
	forward := func(n int) (list []string) {
		for range n {
			eval[bool](t, ctx, `watch.machine.forward()`)
			list = append(list, there())
		}
		return list
	}
	first := forward(7)
	// Steps out of turn are come back to, too.
	for _, who := range []string{"b", "b", "a", "b"} {
		eval[bool](t, ctx, fmt.Sprintf(`watch.machine.forward(%q)`, who))
	}
	var left []string
	for range 5 {
		left = append([]string{there()}, left...)
		eval[bool](t, ctx, `watch.machine.back()`)
	}
	require.Equal(t, left, forward(5))
	eval[bool](t, ctx, `watch.machine.begin().then(() => true)`)
	require.Equal(t, first, forward(7))
	for range 4 {
		eval[bool](t, ctx, `watch.machine.back()`)
	}
	require.Equal(t, first[2], there())
	require.Equal(t, first[3:], forward(4))
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("[data-key=begin]"))))
	until(t, ctx, schedule+` === ""`)
	require.Equal(t, first, forward(7))
}

// At the end of the run, Forward says so, keeps the focus, and does nothing.
func TestForwardAtTheEnd(t *testing.T) {
	ctx := machine(t, "m")
	eval[bool](t, ctx, `(async () => { while (await watch.machine.forward()); return true; })()`)
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#machine .caption").textContent`), "Nobody has anything left to do")
	require.Equal(t, "true", eval[string](t, ctx, `document.querySelector("[data-key=forward]").getAttribute("aria-disabled")`))
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=forward]"))))
	press(t, ctx, kb.Enter)
	require.Equal(t, "forward", eval[string](t, ctx, `document.activeElement.dataset.key`))
}

// The mode and who steps are in the address.
func TestTheAddressHasTheMode(t *testing.T) {
	ctx := machine(t, "m")
	eval[bool](t, ctx, `(() => { for (const [key, value] of [["by", "instruction"], ["who", "b"]]) { const s = document.querySelector(`+"`[data-key=${key}]`"+`); s.value = value; s.dispatchEvent(new Event("change")); } return true; })()`)
	fresh := tab(t, eval[string](t, ctx, `location.href`))
	until(t, fresh, `!!watch.machine?.view`)
	require.Equal(t, "instruction b", eval[string](t, fresh, `watch.machine.by + " " + watch.machine.who`))
}

// While the code scrolls, Forward and the caption stay in sight; no instruction is cut, at any width.
func TestNothingIsCutAndForwardStays(t *testing.T) {
	for _, width := range []int64{320, 360, 768, 1280, 1366, 1920} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			ctx := tab(t, page(t)+"#lesson?n=1")
			appear(t, ctx, "light", width)
			until(t, ctx, `!!lesson.machine.view`)
			for range 3 {
				eval[bool](t, ctx, `lesson.machine.forward()`)
			}
			require.Empty(t, eval[string](t, ctx, `[...document.querySelectorAll("#lesson-machine .scroll")].filter((s) => s.scrollWidth > s.clientWidth).map((s) => s.ariaLabel + " " + s.scrollWidth + " in " + s.clientWidth).join()`))
			require.Empty(t, eval[string](t, ctx, `[...document.querySelectorAll("#lesson-machine .controls button")].filter((b) => b.scrollWidth > b.clientWidth + 1 || b.getBoundingClientRect().right > innerWidth).map((b) => b.textContent).join()`))
			require.LessOrEqual(t, eval[int64](t, ctx, `document.documentElement.scrollWidth`), width)
			for _, at := range []string{"[data-key=forward]", ".caption"} {
				require.True(t, eval[bool](t, ctx, `(() => {
					document.querySelector("#lesson-machine tr.here").scrollIntoView({block: "center"});
					const b = document.querySelector("#lesson-machine `+at+`").getBoundingClientRect();
					return b.top >= 0 && b.bottom <= innerHeight;
				})()`), at)
			}
		})
	}
}

// The caption is one element, whose text changes: such a change is announced.
func TestTheCaptionIsAnnounced(t *testing.T) {
	ctx := machine(t, "")
	eval[bool](t, ctx, `(window.was = document.querySelector("#machine [role=status]"), true)`)
	seen := map[string]bool{}
	for range 4 {
		eval[bool](t, ctx, `watch.machine.forward()`)
		seen[eval[string](t, ctx, `window.was.textContent`)] = true
		require.True(t, eval[bool](t, ctx, `window.was.isConnected`))
	}
	require.Len(t, seen, 4)
}

// The link to the content leaves the address; a change of the view moves focus and title.
func TestTheLinkToTheContentAndTheViews(t *testing.T) {
	ctx := machine(t, "ma2")
	there := eval[string](t, ctx, `location.href`)
	require.Equal(t, "Watch – kprobelab", eval[string](t, ctx, `document.title`))
	eval[bool](t, ctx, `($("skip").click(), true)`)
	require.Equal(t, "main", eval[string](t, ctx, `document.activeElement.id`))
	require.Equal(t, there, eval[string](t, ctx, `location.href`))
	eval[bool](t, ctx, `(location.hash = "lesson", true)`)
	until(t, ctx, `document.title === "Lessons – kprobelab"`)
	require.Equal(t, "lesson-title", eval[string](t, ctx, `document.activeElement.id`))
}

// What was announced in one view is not left for the next one.
func TestAnAnswerIsAnnouncedInItsViewOnly(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?at=5")
	until(t, ctx, `document.body.dataset.ready && $("live").textContent !== ""`)
	eval[bool](t, ctx, `(location.hash = "lesson", true)`)
	until(t, ctx, `document.title === "Lessons – kprobelab"`)
	require.Empty(t, eval[string](t, ctx, `$("live").textContent`))
}

// The parts of an order are one stop of the Tab key.
func TestTheOrderIsOneTabStop(t *testing.T) {
	ctx := machine(t, "ma2b2a2")
	require.Equal(t, 1, eval[int](t, ctx, `document.querySelectorAll(".bars li button[tabindex='0']").length`))
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("[data-key=part0]"))))
	press(t, ctx, kb.ArrowDown)
	require.Equal(t, "part1", eval[string](t, ctx, `document.activeElement.dataset.key`))
}

// An address names its image by the build id. Where that is not open the page says so, keeps the
// function and the byte, and gives no other kernel's answer.
func TestAnAddressOfAnImageThatIsNotOpen(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image&image=vmlinuz-9&build=0123&function=gcd&at=5")
	until(t, ctx, `!$("error").hidden`)
	require.Contains(t, eval[string](t, ctx, `$("error").textContent`), "vmlinuz-9, build id 0123, which is not open here")
	require.True(t, eval[bool](t, ctx, `ask.of === null && $("search").value === "gcd" && location.hash.includes("at=5")`))
}

// The answer to a chosen byte is in sight, and a search that does not match has no function's answers.
func TestTheAnswerIsInSight(t *testing.T) {
	for _, width := range []int64{1920, 1366, 1100, 360} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			ctx := tab(t, page(t)+"#ask?source=image&function=sys_open")
			appear(t, ctx, "light", width)
			until(t, ctx, `!!ask.of`)
			require.LessOrEqual(t, eval[int](t, ctx, `$("code").scrollWidth - $("code").clientWidth`), 0, "the answers are not cut")
			eval[bool](t, ctx, `(() => { const b = [...document.querySelectorAll("button.byte")].at(-1); b.scrollIntoView(); b.click(); return true; })()`)
			until(t, ctx, `!!document.querySelector("#detail h3")`)
			until(t, ctx, `(() => { const b = document.querySelector("#detail h3").getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight; })()`)
			eval[bool](t, ctx, `($("search").value = "nosuchfunction", $("search").dispatchEvent(new Event("input")), true)`)
			until(t, ctx, `ask.of === null && $("code").hidden`)
		})
	}
}

// After two misses the reader may see it. What is done stays done, and the next lesson is offered.
func TestALessonThatIsDone(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=4")
	until(t, ctx, `!!lesson.machine?.view && $("answers").children.length === 3`)
	for range 2 {
		require.False(t, eval[bool](t, ctx, `!!document.querySelector("#show-me")`))
		eval[bool](t, ctx, `($("answers").children[0].click(), true)`)
		until(t, ctx, `$("verdict").className === "wrong"`)
		eval[bool](t, ctx, `($("verdict").className = "", true)`)
	}
	until(t, ctx, `!!document.querySelector("#show-me")`)
	eval[bool](t, ctx, `($("show-me").click(), true)`)
	until(t, ctx, `[...document.querySelectorAll("#vary a")].some((a) => a.getAttribute("href") === "#lesson?n=5")`)
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#lesson-machine .caption").textContent`), "returned 3")
	require.NoError(t, chromedp.Do(ctx, chromedp.Reload()))
	until(t, ctx, `document.body.dataset.ready === "1" && !!lesson.list`)
	require.True(t, eval[bool](t, ctx, `lesson.done.has("ip")`))
}

// A lecturer's own lesson is dropped; one that cannot be played is refused with a sentence.
func TestALessonIsDropped(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "lessons", "04-ip.json"))
	require.NoError(t, err)
	own := strings.ReplaceAll(strings.ReplaceAll(string(file), `"id": "ip"`, `"id": "mine"`), "A handler that changes ip", "My own lesson")
	ctx := tab(t, page(t)+"#watch")
	drop(t, ctx, "mine.json", base64.StdEncoding.EncodeToString([]byte(own)))
	until(t, ctx, `location.hash.startsWith("#lesson?n=12") && document.querySelector("#lesson-text h3").textContent === "12. My own lesson"`)
	drop(t, ctx, "bad.json", base64.StdEncoding.EncodeToString([]byte(strings.Replace(own, `"returned": 3`, `"returned": 4`, 1))))
	until(t, ctx, `document.querySelector("#error").textContent.includes("no answer is true at the moment of the question")`)
}

// A place is written as perf writes it: the function is shown, and the byte is chosen.
func TestAPlaceIsTyped(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image")
	eval[bool](t, ctx, `($("search").value = "gcd+0x1c", $("search").dispatchEvent(new Event("input")), true)`)
	until(t, ctx, `ask.of?.name === "gcd" && ask.at === 28 && document.querySelector("#detail h3")?.textContent === "A probe at gcd+0x1c"`)
}

// The same order is run with care and without it.
func TestAChangeOfTheRulesKeepsTheOrder(t *testing.T) {
	ctx := tab(t, page(t)+"#watch?probes=kprobe+opt_yes&calls=opt_yes(1)&release=6.1&careless=1&schedule=amwwa")
	until(t, ctx, `watch.machine?.view?.cpus[0].state.startsWith("failed")`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#careless"))))
	until(t, ctx, `watch.machine.view.cpus[0].state === "runs"`)
	require.Equal(t, "amw2a", eval[string](t, ctx, schedule))
}
