package browser

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// renamed is the guest kernel with another name for its function gcd: in a table of names at the file's end.
func renamed(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "guest.elf"))
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	list, err := f.Symbols()
	require.NoError(t, err)
	at := slices.IndexFunc(list, func(s elf.Symbol) bool { return s.Name == "gcd" })
	require.GreaterOrEqual(t, at, 0)
	names, err := f.Section(".strtab").Data()
	require.NoError(t, err)
	const section, symbol = 64, 24
	le := binary.LittleEndian
	le.PutUint32(b[f.Section(".symtab").Offset+uint64(at+1)*symbol:], uint32(len(names)))
	names = append(append(names, name...), 0)
	header := le.Uint64(b[40:]) + section*uint64(slices.Index(f.Sections, f.Section(".strtab")))
	le.PutUint64(b[header+24:], uint64(len(b)))
	le.PutUint64(b[header+32:], uint64(len(names)))
	return append(b, names...)
}

// hostileNames are names of functions, and their form on the page.
var hostileNames = map[string]struct{ name, shown string }{
	"image":         {`<img src=x onerror=window.hit=1>`, `<img src=x onerror=window.hit=1>`},
	"script":        {`"><script>window.hit=1</script>`, `"><script>window.hit=1</script>`},
	"handler":       {`' onmouseover='window.hit=1' x="`, `' onmouseover='window.hit=1' x="`},
	"end_of_field":  {`</textarea></option><svg onload=window.hit=1>`, `</textarea></option><svg onload=window.hit=1>`},
	"template":      {"${window.hit=1}`+window.hit=1+`{{window.hit=1}}", "${window.hit=1}`+window.hit=1+`{{window.hit=1}}"},
	"address":       {`javascript:window.hit=1`, `javascript:window.hit=1`},
	"entity":        {`&lt;b&gt;&#x1b;`, `&lt;b&gt;&#x1b;`},
	"json":          {`"}],"error":"x</script>`, `"}],"error":"x</script>`},
	"very_long":     {strings.Repeat("a", 4000), strings.Repeat("a", 4000)},
	"long_words":    {strings.Repeat("W&", 2000), strings.Repeat("W&", 2000)},
	"controls":      {"a\x1b[2J\x07\tb\nc\x7f", `a\u001b[2J\u0007\u0009b\u000ac\u007f`},
	"right_to_left": {"a\u202egnp.exe", `a\u202egnp.exe`},
	"isolates":      {"\u2067a\u2066b", `\u2067a\u2066b`},
	"lines":         {"a\u2028b\u2029c", `a\u2028b\u2029c`},
	"hebrew":        {"שלום", "שלום"},
	"marks":         {"a" + strings.Repeat("\u0301", 500), "a" + strings.Repeat("\u0301", 500)},
	"prototype":     {"__proto__", "__proto__"},
	"constructor":   {"constructor", "constructor"},
}

// wide is the width of the page past its window.
const wide = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

// Whatever a function is called: its name is text, nothing of it is executed, it is as wide as the page, and it turns
// nothing else around. So with a file's name.
func TestHostileNames(t *testing.T) {
	for what, c := range hostileNames {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x"+strings.ToValidUTF8(strings.ReplaceAll(c.name[:min(len(c.name), 100)], "/", ""), ""))
			require.NoError(t, os.WriteFile(file, renamed(t, c.name), 0o600))
			ctx := tab(t, page(t)+"#ask?source=image")
			elements := eval[int](t, ctx, `document.querySelectorAll("img, script, svg:not(#code .rows > svg)").length`)
			choose(t, ctx, file)
			until(t, ctx, `ask.open?.name && $("status").textContent === "Ready"`)
			asksFor(t, ctx, c.shown)
			if strings.Contains(c.shown, ":") { // what stands before a colon is a module: there is none
				require.Contains(t, eval[string](t, ctx, `$("error").textContent`), "has no function")
			} else {
				require.True(t, eval[bool](t, ctx, fmt.Sprintf(`$("code-about").firstChild.textContent === %q && $("code-about").firstChild.localName === "bdi"`, c.shown)))
			}
			for _, width := range []int64{1200, 360} {
				appear(t, ctx, "light", width)
				require.LessOrEqual(t, eval[int](t, ctx, wide), 0, "the page is wider than its window of %d", width)
			}
			// A place in it, in a machine: a sentence, or the machine.
			eval[bool](t, ctx, fmt.Sprintf(`(location.hash = "watch?"+new URLSearchParams({image: ask.open.name, probes: "kprobe "+%q, calls: %[1]q+"(12, 18)"}), true)`, c.shown))
			until(t, ctx, `!$("watch").hidden && (!$("error").hidden || !!watch.machine?.view)`)
			require.LessOrEqual(t, eval[int](t, ctx, wide), 0, "the machine is wider than its window")
			require.True(t, eval[bool](t, ctx, `window.hit === undefined`), "something of the name was executed")
			require.Equal(t, elements, eval[int](t, ctx, `document.querySelectorAll("img, script, svg:not(#code .rows > svg)").length`), "the name has become an element")
		})
	}
}

// asksFor types a function's name, and waits for the answer.
func asksFor(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	eval[bool](t, ctx, fmt.Sprintf(`($("search").value = %q, $("search").dispatchEvent(new Event("input")), true)`, name))
	until(t, ctx, fmt.Sprintf(`ask.of?.name === %q && !$("code").hidden || !$("error").hidden`, name))
}
