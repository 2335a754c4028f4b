package browser

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// drop drops a file with a name and a text, or bytes in base64, on the page.
func drop(t *testing.T, ctx context.Context, name, base64 string) {
	t.Helper()
	eval[bool](t, ctx, fmt.Sprintf(`(() => {
		const data = new DataTransfer();
		data.items.add(new File([Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))], %q));
		document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
		return true;
	})()`, base64, name))
}

// The film in the program is played, and a dropped one takes its place.
func TestFilm(t *testing.T) {
	ctx := tab(t, page(t)+"#film")
	shown := func() string {
		return eval[string](t, ctx, `document.querySelector("#film-machine .caption").textContent`)
	}
	until(t, ctx, `document.querySelector("#film-machine .caption")?.textContent.includes("before the probes")`)
	press := func() string {
		was := eval[string](t, ctx, `location.hash`)
		eval[bool](t, ctx, `(document.querySelector("#film-machine [data-key=forward]").click(), true)`)
		until(t, ctx, fmt.Sprintf(`location.hash !== %q`, was))
		return shown()
	}
	var said []string
	for range 11 {
		said = append(said, press())
	}
	require.Contains(t, said[len(said)-1], "executes the int3 at")
	picture(t, ctx, "film")
	address := eval[string](t, ctx, `location.href`)
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#film-machine").textContent`), "push %r13")

	// The address comes back to the same place in a fresh profile.
	again := tab(t, address)
	until(t, again, `document.querySelector("#film-machine .caption")?.textContent.includes("executes the int3 at")`)

	drop(t, ctx, "mine.film", "aGVsbG8=") // hello
	until(t, ctx, `!document.querySelector("#error").hidden`)
	until(t, ctx, `location.hash === "#ask" || location.hash.startsWith("#ask?")`)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(page(t)+"#film?film=other.film")))
	until(t, ctx, `document.querySelector("#error").textContent.includes("The film other.film is not open here") || document.querySelector("#error").textContent.includes("the film other.film is not open here")`)
}
