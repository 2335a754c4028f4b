package kprobes_test

import (
	"bytes"
	"slices"

	"kprobelab/kprobes"
	"kprobelab/profile"
)

// optModel is docs/spec 4 in a page: places by their offset in over, lists by name, and the text
// that the kernel would write.
type optModel struct {
	c       *profile.Config
	size    map[int64]int
	table   map[int64]*optEntry
	lists   map[string][]*optEntry // head first
	text    []byte
	jump    func(off int64) []byte
	allowed bool
	off     bool // all disarmed
	queued  bool // the worker is scheduled
}

type optEntry struct {
	off       int64
	members   []*optMember // newest first
	ready     bool         // has a detour buffer
	aggr      bool         // an aggregator is in the table
	disabled  bool
	optimized bool
	post      bool
	list      string
	saved     []byte
}

type optMember struct {
	p        *kprobes.Kprobe
	off      int64
	post     bool
	disabled bool
}

func newOptModel(c *profile.Config) *optModel {
	return &optModel{
		c: c, size: overSizes, table: map[int64]*optEntry{}, lists: map[string][]*optEntry{},
		text: []byte(overCode), allowed: true,
	}
}

func (e *optEntry) unused() bool   { return e.ready && e.disabled && len(e.members) == 0 }
func (e *optEntry) disarmed() bool { return e.disabled && e.list == "" }

func (e *optEntry) allDisabled() bool {
	return !slices.ContainsFunc(e.members, func(m *optMember) bool { return !m.disabled })
}

func (e *optEntry) setPost() {
	e.post = slices.ContainsFunc(e.members, func(m *optMember) bool { return m.post })
}

func (m *optModel) move(e *optEntry, list string) {
	if e.list != "" {
		m.lists[e.list] = slices.DeleteFunc(slices.Clone(m.lists[e.list]), func(o *optEntry) bool { return o == e })
	}
	if e.list = list; list != "" {
		m.lists[list] = append([]*optEntry{e}, m.lists[list]...)
	}
}

func (m *optModel) optimize(e *optEntry) {
	if !e.ready || !m.allowed || e.disabled || m.off || e.post {
		return
	}
	for i := int64(1); i < int64(m.size[e.off]); i++ {
		n := m.table[e.off+i]
		if n != nil && !(m.c.Optimize.EnabledNeighboursOnly && n.disabled || n.disarmed()) {
			return
		}
	}
	switch {
	case m.c.Optimize.ClearedWhenQueued && e.optimized:
	case e.list == "unoptimizing":
		e.optimized = true
		m.move(e, "")
	case e.optimized:
	default:
		e.optimized = true
		if e.list == "" {
			m.move(e, "optimizing")
			m.queued = true
		}
	}
}

func (m *optModel) unoptimize(e *optEntry, force bool) {
	was := e.optimized || m.c.Optimize.ClearedWhenQueued && e.list == "unoptimizing"
	if !e.ready || e.disarmed() || !was {
		return
	}
	if m.c.Optimize.ClearedWhenQueued {
		e.optimized = false
	}
	switch {
	case e.list == "unoptimizing":
		if !force {
			return
		}
		m.undo(e)
		if m.c.Optimize.ClearedWhenQueued {
			m.move(e, "")
			if e.disabled {
				m.text[e.off] = overCode[e.off]
			}
		} else {
			m.move(e, "freeing")
		}
	case e.list != "":
		m.move(e, "")
		e.optimized = false
	case force:
		m.undo(e)
	default:
		m.move(e, "unoptimizing")
		m.queued = true
	}
}

func (m *optModel) undo(e *optEntry) {
	e.optimized = false
	m.text[e.off] = 0xcc
	copy(m.text[e.off+1:], e.saved)
}

func (m *optModel) covering(off int64) *optEntry {
	for i := int64(1); i < 19; i++ {
		e := m.table[off-i]
		if e != nil && e.ready && !e.disarmed() && off < e.off+int64(m.size[e.off]) {
			return e
		}
		if e != nil && m.c.Optimize.FirstProbeEndsSearch {
			return nil
		}
	}
	return nil
}

