//go:build js && wasm

// Command wasm is the program in a browser: it gives the page's worker the function
// kprobelab(request, file), which answers as page.Answer does.
package main

import (
	"os"
	"syscall/js"

	"kprobelab/internal/page"
)

func main() {
	os.Setenv("KPROBELAB_CACHE", "off") // a browser has no files
	p := &page.Page{}
	js.Global().Set("kprobelab", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var file []byte
		if len(args) > 1 && args[1].Truthy() {
			file = make([]byte, args[1].Get("length").Int())
			js.CopyBytesToGo(file, args[1])
		}
		return p.Answer(args[0].String(), file)
	}))
	select {}
}
