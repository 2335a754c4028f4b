package run

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// TakeSignals gives the program the interrupts and terminations of this process, until stop; the third one ends this process.
func (p *HostProgram) TakeSignals() (stop func()) {
	came, to := make(chan os.Signal, 1), make(chan syscall.Signal, 2)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			s, ok := <-came
			if !ok {
				return
			}
			if n == cap(to) {
				signal.Reset(os.Interrupt, syscall.SIGTERM)
			}
			to <- s.(syscall.Signal)
		}
	}()
	p.Signals, p.Context = to, context.Background()
	return func() { signal.Stop(came); close(came) }
}
