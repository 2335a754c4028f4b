// Package report describes an image, and answers whether its kernel would accept probes
// at many points: as data first, then as text, TSV or JSON; and, as data alone, all
// about a probe at one address.
//
// It must not know flags or terminals, and it decides nothing itself: every
// value comes from kimage, and every answer from probepoint, slot and
// optimizer.
package report
