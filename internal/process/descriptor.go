package process

import (
	"errors"
	"maps"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// object is a thing that a process can have open: a file, a pipe, a device.
type object interface {
	// read reads up to n bytes at an offset, and moves it. No bytes mean the end. errWait: there is
	// nothing yet.
	read(p *Process, at *int64, n int) ([]byte, error)
	// write writes at a place, which it moves. errWait: there is no room yet; n may be a part.
	write(p *Process, at *int64, b []byte) (n int, err error)
	// ready returns the operations that need no wait (EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR).
	ready(p *Process) uint32
	attributes(p *Process) status
}

// description is an open file (struct file): descriptors of several processes may have one.
type description struct {
	object
	// name is the name by which it was opened, "" if it has no name.
	name  string
	at    int64
	flags uint64 // O_ACCMODE, O_APPEND, O_NONBLOCK
	// last is the name of a directory's entry that was read last, "" before the first; at is its number.
	last string
}

// descriptor is one entry of a process's table.
type descriptor struct {
	*description
	// closes: execve closes it (FD_CLOEXEC).
	closes bool
}

// errWait says that a call has to wait.
var errWait = errors.New("nothing there yet")

// Flags of open.
const (
	openAccess    = 3
	openRead      = 0
	openWriteOnly = 1
	openReadWrite = 2
	openCreate    = 0100
	openExclusive = 0200
	openTruncate  = 01000
	openAppend    = 02000
	openNonBlock  = 04000
	openDirectory = 0200000
	openCloseExec = 02000000
	openKept      = openAccess | openAppend | openNonBlock
)

// maxWrite is the most of one system call, in bytes; a program goes on with the rest.
const maxWrite = 1 << 20

// standard are the descriptors that a program begins with.
func (p *Process) standard() map[int]descriptor {
	return map[int]descriptor{
		0: {description: &description{object: &input{p.c.Stdin}}},
		1: {description: &description{object: &sink{&p.stdout, 1}, flags: openWriteOnly}},
		2: {description: &description{object: &sink{&p.stderr, 2}, flags: openWriteOnly}},
	}
}

// install gives a description the lowest free number from one on.
func (p *Process) install(d *description, from int, closes bool) (uint64, error) {
	for fd := from; fd < bounded.Descriptors; fd++ {
		if _, used := p.open[fd]; !used {
			p.open[fd] = descriptor{d, closes}
			return uint64(fd), nil
		}
	}
	return 0, errno.EMFILE
}

// fd is an open file by its number.
func (p *Process) fd(n uint64) (*description, error) {
	d, ok := p.open[int(int32(n))]
	if !ok {
		return nil, errno.EBADF
	}
	return d.description, nil
}

func (p *Process) close(r *x86.PtRegs) (uint64, error) {
	if _, err := p.fd(r.DI); err != nil {
		return 0, err
	}
	delete(p.open, int(int32(r.DI)))
	return 0, nil
}

func (p *Process) closeRange(r *x86.PtRegs) (uint64, error) {
	const unshare, closeExec = 2, 4
	if r.DX&^(unshare|closeExec) != 0 || uint32(r.DI) > uint32(r.SI) {
		return 0, errno.EINVAL
	}
	if r.DX&unshare != 0 {
		p.group.open = maps.Clone(p.group.open)
	}
	for fd, d := range p.open {
		switch {
		case uint32(fd) < uint32(r.DI) || uint32(fd) > uint32(r.SI):
		case r.DX&closeExec != 0:
			d.closes = true
			p.open[fd] = d
		default:
			delete(p.open, fd)
		}
	}
	return 0, nil
}

func (p *Process) dup(from, to, flags uint64) (uint64, error) {
	d, err := p.fd(from)
	switch {
	case err != nil:
		return 0, err
	case flags&^openCloseExec != 0:
		return 0, errno.EINVAL
	case to >= bounded.Descriptors:
		return 0, errno.EBADF
	}
	p.open[int(to)] = descriptor{d, flags&openCloseExec != 0}
	return to, nil
}

func (p *Process) fcntl(r *x86.PtRegs) (uint64, error) {
	const (
		dupFD = iota
		getFD
		setFD
		getFL
		setFL
		getLock
		setLock
		setLockWait
		setOwner
		getOwner
		dupCloseExec = 1030
		getPipeSize  = 1032
	)
	fd := int(int32(r.DI))
	d, ok := p.open[fd]
	if !ok {
		return 0, errno.EBADF
	}
	switch r.SI {
	case dupFD, dupCloseExec:
		if r.DX >= bounded.Descriptors {
			return 0, errno.EINVAL
		}
		return p.install(d.description, int(r.DX), r.SI == dupCloseExec)
	case getFD:
		if d.closes {
			return 1, nil
		}
		return 0, nil
	case setFD:
		d.closes = r.DX&1 != 0
		p.open[fd] = d
		return 0, nil
	case getFL:
		return d.flags | openLarge, nil
	case setFL:
		const mayChange = openAppend | openNonBlock
		d.flags = d.flags&^mayChange | r.DX&mayChange
		return 0, nil
	case getLock, setLock, setLockWait, setOwner, getOwner:
		return 0, nil // no other program has a lock
	case getPipeSize:
		if _, is := d.object.(*pipeEnd); is {
			return pipeSize, nil
		}
	}
	return 0, errno.EINVAL
}

const openLarge = 0100000

// retrying makes a call that may have to wait until an object is ready for one of the events.
func (p *Process) retrying(d *description, events uint32, r *x86.PtRegs, call func() (uint64, error)) (uint64, error) {
	n, err := call()
	if !errors.Is(err, errWait) {
		return n, err
	}
	if d.flags&openNonBlock != 0 {
		return 0, errno.EAGAIN
	}
	nr := r.AX
	const alwaysTold = pollHup | pollErr
	return p.sleepFor(sleep{ready: func() bool { return d.ready(p)&(events|alwaysTold) != 0 }, retry: call, tried: p.changes, again: &nr}, r)
}

func (p *Process) readInto(d *description, buf x86.Addr, n uint64, at *int64) (uint64, error) {
	if d.flags&openAccess == openWriteOnly {
		return 0, errno.EBADF
	}
	if *at < 0 {
		return 0, errno.EINVAL
	}
	n = min(n, maxWrite)
	if n > 0 && p.present(buf, 1, ProtWrite) != nil {
		return 0, errno.EFAULT // before anything is taken away
	}
	b, err := d.read(p, at, int(n))
	if err != nil {
		return 0, err
	}
	return uint64(len(b)), p.Write(buf, b)
}

func (p *Process) read(r *x86.PtRegs) (uint64, error) {
	d, err := p.fd(r.DI)
	if err != nil {
		return 0, err
	}
	buf, n := x86.Addr(r.SI), r.DX
	return p.retrying(d, pollIn, r, func() (uint64, error) { return p.readInto(d, buf, n, &d.at) })
}

// seekable is a description that has places.
func (p *Process) seekable(fd uint64) (*description, error) {
	d, err := p.fd(fd)
	if err == nil && !d.attributes(p).places() {
		err = errno.ESPIPE
	}
	return d, err
}

func (p *Process) pread(r *x86.PtRegs) (uint64, error) {
	d, err := p.seekable(r.DI)
	if err != nil {
		return 0, err
	}
	at := int64(r.R10)
	return p.readInto(d, x86.Addr(r.SI), r.DX, &at)
}

func (p *Process) writeFrom(d *description, buf x86.Addr, n uint64, at *int64) (uint64, error) {
	if d.flags&openAccess == openRead {
		return 0, errno.EBADF
	}
	if *at < 0 {
		return 0, errno.EINVAL
	}
	b := make([]byte, min(n, maxWrite))
	if err := p.Read(buf, b); err != nil || n == 0 {
		return 0, err
	}
	done, err := d.write(p, at, b)
	return uint64(done), err
}

// writing writes all of a program's bytes, and waits in between.
func (p *Process) writing(d *description, buf x86.Addr, n uint64, r *x86.PtRegs) (uint64, error) {
	done := uint64(0)
	return p.retrying(d, pollOut, r, func() (uint64, error) {
		k, err := p.writeFrom(d, buf.Add(int64(done)), n-done, &d.at)
		done += k
		if errors.Is(err, errno.EPIPE) {
			p.Force(SIGPIPE)
		}
		if done > 0 && (err == nil || !errors.Is(err, errWait) || d.flags&openNonBlock != 0) {
			return done, nil
		}
		return done, err
	})
}

func (p *Process) write(r *x86.PtRegs) (uint64, error) {
	d, err := p.fd(r.DI)
	if err != nil {
		return 0, err
	}
	return p.writing(d, x86.Addr(r.SI), r.DX, r)
}

func (p *Process) pwrite(r *x86.PtRegs) (uint64, error) {
	d, err := p.seekable(r.DI)
	if err != nil {
		return 0, err
	}
	at := int64(r.R10)
	return p.writeFrom(d, x86.Addr(r.SI), r.DX, &at)
}

// vectors are the descriptor and the pieces of an iovec.
func (p *Process) vectors(r *x86.PtRegs) (d *description, list []x86.Range, err error) {
	if d, err = p.fd(r.DI); err != nil {
		return nil, nil, err
	}
	const most = 1024
	if r.DX > most {
		return nil, nil, errno.EINVAL
	}
	for i := range r.DX {
		at, err := p.word(r.SI + 16*i)
		if err != nil {
			return nil, nil, err
		}
		n, err := p.word(r.SI + 16*i + 8)
		if err != nil {
			return nil, nil, err
		}
		if int64(n) < 0 {
			return nil, nil, errno.EINVAL
		}
		if n > 0 {
			list = append(list, x86.Range{Start: x86.Addr(at), End: x86.Addr(at + n)})
		}
	}
	return d, list, nil
}

func (p *Process) readv(r *x86.PtRegs) (uint64, error) {
	d, list, err := p.vectors(r)
	if err != nil {
		return 0, err
	}
	return p.retrying(d, pollIn, r, func() (total uint64, err error) {
		for _, v := range list {
			n, err := p.readInto(d, v.Start, min(v.Len(), maxWrite-total), &d.at)
			if err != nil && total == 0 {
				return 0, err
			}
			if total += n; err != nil || n < v.Len() {
				break
			}
		}
		return total, nil
	})
}

// writev writes pieces until one is not written whole. Those that go into a pipe go as one.
func (p *Process) writev(r *x86.PtRegs) (uint64, error) {
	d, list, err := p.vectors(r)
	if err != nil {
		return 0, err
	}
	if d.flags&openAccess == openRead {
		return 0, errno.EBADF
	}
	var all []byte
	for _, v := range list {
		b := make([]byte, min(v.Len(), uint64(maxWrite-len(all))))
		if err := p.Read(v.Start, b); err != nil {
			if len(all) == 0 {
				return 0, err
			}
			break
		}
		all = append(all, b...)
	}
	done := 0
	return p.retrying(d, pollOut, r, func() (uint64, error) {
		k, err := d.object.write(p, &d.at, all[done:])
		done += k
		if errors.Is(err, errno.EPIPE) {
			p.Force(SIGPIPE)
		}
		if done > 0 && (err == nil || !errors.Is(err, errWait)) {
			return uint64(done), nil
		}
		return uint64(done), err
	})
}

// splice moves bytes between descriptors: sendfile, copy_file_range and splice, without waiting for a whole.
func (p *Process) splice(from, to, n uint64, offset *int64, r *x86.PtRegs) (uint64, error) {
	in, err := p.fd(from)
	if err != nil {
		return 0, err
	}
	out, err := p.fd(to)
	if err != nil {
		return 0, err
	}
	if in.flags&openAccess == openWriteOnly || out.flags&openAccess == openRead {
		return 0, errno.EBADF
	}
	at := &in.at
	if offset != nil {
		at = offset
	}
	const most = 64 << 10
	var rest []byte
	done := uint64(0)
	return p.retrying(out, pollOut, r, func() (uint64, error) {
		if len(rest) == 0 && done == 0 {
			b, err := in.object.read(p, at, int(min(n, most)))
			if errors.Is(err, errWait) {
				return 0, errno.EAGAIN
			}
			if err != nil || len(b) == 0 {
				return 0, err
			}
			rest = b
		}
		k, err := out.object.write(p, &out.at, rest)
		done, rest = done+uint64(k), rest[k:]
		if errors.Is(err, errno.EPIPE) {
			p.Force(SIGPIPE)
		}
		if len(rest) == 0 || err != nil && !errors.Is(err, errWait) && done > 0 {
			return done, nil
		}
		return done, err
	})
}

func (p *Process) sendfile(r *x86.PtRegs) (uint64, error) {
	if r.DX == 0 {
		return p.splice(r.SI, r.DI, r.R10, nil, r)
	}
	w, err := p.word(r.DX)
	if err != nil {
		return 0, err
	}
	at := int64(w)
	if at < 0 {
		return 0, errno.EINVAL
	}
	n, err := p.splice(r.SI, r.DI, r.R10, &at, r)
	if err == nil {
		err = p.putWord(r.DX, uint64(at))
	}
	return n, err
}

func (p *Process) seek(r *x86.PtRegs) (uint64, error) {
	d, err := p.seekable(r.DI)
	if err != nil {
		return 0, err
	}
	var from int64
	switch r.DX {
	case 0:
	case 1:
		from = d.at
	case 2:
		from = int64(d.attributes(p).size)
	default:
		return 0, errno.EINVAL
	}
	if from += int64(r.SI); from < 0 {
		return 0, errno.EINVAL
	}
	d.at, d.last = from, ""
	if f, is := d.object.(*folder); is && from > 0 {
		list := p.entries(f)
		d.last = list[min(from, int64(len(list)))-1].name
	}
	return uint64(from), nil
}
