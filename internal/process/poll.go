package process

import (
	"encoding/binary"
	"maps"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Events of poll and epoll.
const (
	pollIn    = 1
	pollOut   = 4
	pollErr   = 8
	pollHup   = 0x10
	pollNval  = 0x20
	pollKnown = pollIn | pollOut | pollErr | pollHup
)

// waitReady makes a call that counts ready objects, and waits until one is ready or the timeout has
// passed. timeout is in nanoseconds, negative for ever.
func (p *Process) waitReady(r *x86.PtRegs, timeout int64, call func() (uint64, error)) (uint64, error) {
	n, err := call()
	if n > 0 || err != nil || timeout == 0 {
		return n, err
	}
	s := sleep{
		ready: func() bool { k, err := call(); return k > 0 || err != nil }, retry: call,
	}
	if timeout > 0 {
		s.until = p.until(uint64(timeout), false, false)
	}
	return p.sleepFor(s, r)
}

const maxPoll = bounded.Descriptors

// pollAt is poll of an array of struct pollfd. What waits looks at the process's own descriptors.
func (p *Process) pollAt(at, n uint64, timeout int64, r *x86.PtRegs) (uint64, error) {
	if n > maxPoll {
		return 0, errno.EINVAL
	}
	const size = 8
	b := make([]byte, size*n)
	if err := p.Read(x86.Addr(at), b); err != nil && n > 0 {
		return 0, err
	}
	g := p.group
	return p.waitReady(r, timeout, func() (uint64, error) {
		count := uint64(0)
		for i := range int(n) {
			e := b[size*i:]
			fd, want, got := int(int32(binary.LittleEndian.Uint32(e))), uint32(binary.LittleEndian.Uint16(e[4:])), uint32(0)
			if d, ok := g.open[fd]; ok {
				got = d.ready(p) & (want | pollErr | pollHup)
			} else if fd >= 0 {
				got = pollNval
			}
			binary.LittleEndian.PutUint16(e[6:], uint16(got))
			if got != 0 {
				count++
			}
		}
		return count, g.Write(x86.Addr(at), b)
	})
}

func (p *Process) poll(r *x86.PtRegs) (uint64, error) {
	ms := int64(int32(r.DX))
	return p.pollAt(r.DI, r.SI, ms*1e6, r)
}

// timeout reads the timeout of ppoll and pselect: a struct timespec, or -1 for ever.
func (p *Process) timeout(at uint64) (int64, error) {
	if at == 0 {
		return -1, nil
	}
	n, err := p.timeAt(at)
	return int64(n), err
}

func (p *Process) ppoll(r *x86.PtRegs) (uint64, error) {
	ns, err := p.timeout(r.DX)
	if err != nil {
		return 0, err
	}
	return p.pollAt(r.DI, r.SI, ns, r)
}

// selects is select with a time in nanoseconds.
func (p *Process) selects(r *x86.PtRegs, ns int64) (uint64, error) {
	n := int(int32(r.DI))
	if n < 0 {
		return 0, errno.EINVAL
	}
	n = min(n, bounded.Descriptors)
	sets := []struct {
		at     uint64
		events uint32
	}{{r.SI, pollIn | pollHup | pollErr}, {r.DX, pollOut | pollErr}, {r.R10, 0}}
	size := (n + 63) / 64 * 8
	g, in := p.group, make([][]byte, len(sets))
	for i, s := range sets {
		if s.at == 0 {
			continue
		}
		in[i] = make([]byte, size)
		if err := p.Read(x86.Addr(s.at), in[i]); err != nil && size > 0 {
			return 0, err
		}
		for fd := range n {
			if _, ok := g.open[fd]; !ok && in[i][fd/8]>>(fd%8)&1 != 0 {
				return 0, errno.EBADF
			}
		}
	}
	return p.waitReady(r, ns, func() (uint64, error) {
		count := uint64(0)
		for i, s := range sets {
			if s.at == 0 {
				continue
			}
			out := make([]byte, size)
			for fd := range n {
				d, ok := g.open[fd]
				if ok && in[i][fd/8]>>(fd%8)&1 != 0 && d.ready(p)&s.events != 0 {
					out[fd/8] |= 1 << (fd % 8)
					count++
				}
			}
			if err := g.Write(x86.Addr(s.at), out); err != nil && size > 0 {
				return 0, err
			}
		}
		return count, nil
	})
}

func (p *Process) pselect(r *x86.PtRegs) (uint64, error) {
	ns, err := p.timeout(r.R8)
	if err != nil {
		return 0, err
	}
	return p.selects(r, ns)
}

// selectOld is select, which has a struct timeval.
func (p *Process) selectOld(r *x86.PtRegs) (uint64, error) {
	if r.R8 == 0 {
		return p.selects(r, -1)
	}
	sec, err := p.word(r.R8)
	if err != nil {
		return 0, err
	}
	us, err := p.word(r.R8 + 8)
	if err != nil {
		return 0, err
	}
	if int64(sec) < 0 || us >= 1e6 {
		return 0, errno.EINVAL
	}
	if sec >= forever/1_000_000_000 {
		return p.selects(r, -1)
	}
	return p.selects(r, int64(sec*1e9+us*1e3))
}

// event is an eventfd.
type event struct {
	count     uint64
	semaphore bool
	inode     uint64
}

func (o *event) read(_ *Process, _ *int64, n int) ([]byte, error) {
	if n < 8 {
		return nil, errno.EINVAL
	}
	if o.count == 0 {
		return nil, errWait
	}
	v := o.count
	if o.semaphore {
		v = 1
	}
	o.count -= v
	return binary.LittleEndian.AppendUint64(nil, v), nil
}

func (o *event) write(_ *Process, _ *int64, b []byte) (int, error) {
	if len(b) < 8 {
		return 0, errno.EINVAL
	}
	v := binary.LittleEndian.Uint64(b)
	if v == ^uint64(0) {
		return 0, errno.EINVAL
	}
	if o.count+v < v || o.count+v == ^uint64(0) {
		return 0, errWait
	}
	o.count += v
	return 8, nil
}

func (o *event) ready(*Process) uint32 {
	if o.count == 0 {
		return pollOut
	}
	return pollIn | pollOut
}
func (o *event) attributes(*Process) status { return status{mode: 0600, inode: o.inode} }

func (p *Process) eventFD(count, flags uint64) (uint64, error) {
	const semaphore = 1
	if flags&^(openCloseExec|openNonBlock|semaphore) != 0 {
		return 0, errno.EINVAL
	}
	p.lastInode++
	d := &description{object: &event{uint64(uint32(count)), flags&semaphore != 0, p.lastInode}, flags: openReadWrite | flags&openNonBlock}
	return p.install(d, 0, flags&openCloseExec != 0)
}

// interest is the entry of one descriptor in an epoll instance: the events to report, and the program's data.
type interest struct {
	d      *description
	events uint32
	data   uint64
	// told are the events that were reported (EPOLLET, EPOLLONESHOT) and have not ended since.
	told uint32
}

// epoll is an epoll instance.
type epoll struct {
	list  map[int]*interest
	inode uint64
}

func (o *epoll) read(*Process, *int64, int) ([]byte, error)  { return nil, errno.EINVAL }
func (o *epoll) write(*Process, *int64, []byte) (int, error) { return 0, errno.EINVAL }
func (o *epoll) ready(p *Process) uint32 {
	for _, i := range o.list {
		if i.pending(p) != 0 {
			return pollIn
		}
	}
	return 0
}
func (o *epoll) attributes(*Process) status { return status{mode: 0600, inode: o.inode} }

const (
	epollEdge = 1 << 31
	epollOnce = 1 << 30
)

// pending returns the events to report.
func (i *interest) pending(p *Process) uint32 {
	now := i.d.ready(p) & (i.events&pollKnown | pollErr | pollHup)
	if i.events&(epollEdge|epollOnce) != 0 {
		i.told &= now
		now &^= i.told
	}
	return now
}

func (p *Process) epollCreate(flags uint64) (uint64, error) {
	if flags&^openCloseExec != 0 {
		return 0, errno.EINVAL
	}
	p.lastInode++
	return p.install(&description{object: &epoll{map[int]*interest{}, p.lastInode}, flags: openReadWrite}, 0, flags&openCloseExec != 0)
}

func (p *Process) epollOf(fd uint64) (*epoll, error) {
	d, err := p.fd(fd)
	if err != nil {
		return nil, err
	}
	o, is := d.object.(*epoll)
	if !is {
		return nil, errno.EINVAL
	}
	return o, nil
}

func (p *Process) epollCtl(r *x86.PtRegs) (uint64, error) {
	const add, remove, modify = 1, 2, 3
	o, err := p.epollOf(r.DI)
	if err != nil {
		return 0, err
	}
	d, err := p.fd(r.DX)
	if err != nil {
		return 0, err
	}
	var b [12]byte
	if err := p.Read(x86.Addr(r.R10), b[:]); r.SI != remove && err != nil {
		return 0, err
	}
	fd := int(int32(r.DX))
	i := &interest{d: d, events: binary.LittleEndian.Uint32(b[:]), data: binary.LittleEndian.Uint64(b[4:])}
	watches := p.forgetClosed()
	had := o.list[fd]
	switch a := d.attributes(p); {
	case a.places():
		return 0, errno.EPERM // files are always ready
	case d.object == object(o):
		return 0, errno.EINVAL
	case r.SI == add && had != nil && had.d == d:
		return 0, errno.EEXIST
	case r.SI != add && (had == nil || had.d != d):
		return 0, errno.ENOENT
	case r.SI == add && !p.mayNest(o, d):
		return 0, errno.ELOOP
	case r.SI == add && watches >= bounded.Epolls:
		return 0, errno.ENOSPC
	case r.SI == remove:
		delete(o.list, fd)
	case r.SI == add || r.SI == modify:
		o.list[fd] = i
	default:
		return 0, errno.EINVAL
	}
	return 0, nil
}

// mayNest reports whether the epoll instance can have the descriptor in its list. An instance can
// watch instances that watch none: two levels, where the kernel has five. So none watches itself,
// and the search for ready ones has a bound.
func (p *Process) mayNest(o *epoll, d *description) bool {
	inner, is := d.object.(*epoll)
	if !is {
		return true
	}
	if inner.watchesOne(nil) {
		return false
	}
	for other := range p.opened() {
		if outer, is := other.object.(*epoll); is && outer.watchesOne(o) {
			return false
		}
	}
	return true
}

// watchesOne reports whether the list has this instance, or any if which is nil.
func (o *epoll) watchesOne(which *epoll) bool {
	for _, i := range o.list {
		if inner, is := i.d.object.(*epoll); is && (which == nil || inner == which) {
			return true
		}
	}
	return false
}

// opened returns the open files of all processes.
func (p *Process) opened() map[*description]bool {
	set := map[*description]bool{}
	for _, g := range p.groups {
		for _, d := range g.open {
			set[d.description] = true
		}
	}
	return set
}

// forgetClosed takes files that no process has open any more out of all lists, as the
// kernel does at the last close. Otherwise lists would keep the pipes that a program has closed. It returns how many
// are left in all lists.
func (p *Process) forgetClosed() (watches int) {
	open := p.opened()
	for d := range open {
		if o, is := d.object.(*epoll); is {
			maps.DeleteFunc(o.list, func(_ int, i *interest) bool { return !open[i.d] })
			watches += len(o.list)
		}
	}
	return watches
}

func (p *Process) epollWait(r *x86.PtRegs, ns int64) (uint64, error) {
	o, err := p.epollOf(r.DI)
	most := int(int32(r.DX))
	switch {
	case err != nil:
		return 0, err
	case most <= 0:
		return 0, errno.EINVAL
	}
	p.forgetClosed()
	s, at := p.Space, r.SI
	call := func(tell bool) (uint64, error) {
		var b []byte
		n := 0
		for _, fd := range slices.Sorted(maps.Keys(o.list)) {
			i := o.list[fd]
			now := i.pending(p)
			if now == 0 || n == most {
				continue
			}
			n++
			if tell {
				i.told |= now
				b = binary.LittleEndian.AppendUint32(b, now)
				b = binary.LittleEndian.AppendUint64(b, i.data)
			}
		}
		if n == 0 || !tell {
			return uint64(n), nil
		}
		return uint64(n), s.Write(x86.Addr(at), b)
	}
	n, err := call(true)
	if n > 0 || err != nil || ns == 0 {
		return n, err
	}
	w := sleep{
		ready: func() bool { k, _ := call(false); return k > 0 },
		retry: func() (uint64, error) { return call(true) },
	}
	if ns > 0 {
		w.until = p.until(uint64(ns), false, false)
	}
	return p.sleepFor(w, r)
}
