package browser

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	native "kprobelab/internal/page"
	"kprobelab/internal/page/server"
	"kprobelab/profile"
)

// ways are the two ways to open the page: from disk, and from serve.
var ways = map[string]func(t *testing.T) string{"file": page, "serve": func(t *testing.T) string { return served(t) }}

// served starts a server with the page and images, and returns its address.
func served(t *testing.T, images ...string) string {
	t.Helper()
	s, err := server.New(pageFile(t), images)
	require.NoError(t, err)
	l, err := server.Listen(0)
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-done, net.ErrClosed)
		require.NoError(t, s.Close())
	})
	return "http://" + l.Addr().String() + "/"
}

func eachWay(t *testing.T, test func(t *testing.T, address string)) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { test(t, way(t)) })
	}
}

// Each lesson is done by its buttons: a wrong prediction has its reason, the right one is played and explained, and the way
// of the variation comes to its goal.
func TestEveryLessonToItsEnd(t *testing.T) {
	eachWay(t, func(t *testing.T, address string) {
		ctx := tab(t, address+"#lesson")
		still(t, ctx)
		lessonsToTheirEnds(t, ctx)
	})
}

func lessonsToTheirEnds(t *testing.T, ctx context.Context) {
	t.Helper()
	until(t, ctx, `document.querySelectorAll("#lesson-list li").length === 11`)
	for n := range 11 {
		eval[bool](t, ctx, fmt.Sprintf(`location.hash = "lesson?n=%d", true`, n+1))
		until(t, ctx, fmt.Sprintf(`lesson.n === %d && !!lesson.machine.view && lesson.machine.view.schedule === (lesson.list[%d].start ?? "") && lesson.machine.scenario.probes === lesson.list[%d].scenario.probes`, n, n, n))
		right := eval[int](t, ctx, `question({ do: "predict", of: lesson.list[lesson.n], answer: 0 }).then((c) => c.answer)`)
		eval[bool](t, ctx, fmt.Sprintf(`($("answers").children[%d].click(), true)`, (right+1)%3))
		until(t, ctx, `$("verdict").className === "wrong"`)
		eval[bool](t, ctx, fmt.Sprintf(`($("answers").children[%d].click(), true)`, right))
		until(t, ctx, `!!document.querySelector("#try")`)
		require.Equal(t, "right", eval[string](t, ctx, `$("verdict").className`))
		picture(t, ctx, fmt.Sprintf("lesson-%02d", n+1))
		eval[bool](t, ctx, `($("try").click(), true)`)
		until(t, ctx, `!!document.querySelector("#show-way")`)
		require.Empty(t, eval[string](t, ctx, `$("goal").className`))
		eval[bool](t, ctx, `($("show-way").click(), true)`)
		until(t, ctx, `$("goal").className === "right"`)
	}
	require.Equal(t, 22, eval[int](t, ctx, `lesson.done.size`))
}

// still asks for a page without motion: it goes to a place without playing the way.
func still(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}})
	require.NoError(t, err)
}

// A place in a lesson is an address: in a fresh profile it is the same state.
func TestAPlaceInALessonCanBeSent(t *testing.T) {
	eachWay(t, func(t *testing.T, address string) {
		const hash = `document.querySelector("#lesson-machine .hash").textContent`
		for n := range 11 {
			ctx := tab(t, address+fmt.Sprintf("#lesson?n=%d", n+1))
			until(t, ctx, `!!lesson.machine?.view`)
			for range 6 {
				eval[bool](t, ctx, `lesson.machine.forward()`)
			}
			there := eval[string](t, ctx, `location.href`)
			require.Contains(t, there, "schedule=")
			fresh := tab(t, there)
			until(t, fresh, `!!lesson.machine?.view`)
			require.Equal(t, eval[string](t, ctx, hash), eval[string](t, fresh, hash), there)
			require.Equal(t, n, eval[int](t, fresh, `lesson.n`))
			require.Equal(t, there, eval[string](t, fresh, `location.href`))
		}
	})
}

