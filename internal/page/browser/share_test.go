package browser

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/page/server"
)

// shared chooses a way to share, and returns the text.
func shared(t *testing.T, ctx context.Context, how string) string {
	t.Helper()
	eval[bool](t, ctx, `($("share-text").value = "", $("share").open = true, true)`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("[data-share="+how+"]"))))
	until(t, ctx, `$("share-text").value !== "" && $("share-said").textContent !== ""`)
	return eval[string](t, ctx, `$("share-text").value`)
}

// The line that the page gives runs, and does the same.
func TestTheCommandLineOfThePageRuns(t *testing.T) {
	program := commandLine(t)
	for at, says := range map[string]string{
		"#watch?probes=kprobe+gcd%2B0x5&calls=gcd(12,18)&release=6.1":                          "gcd(12, 18) = 6",
		"#watch?probes=kprobe+strlen%2B0x5+post%0Akretprobe+strlen:3&calls=strlen(%22it's%22)": "= 4",
		"#watch?probes=kprobe+gcd%2B0x5&calls=gcd(12,18)%0Agcd(7,21)&release=6.1":              "= 7",
		"#ask?source=image&function=gcd&at=5":                                                  "gcd+0x5",
		"#ask?hex=55+48+89+e5+5d+c3&at=1&release=4.4":                                          "mov %rsp,%rbp",
		"#lesson?n=1": "strlen",
	} {
		ctx := tab(t, page(t)+at)
		until(t, ctx, `!!the()?.view || !!ask.explained`)
		line := shared(t, ctx, "command")
		require.True(t, strings.HasPrefix(line, "kprobelab "), line)
		run := exec.Command("sh", "-c", line)
		run.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "KPROBELAB_CACHE=off")
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
		require.Contains(t, string(out), says, line)
	}
	// What the command line cannot do gets a sentence.
	ctx := tab(t, page(t)+"#watch?probes=kprobe+leaf+goto+leaf2&calls=leaf(1)")
	until(t, ctx, `!!the()?.view`)
	eval[bool](t, ctx, `($("share").open = true, document.querySelector("[data-share=command]").click(), true)`)
	until(t, ctx, `$("error").textContent.includes("the command line has no probe such as")`)
}

// Link, Markdown and iframe lead to the same state.
func TestLinksLeadToTheSameState(t *testing.T) {
	ctx := machine(t, "ma2")
	there := eval[string](t, ctx, hash)
	link := shared(t, ctx, "link")
	require.Contains(t, shared(t, ctx, "markdown"), "](file:///")
	frame := shared(t, ctx, "iframe")
	require.Regexp(t, `^<iframe src="file:///[^"<>]*\?embed#[^"<>]*" title="[^"<>]*" width="900" height="480" style="border: 0"></iframe>$`, frame)
	fresh := tab(t, link)
	until(t, fresh, `!!watch.machine?.view`)
	require.Equal(t, there, eval[string](t, fresh, hash))
}

// A picture is whole SVG, whatever names are in it.
func TestAPictureIsSVG(t *testing.T) {
	for _, at := range []string{"#ask?at=1", "#watch?probes=kprobe+strlen%2B0x5&calls=strlen(%22%3C%26%22)&schedule=ma4", "#film"} {
		ctx := tab(t, page(t)+at)
		until(t, ctx, `!!the()?.view || ask.done && !!ask.explained`)
		eval[bool](t, ctx, `(async () => { for (let n = 0; n < 3 && the(); n++) await the().forward(); return true; })()`)
		require.Empty(t, eval[string](t, ctx, `(() => { const d = new DOMParser().parseFromString(pictureOf(), "image/svg+xml"); return d.querySelector("parsererror")?.textContent ?? (d.querySelectorAll("text").length > 5 ? "" : "next to nothing"); })()`), at)
	}
}

// A film strip has a frame for each event, and paper shows nothing else.
func TestAFilmStrip(t *testing.T) {
	ctx := machine(t, "ma5")
	require.GreaterOrEqual(t, eval[int](t, ctx, `strip()`), 6)
	require.Zero(t, eval[float64](t, ctx, `$("strip").getBoundingClientRect().height`))
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	require.NoError(t, err)
	require.True(t, eval[bool](t, ctx, `$("strip").getBoundingClientRect().height > 500 && $("main").getBoundingClientRect().height === 0`))
	require.Equal(t, eval[int](t, ctx, `$("strip").querySelectorAll("svg").length`), eval[int](t, ctx, `new Set([...$("strip").querySelectorAll("svg")].map((s) => s.getAttribute("aria-label"))).size`))
}

// To lecture: the stage alone in large type, the clicker steps, b blanks.
func TestAPresentation(t *testing.T) {
	ctx := tab(t, page(t)+"?present#watch?probes=kprobe+gcd%2B0x5&calls=gcd(12,18)&release=6.1")
	until(t, ctx, `!!watch.machine?.view`)
	require.Equal(t, "24px", eval[string](t, ctx, `getComputedStyle(document.documentElement).fontSize`))
	require.False(t, eval[bool](t, ctx, `$("watch-form").checkVisibility() || document.querySelector("nav").checkVisibility()`))
	before := eval[string](t, ctx, moment)
	press(t, ctx, kb.PageDown)
	until(t, ctx, moment+fmt.Sprintf(` !== %q`, before))
	press(t, ctx, kb.PageUp)
	until(t, ctx, moment+fmt.Sprintf(` === %q`, before))
	press(t, ctx, "b")
	until(t, ctx, `$("blank").checkVisibility()`)
	press(t, ctx, "x")
	until(t, ctx, `!$("blank").checkVisibility()`)
	for theme, back := range map[string]string{"dark": "rgb(22, 25, 29)", "contrast": "rgb(255, 255, 255)"} {
		eval[bool](t, ctx, fmt.Sprintf(`($("theme").value = %q, $("theme").dispatchEvent(new Event("change")), true)`, theme))
		require.Equal(t, back, eval[string](t, ctx, `getComputedStyle(document.body).backgroundColor`))
	}
}

