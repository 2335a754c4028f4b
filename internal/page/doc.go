// Package page answers the requests of the page in a browser: a request is one JSON
// object, and so is its answer. In Go, a Page answers the same requests, so that most
// of it is tested without a browser.
//
// It decides nothing itself: package report explains, kprobelab runs. It must not know
// how the page looks (web), or how a browser calls it (wasm).
package page
