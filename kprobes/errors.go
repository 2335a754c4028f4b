package kprobes

import (
	"fmt"
	"runtime/debug"

	"kprobelab/x86"
)

// HandlerPanic is the error of a Go handler that panicked. The hit went on as
// if the handler had returned 0.
type HandlerPanic struct {
	// Probe names the probe, as "symbol+0xoffset".
	Probe string
	// Handler is the field whose function panicked, such as "pre_handler".
	Handler string
	// Value is the argument of the panic.
	Value any
	// Stack is the goroutine's stack at that moment.
	Stack []byte
}

// Error is one line without the stack.
func (e *HandlerPanic) Error() string {
	return fmt.Sprintf("probe %s: %s panicked: %v", e.Probe, e.Handler, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *HandlerPanic) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Bug is the error for a state from which the kernel cannot continue: the kernel calls BUG.
type Bug struct {
	// Text describes the inconsistent state.
	Text string
	// Probe names the probe that was hit, Addr is its address.
	Probe string
	Addr  x86.Addr
	CPU   int
	Task  int
	// Current is the probe that was being handled, in that Status; empty
	// where there was none.
	Current string
	Status  Status
	Regs    x86.PtRegs
}

// Error is one line.
func (e *Bug) Error() string {
	s := fmt.Sprintf("BUG: probe %s: %s (cpu %d, task %d", e.Probe, e.Text, e.CPU, e.Task)
	if e.Current != "" {
		s += fmt.Sprintf(", handling %s in %s", e.Current, e.Status)
	}
	return s + ")"
}

// EmulationFault is the error of an emulated instruction whose stack access
// failed. The kernel's emulation does not expect that, and oopses.
type EmulationFault struct {
	Probe string
	Addr  x86.Addr
	Err   error
}

// Error is one line.
func (e *EmulationFault) Error() string {
	return fmt.Sprintf("probe %s: the instruction's stack access failed: %v", e.Probe, e.Err)
}

// Unwrap is the memory's error.
func (e *EmulationFault) Unwrap() error { return e.Err }

// Err returns the first error that a hit ran into since ClearErr: a
// *HandlerPanic, a *Bug or an *EmulationFault, or the machine's. Registration
// returns its own errors.
func (k *Kprobes) Err() error { return k.err }

// ClearErr forgets the recorded error and returns it.
func (k *Kprobes) ClearErr() error {
	err := k.err
	k.err = nil
	return err
}

func (k *Kprobes) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// recovered records the panic of a handler; v is the value of recover, nil if the handler ended its
// goroutine. A deferred function calls it after a handler that did not return, because recover
// alone takes as long as a short handler.
func (k *Kprobes) recovered(p *Kprobe, handler string, v any) {
	if v != nil {
		k.fail(&HandlerPanic{Probe: k.name(p), Handler: handler, Value: v, Stack: debug.Stack()})
	}
}