// The page of another site has the page in a frame, says where to go and when to step, and hears where it is. What
// comes from elsewhere, or is no message, does nothing.
func TestThePageInAFrame(t *testing.T) {
	s, err := server.New(pageFile(t), nil)
	require.NoError(t, err)
	l, err := server.Listen(0)
	require.NoError(t, err)
	inside := "http://" + l.Addr().String() + "/?embed#watch?probes=kprobe+gcd%2B0x5&calls=gcd(12,18)&release=6.1"
	course := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><body data-ready="1"><iframe id="f" src="%s" width="900" height="480"></iframe>
			<script>window.said = []; addEventListener("message", (e) => said.push(e.data)); const f = document.getElementById("f"); const say = (m) => f.contentWindow.postMessage(m, "*");</script>`, inside)
	}))
	t.Cleanup(course.Close)
	require.NoError(t, s.Frame(course.URL))
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-done, net.ErrClosed)
		require.NoError(t, s.Close())
	})
	ctx := tab(t, course.URL)
	last := `said.at(-1)`
	until(t, ctx, `said.length > 0 && said.at(-1).kprobelab === "moved"`) // by the referrer
	for _, junk := range []string{`null`, `5`, `"step"`, `{}`, `{kprobelab: "goto"}`, `{kprobelab: "goto", place: 5}`, `{kprobelab: "goto", place: "javascript:alert(1)"}`, `{kprobelab: "goto", place: "nowhere"}`, `{kprobelab: "step", to: "constructor"}`, `{kprobelab: "eval", to: "1"}`} {
		eval[bool](t, ctx, `(said.length = 0, say(`+junk+`), true)`)
	}
	eval[bool](t, ctx, `(say({kprobelab: "step", to: "forward"}), true)`)
	until(t, ctx, last+`?.place.includes("schedule=m")`)
	eval[bool](t, ctx, `(say({kprobelab: "goto", place: "ask?source=image&function=gcd&at=5"}), true)`)
	until(t, ctx, last+`.place.startsWith("ask?") && `+last+`.says.includes("gcd")`)
	until(t, ctx, last+`.place.includes("at=5")`)
}

// On any static host the page makes no request, and says no error.
func TestAnyStaticHost(t *testing.T) {
	var asked []string
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		http.ServeFile(w, r, pageFile(t))
	}))
	t.Cleanup(host.Close)
	ctx := tab(t, host.URL+"/course/week3.html")
	until(t, ctx, `ask.done`)
	require.Equal(t, []string{"/course/week3.html"}, asked)
	require.True(t, eval[bool](t, ctx, `$("error").hidden`))
}

// Keys step the machine, but not in a field. A reader can turn letters off, and ? shows all keys.
func TestKeys(t *testing.T) {
	ctx := machine(t, "")
	eval[bool](t, ctx, `(document.activeElement.blur(), true)`)
	places := []string{eval[string](t, ctx, moment)}
	for _, key := range []string{"m", "1", "2", kb.ArrowRight} {
		press(t, ctx, key)
		until(t, ctx, moment+fmt.Sprintf(` !== %q`, places[len(places)-1]))
		places = append(places, eval[string](t, ctx, moment))
	}
	press(t, ctx, "k")
	until(t, ctx, moment+fmt.Sprintf(` === %q`, places[3]))
	press(t, ctx, "?")
	until(t, ctx, `$("keys").open`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#letters"))))
	press(t, ctx, kb.Escape)
	until(t, ctx, `!$("keys").open`)
	press(t, ctx, "1")
	press(t, ctx, "?")
	require.Equal(t, places[3], eval[string](t, ctx, moment))
	require.False(t, eval[bool](t, ctx, `$("keys").open`))
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("#calls"))))
	press(t, ctx, kb.ArrowLeft)
	require.Equal(t, places[3], eval[string](t, ctx, moment), "a field has its own keys")
}

// The program is unpacked in the worker; before it is there the lesson's text is, and what is typed is kept.
func TestBeforeTheProgramIsThere(t *testing.T) {
	ctx := tab(t, page(t)+"#lesson?n=3")
	until(t, ctx, `$("lesson-early") === null && $("unpacking").hidden`)
	// A worker that begins late.
	slow := strings.Replace(string(readFile(t)), "onmessage = async ({ data }) => {", "onmessage = async ({ data }) => { if (data.text) await new Promise((d) => setTimeout(d, 6000));", 1)
	file := filepath.Join(t.TempDir(), "slow.html")
	require.NoError(t, os.WriteFile(file, []byte(slow), 0o600))
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("file://"+file+"#lesson?n=3")))
	require.False(t, eval[bool](t, ctx, `!!hello`))
	require.Equal(t, "3. ", eval[string](t, ctx, `[...document.querySelectorAll("#lesson-early article")].filter((a) => a.checkVisibility()).map((a) => a.textContent.slice(0, 3)).join()`))
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("file://"+file+"#ask"), chromedp.Reload()))
	require.NoError(t, chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS("#hex"), " 90 90")))
	typed := eval[string](t, ctx, `$("hex").value`)
	require.False(t, eval[bool](t, ctx, `!!hello`), "the program came too early for this test")
	until(t, ctx, `document.body.dataset.ready === "1" && ask.done`)
	until(t, ctx, `ask.of?.size === $("hex").value.split(" ").length && ask.done`)
	require.Equal(t, typed, eval[string](t, ctx, `$("hex").value`))
}

func readFile(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(pageFile(t))
	require.NoError(t, err)
	return b
}
