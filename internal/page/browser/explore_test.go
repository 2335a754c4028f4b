package browser

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A search finds an order that breaks it, draws the fan, and its address and its file open the order.
func TestExplore(t *testing.T) {
	ctx := tab(t, page(t)+"#explore?bug=34")
	until(t, ctx, `document.querySelector("#explore-scene").value === "single-among-queued"`)
	eval[bool](t, ctx, `(document.querySelector("#explore-go").click(), true)`)
	until(t, ctx, `document.querySelector("#explore-far").textContent.includes("end badly.") && document.querySelector("#explore-stop").hidden`)
	until(t, ctx, `document.querySelector("#story h3")?.textContent.startsWith("This order ends badly")`)
	require.Positive(t, eval[int](t, ctx, `document.querySelectorAll("#fan g.dead").length`))
	require.Positive(t, eval[int](t, ctx, `document.querySelectorAll("#fan g.alive").length`))
	picture(t, ctx, "explore")

	// A good order opens by a click, and a bad one again.
	eval[bool](t, ctx, `(document.querySelector("#fan g.alive").dispatchEvent(new MouseEvent("click", { bubbles: true })), true)`)
	until(t, ctx, `document.querySelector("#story h3").textContent === "This order ends well"`)
	eval[bool](t, ctx, `(document.querySelector("#fan li button").click(), true)`)
	until(t, ctx, `document.querySelector("#story h3").textContent.startsWith("This order ends badly")`)

	address := eval[string](t, ctx, `location.href`)
	steps := eval[string](t, ctx, `document.querySelector("#story tbody").textContent`)
	again := tab(t, address)
	until(t, again, `document.querySelector("#story tbody") !== null`)
	require.Equal(t, steps, eval[string](t, again, `document.querySelector("#story tbody").textContent`))
	require.Equal(t, "34", eval[string](t, again, `document.querySelector("#explore-bug").value`))

	file, err := os.ReadFile(filepath.Join("testdata", "no34.schedule"))
	require.NoError(t, err)
	ctx = tab(t, page(t)+"#watch")
	drop(t, ctx, "any.name", base64.StdEncoding.EncodeToString(file))
	until(t, ctx, `location.hash.startsWith("#explore?order=") && document.querySelector("#story h3")?.textContent.startsWith("This order ends badly")`)

	// A search that is large is stopped.
	ctx = tab(t, page(t)+"#explore?scene=four-hits")
	until(t, ctx, `document.querySelector("#explore-scene").value === "four-hits"`)
	eval[bool](t, ctx, `(document.querySelector("#explore-bound").value = "-1", document.querySelector("#explore-go").click(), true)`)
	until(t, ctx, `/^\d{2,} orders tried/.test(document.querySelector("#explore-far").textContent)`)
	eval[bool](t, ctx, `(document.querySelector("#explore-stop").click(), true)`)
	require.Contains(t, eval[string](t, ctx, `document.querySelector("#explore-far").textContent`), "Stopped.")
	picture(t, ctx, "explore-stopped")
}
