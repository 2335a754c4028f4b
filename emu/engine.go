//go:build unicorn && cgo && linux && amd64

package emu

// The binding links -lunicorn alone. A static archive needs libm after it, so it
// is named here once more. Nothing else of the package is compiled where the
// #error is met.

/*
#cgo noescape kpl_here
#cgo nocallback kpl_here
#cgo LDFLAGS: -Wl,--wrap=mmap -Wl,--wrap=mmap64 -lunicorn -lm -lpthread

#if __has_include(<unicorn/unicorn.h>)
#include <unicorn/unicorn.h>
#endif
#if !defined(UC_API_MAJOR) || UC_API_MAJOR != 2 || UC_API_MINOR < 1
#line 1 "Unicorn"
#error Unicorn 2.1 is not set up here: run make deps, then eval "$(make env)"
#endif

#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"kprobelab/decoder"
	"kprobelab/internal/contract"
	"kprobelab/internal/cpumodel"
	"kprobelab/machine"
)

// Engine names the engine and its version. (The binding's Version leaves out
// the patch level.)
func Engine() string {
	v := C.uc_version(nil, nil)
	return fmt.Sprintf("Unicorn %d.%d.%d", v>>24, v>>16&0xff, v>>8&0xff)
}

// engineError is a failure of the engine itself in the operation what.
func engineError(what string, err error) error {
	return fmt.Errorf("%w: %s: %w", machine.ErrEngine, what, err)
}

// engine is an engine of Unicorn for each CPU, over one memory.
type engine struct {
	host  *machine.Host
	opt   *machine.Options
	c     *C.kpl_machine
	sh    *contract.Shared // the beginning of c
	model int
	// reads says by which maker's rules the model reads bytes in which processors differ.
	reads decoder.Processor

	cpus    []*cpu
	cur     *cpu // the CPU that runs, or ran last
	regions []*region
	recent  *region
	states  []*C.kpl_state // all states that were made
	// limit is the argument of the last Aim.
	limit uint64
	// b is the state of a booted kernel, nil for another.
	b *booted
}

// New makes a machine with src in its memory, ready to run. nil options mean the
// defaults. The caller closes the machine.
func New(src machine.Source, o *machine.Options) (*machine.Machine, error) {
	return machine.New(src, o, open)
}

func open(h *machine.Host) (machine.Engine, error) {
	e := &engine{host: h, opt: h.Options()}
	var err error
	if e.model, err = cpuModel(e.opt.CPUModel); err != nil {
		return nil, err
	}
	if m, err := cpumodel.Named(e.opt.CPUModel); err == nil { // else the engine refuses it
		e.reads = m.Reads
	}
	prepare()
	if e.c = (*C.kpl_machine)(C.calloc(1, C.sizeof_kpl_machine)); e.c == nil {
		return nil, machine.ErrNoMemory
	}
	if C.kpl_new_counts(e.c) != 0 {
		C.free(unsafe.Pointer(e.c))
		return nil, machine.ErrNoMemory
	}
	e.sh = (*contract.Shared)(unsafe.Pointer(e.c))
	e.c.handle = C.uintptr_t(register(e))
	if e.opt.EveryInstruction {
		e.c.every = 1
	}
	if e.opt.UserMode {
		e.c.user_mode = 1
	}
	if e.opt.FreeHits {
		e.c.free_hits = 1
	}
	e.c.trap_cost = C.uint64_t(e.opt.TrapCost)
	if b, ok := h.Source().(machine.BootedSource); ok && b.Core() != nil {
		e.b = newBooted(b)
	}
	e.c.room = roomOfFunctions
	if e.b != nil || e.opt.UserMode {
		e.c.room = roomOfPrograms
	}
	return e, nil
}

// What Go and C both use is laid out alike.
var (
	_ [unsafe.Offsetof(contract.Shared{}.Instrs)]struct{}    = [unsafe.Offsetof(C.kpl_machine{}.instrs)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Extra)]struct{}     = [unsafe.Offsetof(C.kpl_machine{}.extra)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.StopAt)]struct{}    = [unsafe.Offsetof(C.kpl_machine{}.stop_at)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Budget)]struct{}    = [unsafe.Offsetof(C.kpl_machine{}.budget)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Work)]struct{}      = [unsafe.Offsetof(C.kpl_machine{}.work)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Allowance)]struct{} = [unsafe.Offsetof(C.kpl_machine{}.allowance)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Crossings)]struct{} = [unsafe.Offsetof(C.kpl_machine{}.crossings)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.OuterEnd)]struct{}  = [unsafe.Offsetof(C.kpl_machine{}.outer_end)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.InnerEnd)]struct{}  = [unsafe.Offsetof(C.kpl_machine{}.inner_end)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Expired)]struct{}   = [unsafe.Offsetof(C.kpl_machine{}.expired)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Task)]struct{}      = [unsafe.Offsetof(C.kpl_machine{}.task)]struct{}{}
	_ [unsafe.Offsetof(contract.Shared{}.Begun)]struct{}     = [unsafe.Offsetof(C.kpl_machine{}.begun)]struct{}{}
	_ [unsafe.Offsetof(contract.Answer{}.At)]struct{}        = [unsafe.Offsetof(C.kpl_cpu{}.answer_at) - unsafe.Offsetof(C.kpl_cpu{}.answer)]struct{}{}
	_ [unsafe.Offsetof(contract.Answer{}.Flags)]struct{}     = [unsafe.Offsetof(C.kpl_cpu{}.answer_flags) - unsafe.Offsetof(C.kpl_cpu{}.answer)]struct{}{}
)

func (e *engine) Name() string             { return Engine() }
func (e *engine) Shared() *contract.Shared { return e.sh }

// Aim sets the instruction count before which the run stops. A booted machine's
// timers stop it before that.
func (e *engine) Aim(n uint64) {
	e.limit = n
	if e.b != nil {
		e.c.limit = C.uint64_t(min(n, e.turnEnd()))
		C.kpl_aim(e.c)
		return
	}
	e.sh.StopAt.Store(n)
}

// Here reports whether the caller's thread is inside a hook.
func (e *engine) Here() bool { return C.kpl_here(e.c) != 0 }

// Console returns the bytes that the guest wrote to the console port since the last call. Lines
// stay whole when several tasks print at once.
func (e *engine) Console() []byte {
	C.kpl_console_flush(e.c)
	b := C.GoBytes(unsafe.Pointer(e.c.console), C.int(e.c.nconsole))
	C.kpl_console_clear(e.c)
	return b
}

func (e *engine) NewState() contract.State {
	s := (*C.kpl_state)(C.calloc(1, C.sizeof_kpl_state))
	e.states = append(e.states, s)
	return s
}

func (e *engine) Close() {
	for _, c := range e.cpus {
		c.close()
	}
	for _, s := range e.states {
		C.free(unsafe.Pointer(s))
	}
	for _, r := range e.regions {
		r.free()
	}
	if e.b != nil {
		e.b.free()
	}
	unregister(uintptr(e.c.handle))
	C.kpl_machine_free(e.c)
	e.c, e.cpus, e.regions, e.recent, e.states = nil, nil, nil, nil, nil
}
