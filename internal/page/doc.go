// Package page is what the page in a browser asks the program: a request is one JSON
// object, and so is its answer. The same questions can be asked of a Page in Go, so
// that most of it is tested without a browser.
//
// It decides nothing itself: package report explains, kprobelab runs. It must not know
// how the page looks (web), or how a browser calls it (wasm).
package page
