package own

import (
	"encoding/binary"

	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// contextFlags is the function that makes the flags of a record (from 5.12 on).
const contextFlags = "tracing_gen_ctx_irq_test"

// resched finds the bits of a task's flags by which it is asked to give up its CPU: it
// sets one after the other, and looks which flag the kernel's record gets.
func (m *measuring) resched() error {
	at, ok := kimage.CurrentTask(m.img.Lookup)
	if !ok || !m.Has(contextFlags) {
		return ErrNotThere
	}
	var word [8]byte
	if err := m.m.ReadMem(m.m.GSBase(0)+at, word[:]); err != nil {
		return ErrNotThere
	}
	task := x86.Addr(binary.LittleEndian.Uint64(word[:]))
	var old [8]byte
	if err := m.m.ReadMem(task, old[:]); err != nil {
		return ErrNotThere
	}
	defer func() { _ = m.m.WriteMem(task, old[:]) }()
	with := func(flags uint64) (uint64, error) {
		if err := m.m.WriteMem(task, binary.LittleEndian.AppendUint64(nil, flags)); err != nil {
			return 0, err
		}
		v, err := m.Call(contextFlags, 0)
		return v >> 16 & 0xff, err
	}
	none, err := with(0)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		field string
		flag  uint64
	}{{"Tracing.ReschedBit", profile.TraceNeedResched}, {"Tracing.LazyReschedBit", profile.TraceLazyResched}} {
		bit := 0
		for b := range 32 {
			v, err := with(1 << b)
			if err != nil {
				return err
			}
			if v&^none == c.flag {
				bit = b
				break
			}
		}
		m.say(c.field, bit, "%s with each flag of a task alone", contextFlags)
	}
	return nil
}
