//go:build cgo && linux && amd64

package emu

// #include <string.h>
// #include "shim.h"
import "C"

import (
	"maps"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/x86"
)

// stopped is a booted machine between two runs, but for its memory.
type stopped struct {
	engines       []unicorn.Context
	apics         []C.kpl_apic
	cr3           []uint64
	instrs, extra C.uint64_t
	tasks         map[x86.Addr]int
	current       int
	lost          error
}

func (m *Machine) stop() (*stopped, error) {
	s := &stopped{instrs: m.c.instrs, extra: m.c.extra, tasks: maps.Clone(m.b.tasks), current: m.curTask, lost: m.b.lost}
	for _, c := range m.cpus {
		ctx, err := c.uc.ContextSave(nil)
		if err != nil {
			return nil, engineError("save a processor", err)
		}
		s.engines, s.apics, s.cr3 = append(s.engines, ctx), append(s.apics, c.c.apic), append(s.cr3, uint64(C.kpl_cr3(c.c)))
	}
	return s, nil
}

func (m *Machine) goBack(s *stopped) error {
	m.c.instrs, m.c.extra = s.instrs, s.extra
	m.b.tasks, m.curTask, m.b.lost = maps.Clone(s.tasks), s.current, s.lost
	m.c.task = C.int(s.current)
	for i, c := range m.cpus {
		if err := c.uc.ContextRestore(s.engines[i]); err != nil {
			return engineError("restore a processor", err)
		}
		c.c.apic = s.apics[i]
		C.kpl_cpu_flush_tlb(c.c)
	}
	return nil
}

// restorePage puts a page of physical memory back. Code of it that was translated
// has to go; where the engine cannot be told which, all goes.
func (b *booted) restorePage(m *Machine, u *C.kpl_undo) {
	host, old := unsafe.Pointer(u.host), unsafe.Pointer(&u.old[0])
	changed := *u.attr&C.KPL_FETCHED != 0 && C.memcmp(host, old, PageSize) != 0
	C.memcpy(host, old, PageSize)
	if !changed {
		return
	}
	for _, c := range m.cpus {
		if at := b.text.Start.Add(int64(uint64(u.page) - b.textPhys)); at.In(b.text.Start, b.text.End) {
			m.drop(c, at, PageSize)
		} else {
			C.kpl_cpu_drop_all(c.c)
		}
	}
}
