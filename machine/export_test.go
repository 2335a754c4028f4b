package machine

import (
	"kprobelab/x86"
)

// What the tests look at from outside.
const (
	LastPage    = lastPage
	VmallocBase = vmallocBase
	ExecSize    = execSize
	UserEnd     = x86.UserEnd
)

func (m *Machine) Source() Source                         { return m.src }
func (m *Machine) OuterEnd() x86.Addr                     { return m.sh.OuterEnd }
func (m *Machine) InnerEnd() x86.Addr                     { return m.sh.InnerEnd }
func (m *Machine) HeapNext() x86.Addr                     { return m.heap.next }
func (m *Machine) Work() uint64                           { return m.sh.Work }
func (m *Machine) SetAllowed(n uint64)                    { m.allowed = n }
func (m *Machine) Stale(cpu int) []x86.Range              { return m.cpus[cpu].stale }
func (m *Machine) SavedPages() int                        { return m.engine.Saved() }
func (m *Machine) Taken() bool                            { return m.taken.Load() }
func (m *Machine) Function(name string) (x86.Addr, error) { return m.function(name) }
