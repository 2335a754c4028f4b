package browser

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	native "kprobelab/internal/page"
	"kprobelab/profile"
)

// firefox is a Firefox that firefox.mjs drives. eval, until, press and picture take it from the context.
type firefox struct {
	in  io.WriteCloser
	out *bufio.Reader
}

type firefoxKey struct{}

// inFirefox returns the Firefox of a context, nil for Chromium.
func inFirefox(ctx context.Context) *firefox {
	f, _ := ctx.Value(firefoxKey{}).(*firefox)
	return f
}

// ask sends a request, and puts its answer into v.
func (f *firefox) ask(t *testing.T, request map[string]any, v any) {
	t.Helper()
	b, err := json.Marshal(request)
	require.NoError(t, err)
	_, err = f.in.Write(append(b, '\n'))
	require.NoError(t, err)
	line, err := f.out.ReadBytes('\n')
	require.NoError(t, err, "firefox.mjs has ended")
	var answer struct {
		Value json.RawMessage
		Error string
	}
	require.NoError(t, json.Unmarshal(line, &answer))
	require.Empty(t, answer.Error, request)
	require.NoError(t, json.Unmarshal(answer.Value, v))
}

// fox opens an address in a Firefox with a fresh profile, and waits until the program is there. At the end of the
// test, the console must be empty, and a file must have made no request.
func fox(t *testing.T, address string, width int, still bool) context.Context {
	t.Helper()
	program, puppeteer := os.Getenv("KPROBELAB_FIREFOX"), os.Getenv("KPROBELAB_PUPPETEER")
	require.NotEmpty(t, program, "make test-page names a Firefox in $KPROBELAB_FIREFOX")
	require.NotEmpty(t, puppeteer, "make test-page names puppeteer-core in $KPROBELAB_PUPPETEER")
	cmd := exec.Command("node", "firefox.mjs", puppeteer, program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	f := &firefox{in, bufio.NewReader(out)}
	ctx := context.WithValue(t.Context(), firefoxKey{}, f)
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait())
	})
	var version string
	f.ask(t, map[string]any{"do": "open", "address": address, "width": width, "height": 900, "still": still}, &version)
	require.Contains(t, version, "firefox/")
	t.Cleanup(func() {
		var said []string
		f.ask(t, map[string]any{"do": "said"}, &said)
		require.Empty(t, said, "the console")
	})
	until(t, ctx, `document.body.dataset.ready === "1"`)
	return ctx
}

// In Firefox each lesson is done by its buttons, from disk and from serve.
func TestFirefoxLessons(t *testing.T) {
	eachWay(t, func(t *testing.T, address string) { lessonsToTheirEnds(t, fox(t, address+"#lesson", 1366, true)) })
}

// In Firefox Forward comes back to what Back has left, by the digest.
func TestFirefoxBackAndForward(t *testing.T) {
	ctx := fox(t, page(t)+walked, 1366, true)
	until(t, ctx, `!!watch.machine.view`)
	walks(t, ctx, 10, 50)
}

// In Firefox the verdicts are the native program's.
func TestFirefoxVerdicts(t *testing.T) {
	ctx := fox(t, page(t), 1366, true)
	random := rand.New(rand.NewPCG(37, 1))
	releases, p := profile.All(), &native.Page{}
	for range 8 {
		var questions []map[string]string
		for range 250 {
			code := make([]byte, 1+random.IntN(12))
			for i := range code {
				code[i] = byte(random.Uint32())
			}
			questions = append(questions, map[string]string{"do": "code", "hex": hex.EncodeToString(code), "release": releases[random.IntN(len(releases))]})
		}
		list, err := json.Marshal(questions)
		require.NoError(t, err)
		got := eval[[]json.RawMessage](t, ctx, `Promise.all(`+string(list)+`.map((q) => question(q)))`)
		require.Len(t, got, len(questions))
		for i, q := range questions {
			text, err := json.Marshal(q)
			require.NoError(t, err)
			require.JSONEq(t, p.Answer(string(text), nil), string(got[i]), q)
		}
	}
}

// In Firefox each view is there at a laptop's and a phone's width: nothing is wider than the window, no text is cut, and Ask
// is asked by its fields and buttons.
func TestFirefoxViews(t *testing.T) {
	for name, at := range viewsOf {
		t.Run(name, func(t *testing.T) {
			ctx := fox(t, page(t)+at, 1366, true)
			settled(t, ctx, name)
			for _, width := range []int{1366, 360} {
				var done any
				inFirefox(ctx).ask(t, map[string]any{"do": "width", "width": width, "height": 900}, &done)
				until(t, ctx, fmt.Sprintf(`innerWidth <= %d`, width))
				picture(t, ctx, fmt.Sprintf("firefox-%s-%d", name, width))
				require.LessOrEqual(t, eval[int](t, ctx, `document.documentElement.scrollWidth`), width)
				require.Empty(t, eval[string](t, ctx, `[...document.querySelectorAll(".stage .scroll")].filter((s) => s.scrollWidth > s.clientWidth && s.clientWidth > 0).map((s) => s.ariaLabel + " " + s.scrollWidth + " in " + s.clientWidth).join()`))
			}
		})
	}
}

// In Firefox a machine is stepped by keys and by clicks.
func TestFirefoxKeysAndClicks(t *testing.T) {
	ctx := fox(t, page(t)+"#watch?probes=kprobe+gcd%2B0x5&calls=gcd(12,18)%0Agcd(7,21)&release=6.1", 1366, false)
	until(t, ctx, `!!watch.machine?.view`)
	f := inFirefox(ctx)
	do := func(request map[string]any, becomes string) {
		var done any
		f.ask(t, request, &done)
		until(t, ctx, becomes)
	}
	do(map[string]any{"do": "key", "key": "j"}, schedule+` === "m"`)
	do(map[string]any{"do": "click", "at": "[data-key=forward]"}, moment+` === "m/1"`)
	do(map[string]any{"do": "key", "key": "k"}, `watch.machine.ahead.length === 1`)
	do(map[string]any{"do": "key", "key": "Home"}, schedule+` === ""`)
}
