package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// tab opens an address in a fresh profile, and waits until the program is there: a file
// with the network off. At the end of the test, the console must be empty, and a file
// must have made no request.
func tab(t *testing.T, address string, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	ctx := blank(t, strings.HasPrefix(address, "file:"), options...)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	until(t, ctx, `document.body.dataset.ready === "1"`)
	return ctx
}

// blank is a tab without a page, in a fresh profile.
func blank(t *testing.T, offline bool, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	chromium := os.Getenv("KPROBELAB_CHROMIUM")
	require.NotEmpty(t, chromium, "make test-page names a Chromium in $KPROBELAB_CHROMIUM")
	options = append(append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WindowSize(1200, 900)), options...)
	if offline { // what goes to the network, this computer included, goes to a port where nobody is
		options = append(options, chromedp.ProxyServer("127.0.0.1:9"), chromedp.Flag("proxy-bypass-list", "<-loopback>"))
	}
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx)) // starts the browser
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	var lock sync.Mutex
	var said []string
	require.NoError(t, chromedp.Listen(ctx, func(e any) {
		lock.Lock()
		defer lock.Unlock()
		switch e := e.(type) {
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				said = append(said, fmt.Sprintf("%v: %s%s", e.Type, a.Value, a.Description))
			}
		case *runtime.EventExceptionThrown:
			said = append(said, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
		case *network.EventRequestWillBeSent:
			if offline && strings.HasPrefix(e.Request.URL, "http") {
				said = append(said, "asks for "+e.Request.URL)
			}
		case *log.EventEntryAdded:
			said = append(said, e.Entry.Text+" "+e.Entry.URL)
		}
	}))
	t.Cleanup(func() {
		lock.Lock()
		defer lock.Unlock()
		require.Empty(t, said, "the console")
	})
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	return ctx
}

// eval evaluates JavaScript in the page, and waits for a promise.
func eval[T any](t *testing.T, ctx context.Context, code string) T {
	t.Helper()
	if f := inFirefox(ctx); f != nil {
		var v T
		f.ask(t, map[string]any{"do": "eval", "code": code}, &v)
		return v
	}
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](code, chromedp.EvalAwaitPromise))
	require.NoError(t, err, code)
	return v
}

// patience is the time that the page has for each task: much longer than it needs, for
// a busy machine.
const patience = 2 * time.Minute

// until waits until a condition holds in the page.
func until(t *testing.T, ctx context.Context, condition string) {
	t.Helper()
	said := eval[string](t, ctx, fmt.Sprintf(`new Promise((done) => {
		const end = Date.now() + %d;
		const look = () => (%s) ? done("") : Date.now() < end ? setTimeout(look, 20)
			: done("status: " + document.querySelector("#status").textContent + "; error: " + document.querySelector("#error").textContent);
		look();
	})`, patience.Milliseconds(), condition))
	require.Empty(t, said, "after %s, the page has not come to: %s", patience, condition)
}

// pageFile is the page's file, page its address.
func pageFile(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "kprobelab.html"))
	require.NoError(t, err)
	require.FileExists(t, file)
	return file
}

func page(t *testing.T) string { return "file://" + pageFile(t) }

// appear sets the colours that the reader prefers, and the window's width.
func appear(t *testing.T, ctx context.Context, scheme string, width int64) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)))
}

// picture takes a picture of the whole page for people, into $KPROBELAB_PICTURES.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("KPROBELAB_PICTURES")
	if dir == "" {
		return
	}
	file := filepath.Join(dir, name+".png")
	if f := inFirefox(ctx); f != nil {
		var done bool
		f.ask(t, map[string]any{"do": "picture", "path": file}, &done)
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, png, 0o666))
}
