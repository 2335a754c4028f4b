// Package perfprobe is the notation of perf probe: it reads what people write there,
// and writes the definitions that kprobe_events takes.
//
// It must not know how debugging information is read: internal/source answers where a
// place is and how a variable is fetched.
package perfprobe