const hash = `document.querySelector("#machine .hash").textContent`

// walked is the machine of the random walks.
const walked = "#watch?probes=kprobe+gcd%2B0x5%0Akretprobe+fib%3A2&calls=gcd(1071,462);+fib(4)%0Afib(5)&release=6.1"

// walks goes n random walks, each some steps forwards in one of the two modes by chosen steppers and in turn, then some
// back, and as many forwards: Forward has the states of Back in the reverse order, by place and digest. Back by
// instructions has the states of the way, too.
func walks(t *testing.T, ctx context.Context, seed uint64, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(37, seed))
	steps := 0
	for walk := range n {
		said := eval[[]any](t, ctx, fmt.Sprintf(`(async () => {
			const m = watch.machine, who = %q, by = %q, there = () => m.view.schedule + "/" + m.view.sub + " " + m.view.hash;
			await m.begin();
			m.by = by;
			const way = [there()];
			for (const w of who) if (await m.forward(w === "." ? undefined : w)) way.push(there());
			const wrong = [], back = [there()], alone = by === "instruction" && way[0].includes("/-1 ");
			const is = (what, i, want) => { if (there() !== want) wrong.push(what + " " + i + ": " + there() + ", not " + want); };
			for (let i = way.length - 2; i >= 0; i--) {
				if (!await m.back()) break;
				if (alone) is("back", i, way[i]);
				back.unshift(there());
			}
			for (let i = 1; i < back.length; i++) { await m.forward(); is("forward", i, back[i]); }
			return [way.length - 1, wrong];
		})()`, randomly(random, "mababababw..", 2+random.IntN(8)), []string{"instruction", "protocol"}[random.IntN(2)]))
		require.Empty(t, said[1], "walk %d", walk)
		steps += int(said[0].(float64))
	}
	t.Logf("%d walks of %d steps, each forwards, back and forwards again", n, steps)
	require.Greater(t, steps, 2*n)
}

func randomly(random *rand.Rand, of string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = of[random.IntN(len(of))]
	}
	return string(b)
}

// Back and Forward are the same places, on 500 random walks.
func TestRandomWalksBackAndForward(t *testing.T) {
	for seed := range 10 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ctx := tab(t, page(t)+walked)
			until(t, ctx, `!!watch.machine.view`)
			walks(t, ctx, uint64(seed), 50)
		})
	}
}

// 200 random steps and back; and in between, the address in a fresh profile.
func TestStepsForwardAndBackAndTheAddress(t *testing.T) {
	eachWay(t, func(t *testing.T, address string) {
		start := address + "#watch?probes=kprobe+gcd%2B0x5%0Akretprobe+fib%3A2&calls=gcd(1071,462);+fib(4)%0Afib(5)&release=6.1"
		ctx := tab(t, start)
		until(t, ctx, `!!watch.machine.view`)
		random := rand.New(rand.NewPCG(17, 1))
		hashes := []string{eval[string](t, ctx, hash)}
		eval[bool](t, ctx, `(watch.machine.by = "instruction", true)`)
		who := []string{"m", "a", "b", "a", "b", "a", "b", "w"}
		for len(hashes) <= 200 {
			if eval[bool](t, ctx, fmt.Sprintf(`watch.machine.forward(%q)`, who[random.IntN(len(who))])) {
				hashes = append(hashes, eval[string](t, ctx, hash))
			}
		}
		there := eval[string](t, ctx, `location.href`)
		fresh := tab(t, there)
		until(t, fresh, `!!watch.machine.view`)
		require.Equal(t, hashes[200], eval[string](t, fresh, hash))

		for n := 199; n >= 0; n-- {
			require.True(t, eval[bool](t, ctx, `watch.machine.back()`))
			require.Equal(t, hashes[n], eval[string](t, ctx, hash), "step %d", n)
		}
	})
}

