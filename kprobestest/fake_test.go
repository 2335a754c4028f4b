package kprobestest_test

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a testing.TB that keeps a test's messages, so that a test can fail on purpose, and an
// Example has a testing.TB.
type recorder struct {
	testing.TB
	said     []string
	logged   []string
	cleanups []func()
	skipped  bool
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Log(args ...any) { r.Logf("%s", fmt.Sprint(args...)) }

func (r *recorder) Logf(format string, args ...any) {
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Failed() bool { return len(r.said) > 0 }

func (r *recorder) Skipped() bool { return r.skipped }

func (r *recorder) SkipNow() {
	r.skipped = true
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

// run runs the test and its cleanups, newest first, and returns its messages.
func (r *recorder) run(test func(t testing.TB)) []string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		test(r)
	}()
	<-done
	return r.said
}
