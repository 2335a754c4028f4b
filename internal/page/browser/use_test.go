package browser

import (
	"context"
	"fmt"
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
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus("[data-key=part2]")))
	press(t, ctx, kb.ArrowLeft)
	until(t, ctx, schedule+` === "mb2a2"`)
	require.Equal(t, "part1", eval[string](t, ctx, `document.activeElement.dataset.key`), "the focus goes with the part")
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus("[data-key=apart]")))
	press(t, ctx, " ")
	until(t, ctx, `document.querySelectorAll(".order li").length === 5`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus("[data-key=part2]")))
	press(t, ctx, kb.ArrowRight)
	until(t, ctx, schedule+` === "mbaba"`)
}

// The CPUs are interleaved as one drags them.
func TestTheOrderIsDragged(t *testing.T) {
	ctx := machine(t, "ma2b2")
	require.NoError(t, chromedp.Do(ctx, chromedp.DragAndDrop("[data-key=part2]", "[data-key=part1]")))
	until(t, ctx, schedule+` === "mb2a2"`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click("[data-key=apart]")))
	until(t, ctx, `document.querySelectorAll(".order li").length === 5`)
	require.NoError(t, chromedp.Do(ctx, chromedp.DragAndDrop("[data-key=part4]", "[data-key=part2]")))
	until(t, ctx, schedule+` === "mbaba"`)

	ctx = machine(t, "mw")
	require.NoError(t, chromedp.Do(ctx, chromedp.DragAndDrop("[data-key=part1]", "[data-key=part0]")))
	until(t, ctx, `$("error").textContent.includes("This order does not go")`)
	require.Equal(t, "mw", eval[string](t, ctx, schedule))
}

func TestPlayGoesOnByItself(t *testing.T) {
	ctx := machine(t, "m")
	require.NoError(t, chromedp.Do(ctx, chromedp.Click("[data-key=play]")))
	until(t, ctx, `watch.machine.view.steps > 3`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click("[data-key=play]")))
	until(t, ctx, `document.querySelector("[data-key=play]").textContent === "Play"`)
}

// Answers that differ under another release are marked, with the old answer.
func TestAReleaseMarksWhatItChanges(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?release=6.1&hex=55+e8+00+00+00+00+90+90+90+90+c3")
	until(t, ctx, `!!ask.of`)
	require.Zero(t, eval[int](t, ctx, `document.querySelectorAll(".differs").length`))
	eval[bool](t, ctx, `($("release").value = "4.4", $("release").dispatchEvent(new Event("change")), true)`)
	until(t, ctx, `ask.of.profile === "4.4"`)
	require.Positive(t, eval[int](t, ctx, `document.querySelectorAll(".differs").length`))
	require.Contains(t, eval[string](t, ctx, `document.querySelector(".differs .was").textContent`), "by 6.1: accepted")
	eval[bool](t, ctx, `($("hex").value = "90", $("hex").dispatchEvent(new Event("input")), true)`)
	until(t, ctx, `ask.of.size === 1`)
	require.Zero(t, eval[int](t, ctx, `document.querySelectorAll(".differs").length`))
}

// The bytes of an image's function can be edited, by the rules that it was asked by.
func TestAFunctionsBytesAreEdited(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?source=image&function=gcd&release=5.10")
	until(t, ctx, `ask.of?.name === "gcd"`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click("#edit")))
	until(t, ctx, `ask.of?.name === "example"`)
	require.Equal(t, "5.10", eval[string](t, ctx, `ask.of.profile`))
	require.Equal(t, eval[int](t, ctx, `ask.of.size`), eval[int](t, ctx, `$("hex").value.split(" ").length`))
	require.NoError(t, chromedp.Do(ctx, chromedp.SendKeys("#hex", " 0f 0b")))
	until(t, ctx, `ask.of.bytes.at(-1).value === "0b"`)
}

// A function is written in assembly, and the bytes go along to the other form and back.
func TestAFunctionIsWrittenInAssembly(t *testing.T) {
	ctx := tab(t, page(t)+"#ask?release=6.1&hex=55+eb+01+90+c3")
	until(t, ctx, `ask.of?.size === 5`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click("input[value=asm]")))
	until(t, ctx, `$("asm").value.startsWith("push %rbp\njmp 0x")`)
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
	require.NoError(t, chromedp.Do(ctx, chromedp.Click("input[value=hex]")))
	until(t, ctx, `$("hex").value === "90"`)
}
