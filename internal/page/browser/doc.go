// Package browser tests the page in a browser (make test-page). It is a module of its
// own, so that what it needs is not among what the program needs.
package browser