func (m *optModel) arm(e *optEntry) {
	if o := m.covering(e.off); o != nil {
		m.unoptimize(o, true)
	}
	m.text[e.off] = 0xcc
	m.optimize(e)
}

func (m *optModel) disarm(e *optEntry) {
	m.unoptimize(e, m.off)
	if e.list != "" {
		return
	}
	m.text[e.off] = overCode[e.off]
	if o := m.covering(e.off); o != nil {
		m.optimize(o)
	}
}

func (m *optModel) register(p *optMember) {
	e := m.table[p.off]
	if e == nil {
		ready := m.size[p.off] != 0
		e = &optEntry{off: p.off, members: []*optMember{p}, ready: ready, aggr: ready, disabled: p.disabled, post: p.post}
		m.table[p.off] = e
		if !m.off && !e.disabled {
			m.arm(e)
		}
		return
	}
	e.aggr = true
	if e.unused() {
		e.disabled = false
		m.optimize(e)
	}
	if p.post {
		m.unoptimize(e, true)
	}
	e.members = append([]*optMember{p}, e.members...)
	e.setPost()
	if e.disabled && !p.disabled {
		e.disabled = false
		if !m.off {
			m.arm(e)
		}
	}
}

func (m *optModel) disable(p *optMember) {
	e := m.table[p.off]
	if p.disabled {
		return
	}
	if p.disabled = true; e.allDisabled() {
		if !m.off && !e.disabled {
			m.disarm(e)
		}
		e.disabled = true
	}
}

func (m *optModel) enable(p *optMember) {
	e := m.table[p.off]
	if e.aggr || !m.off {
		p.disabled = false
	}
	if !m.off && e.disabled {
		e.disabled = false
		m.arm(e)
	}
}

func (m *optModel) unregister(p *optMember) {
	e := m.table[p.off]
	m.disable(p)
	if len(e.members) == 1 && e.disarmed() {
		delete(m.table, p.off)
		return
	}
	e.members = slices.DeleteFunc(slices.Clone(e.members), func(o *optMember) bool { return o == p })
	e.setPost()
	m.optimize(e)
}

// all calls a function for each entry, in an order that does not matter.
func (m *optModel) all(fn func(*optEntry)) {
	for off := range int64(len(overCode)) {
		if e := m.table[off]; e != nil && !e.disabled {
			fn(e)
		}
	}
}

// workerUndo is the worker's part before the wait, workerDo the one after it.
func (m *optModel) workerUndo() {
	m.queued = false
	for len(m.lists["unoptimizing"]) > 0 {
		e := m.lists["unoptimizing"][0]
		optimized := e.optimized
		m.undo(e)
		e.optimized = optimized
		m.move(e, "freeing")
	}
	for _, e := range m.lists["freeing"] {
		e.optimized = false
		if e.disabled {
			m.text[e.off] = overCode[e.off]
		}
		if e.unused() {
			if m.table[e.off] == e {
				delete(m.table, e.off)
			}
		} else {
			m.move(e, "")
		}
	}
}

func (m *optModel) workerDo() {
	for m.allowed && !m.off && len(m.lists["optimizing"]) > 0 {
		e := m.lists["optimizing"][0]
		e.saved = bytes.Clone(m.text[e.off+1 : e.off+5])
		copy(m.text[e.off:], m.jump(e.off))
		m.move(e, "")
	}
	for len(m.lists["freeing"]) > 0 {
		m.move(m.lists["freeing"][0], "")
	}
}

// wants are the handlers that a hit of a place has to run, in order. Through
// the jump, an aggregator that is disabled runs none, though a member may have
// been enabled while all was disarmed.
func (m *optModel) wants(off int64, jumped bool) (list []*optMember) {
	e := m.table[off]
	if e == nil || jumped && e.disabled {
		return nil
	}
	for _, p := range e.members {
		if !p.disabled {
			list = append(list, p)
		}
	}
	return list
}
