// Package report says what is known about an image: as data first, then as
// text, TSV or JSON.
//
// It must not know flags or terminals, and it decides nothing itself: every
// value comes from kimage.
package report