// 10,000 random byte strings get the verdicts of the native program, byte by byte; one
// in a hundred is compared with the command line, too.
func TestVerdictsAreTheNativeOnes(t *testing.T) {
	program := commandLine(t)
	ctx := tab(t, page(t))
	random := rand.New(rand.NewPCG(17, 2))
	releases := profile.All()
	p := &native.Page{}
	const all, batch = 10_000, 250
	for range all / batch {
		var questions []map[string]string
		for range batch {
			code := make([]byte, 1+random.IntN(12))
			for i := range code {
				code[i] = byte(random.Uint32())
			}
			questions = append(questions, map[string]string{"do": "code", "hex": hex.EncodeToString(code), "release": releases[random.IntN(len(releases))]})
		}
		list, err := json.Marshal(questions)
		require.NoError(t, err)
		got := eval[[]json.RawMessage](t, ctx, `Promise.all(`+string(list)+`.map((q) => question(q)))`)
		require.Len(t, got, batch)
		for i, q := range questions {
			text, err := json.Marshal(q)
			require.NoError(t, err)
			require.JSONEq(t, p.Answer(string(text), nil), string(got[i]), q)
			if i%100 == 0 {
				asCommandLine(t, program, q, got[i])
			}
		}
	}
}

// goesOn: the page still answers.
const goesOn = `(async () => { $("hex").value = "90"; document.querySelector("input[value=hex]").click(); await ask.asked({at: null}); return ask.of.bytes.length === 1 && $("error").hidden; })()`

// asCommandLine compares the page's answer about a function's first byte with explain's. The page asks
// by address, the command line by symbol and offset, which old kernels refuse.
func asCommandLine(t *testing.T, program string, q map[string]string, answer []byte) {
	t.Helper()
	type verdict struct {
		Errno     int
		How       string
		Optimized bool
		Reasons   []struct{ ID, Sentence string }
	}
	var page struct{ Bytes []verdict }
	require.NoError(t, json.Unmarshal(answer, &page))
	out, err := exec.Command(program, "explain", "--json", "--profile", q["release"], "--hex", q["hex"], "+0").Output()
	require.NoError(t, err, q)
	var want struct {
		verdict
		Rule string `json:"register_reason"`
	}
	require.NoError(t, json.Unmarshal(out, &want))
	if want.Rule == "NO_SYMBOL_NAMES" {
		want.Errno, want.How = page.Bytes[0].Errno, page.Bytes[0].How
	}
	require.Equal(t, want.verdict, page.Bytes[0], q)
}

// Whatever the page is given, it says a sentence, and goes on.
func TestBadInputGetsASentence(t *testing.T) {
	for name, c := range map[string]struct{ place, script, says string }{
		"no_such_view":     {"#nowhere", "", "no such place"},
		"release":          {"#ask?release=1.0", "", "no kernel"},
		"byte":             {"#ask?at=-1", "", "not a number"},
		"digits":           {"#ask?hex=5g", "", "no hexadecimal digit"},
		"schedule":         {"#watch?calls=gcd(1,2)&schedule=zz", "", "not one that the page has made"},
		"schedule_too_far": {"#watch?calls=gcd(1,2)&schedule=a4999", "", "not one that the page has made"},
		"sub":              {"#watch?calls=gcd(1,2)&sub=x", "", "not one that the page has made"},
		"watch_release":    {"#watch?calls=gcd(1,2)&release=1.0", "", "no release"},
		"lesson":           {"#lesson?n=99", "", "no lesson"},
		"lesson_schedule":  {"#lesson?n=7&schedule=mw2z", "", "not one that the page has made"},
		"lesson_too_far":   {"#lesson?n=2&schedule=ma4000", "", "not one that the page has made"},
		"lesson_sub":       {"#lesson?n=1&schedule=m&sub=77", "", "not one that the page has made"},
		"not_an_image":     {"#ask", `opened(new File(["not an image"], "x.elf"))`, "x.elf"},
		"cut_off_elf":      {"#ask", `opened(new File(["\x7fELF\x02\x01\x01"], "cut.elf"))`, "cut.elf"},
		"unreadable":       {"#ask", `opened({name: "gone", size: 1, arrayBuffer: () => Promise.reject(new Error("gone: it cannot be read"))})`, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := tab(t, page(t)+c.place)
			if c.script != "" {
				_, err := chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void](c.script, chromedp.EvalAwaitPromise))
				require.NoError(t, err)
			}
			until(t, ctx, `!$("error").hidden`)
			require.Contains(t, eval[string](t, ctx, `$("error").textContent`), c.says)
			if strings.HasPrefix(c.place, "#lesson") {
				until(t, ctx, `lesson.machine.view?.schedule === (lesson.machine.scenario.start ?? "")`) // it can be begun
			}
			require.True(t, eval[bool](t, ctx, goesOn))
		})
	}
}

// views are the places of which pictures are taken and whose accessibility is checked.
var viewsOf = map[string]string{
	"ask":     "#ask?at=1",
	"image":   "#ask?source=image&function=gcd&at=5",
	"asm":     "#ask?source=asm&asm=push+%25rbp%0Atop:+dec+%25rdi%0Ajne+top%0Apop+%25rbp%0Aret&at=1",
	"watch":   "#watch?probes=kprobe+opt_yes&calls=opt_yes(1)%0Aopt_yes(2)&release=6.1&schedule=mw4a",
	"lesson":  "#lesson?n=1&schedule=ma4",
	"film":    "#film?schedule=m3a12",
	"explore": "#explore?bug=34",
}

func settled(t *testing.T, ctx context.Context, name string) {
	until(t, ctx, map[string]string{
		"ask": `!!document.querySelector("#detail h3")`, "asm": `!!document.querySelector("#detail h3")`, "image": `!!document.querySelector("#detail h3")`,
		"watch": `!!document.querySelector("#machine .lane")`, "lesson": `!!document.querySelector("#lesson-machine .lane")`,
		"film": `!!document.querySelector("#film-machine .lane")`, "explore": `document.querySelector("#explore-text").value !== ""`,
	}[name])
}

func TestAccessibleInLightAndDarkAndOnAPhone(t *testing.T) {
	axe, err := os.ReadFile(os.Getenv("KPROBELAB_AXE"))
	require.NoError(t, err, "make test-page names axe-core's axe.min.js in $KPROBELAB_AXE")
	for _, look := range []struct {
		name, scheme string
		width        int64
		theme        string
	}{{"light", "light", 1366, ""}, {"dark", "dark", 1366, ""}, {"phone", "light", 360, ""}, {"phone-dark", "dark", 360, ""}, {"contrast", "light", 1366, "?theme=contrast"}, {"phone-contrast", "dark", 360, "?theme=contrast"}} {
		for name, at := range viewsOf {
			t.Run(look.name+"/"+name, func(t *testing.T) {
				ctx := tab(t, page(t)+look.theme+at)
				appear(t, ctx, look.scheme, look.width)
				settled(t, ctx, name)
				if name == "explore" {
					eval[bool](t, ctx, `(document.querySelector("#explore-go").click(), true)`)
					until(t, ctx, `document.querySelector("#explore-far").textContent.includes("end badly.") && document.querySelector("#story table") !== null`)
				}
				eval[bool](t, ctx, `(document.querySelectorAll("details").forEach((d) => { d.open = true; }), true)`)
				picture(t, ctx, name+"-"+look.name)
				require.LessOrEqual(t, eval[int64](t, ctx, `document.documentElement.scrollWidth`), look.width, "nothing is wider than the window")
				eval[bool](t, ctx, string(axe)+`; true`)
				rules := `{}`
				if look.theme != "" { // the theme of contrast is AAA in contrast
					rules = `{rules: {"color-contrast-enhanced": {enabled: true}}}`
				}
				said := eval[struct {
					Passed   int
					Violated []string
				}](t, ctx, `axe.run(`+rules+`).then((r) => ({passed: r.passes.length, violated: r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join("; "))}))`)
				require.Greater(t, said.Passed, 20, "axe has looked at next to nothing")
				require.Empty(t, said.Violated)
			})
		}
	}
}
