package process

import (
	"encoding/binary"
	"strings"

	"kprobelab/errno"
	"kprobelab/x86"
)

// The program is root of a machine of one processor, in a session of its own, and nothing that it says of itself
// changes that.

// word reads a word of the program's, putWord writes one.
func (p *Process) word(at uint64) (uint64, error) {
	var b [8]byte
	err := p.Read(x86.Addr(at), b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

func (p *Process) putWord(at, v uint64) error {
	return p.Write(x86.Addr(at), binary.LittleEndian.AppendUint64(nil, v))
}

// threeIDs is getresuid and getresgid.
func (p *Process) threeIDs(r *x86.PtRegs) (uint64, error) {
	for _, at := range []uint64{r.DI, r.SI, r.DX} {
		if err := p.Write(x86.Addr(at), make([]byte, 4)); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func (p *Process) prctl(r *x86.PtRegs) (uint64, error) {
	const (
		setDeathSig   = 1
		getDeathSig   = 2
		getDumpable   = 3
		setDumpable   = 4
		setName       = 15
		getName       = 16
		getSeccomp    = 21
		readCapBound  = 23
		setTimerSlack = 29
		getTimerSlack = 30
		setNoNewPrivs = 38
		getNoNewPrivs = 39
		getTHPDisable = 42
		setVMA        = 0x53564d41
	)
	switch r.DI {
	case getDumpable, readCapBound:
		return 1, nil
	case setDeathSig, setDumpable, getSeccomp, setTimerSlack, getNoNewPrivs, setNoNewPrivs, getTHPDisable:
		return 0, nil
	case getDeathSig:
		return 0, p.Write(x86.Addr(r.SI), make([]byte, 4))
	case getTimerSlack:
		return 50000, nil
	case setVMA:
		return 0, errno.EINVAL // as without CONFIG_ANON_VMA_NAME
	case setName:
		name, err := p.text(x86.Addr(r.SI), x86.TaskCommLen)
		if err != nil && errno.Of(err) != errno.EINVAL {
			return 0, err
		}
		if err != nil { // longer: as much as there is room for
			b := make([]byte, x86.TaskCommLen-1)
			if err := p.Read(x86.Addr(r.SI), b); err != nil {
				return 0, err
			}
			name, _, _ = strings.Cut(string(b), "\x00")
		}
		p.comm = name[:min(len(name), x86.TaskCommLen-1)]
		return 0, nil
	case getName:
		b := make([]byte, x86.TaskCommLen)
		copy(b, p.Comm())
		return 0, p.Write(x86.Addr(r.SI), b)
	}
	return 0, errno.EINVAL
}

// affinity is sched_getaffinity: one processor.
func (p *Process) affinity(r *x86.PtRegs) (uint64, error) {
	const size = 8
	if r.SI < size || r.SI%size != 0 {
		return 0, errno.EINVAL
	}
	return size, p.putWord(r.DX, 1)
}

func (p *Process) getCPU(r *x86.PtRegs) (uint64, error) {
	for _, at := range []uint64{r.DI, r.SI} {
		if at != 0 {
			if err := p.Write(x86.Addr(at), make([]byte, 4)); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

func (p *Process) sysinfo(r *x86.PtRegs) (uint64, error) {
	b := make([]byte, 112)
	put := binary.LittleEndian.PutUint64
	put(b[0:], p.Now()/1e9)
	put(b[32:], p.most*PageSize)
	put(b[40:], (p.most-p.pages)*PageSize)
	binary.LittleEndian.PutUint16(b[80:], uint16(len(p.groups)))
	binary.LittleEndian.PutUint32(b[104:], 1)
	return 0, p.Write(x86.Addr(r.DI), b)
}

// times is in ticks of a hundredth of a second, of user time alone.
func (p *Process) times(r *x86.PtRegs) (uint64, error) {
	ticks := p.Now() / 1e7
	if r.DI != 0 {
		b := make([]byte, 32)
		binary.LittleEndian.PutUint64(b, ticks)
		if err := p.Write(x86.Addr(r.DI), b); err != nil {
			return 0, err
		}
	}
	return ticks, nil
}

func (p *Process) rusage(r *x86.PtRegs) (uint64, error) {
	b := make([]byte, usageSize)
	binary.LittleEndian.PutUint64(b[0:], p.Now()/1e9)
	binary.LittleEndian.PutUint64(b[8:], p.Now()%1e9/1e3)
	return 0, p.Write(x86.Addr(r.SI), b)
}

// ioctl: no file is a terminal.
func (p *Process) ioctl(r *x86.PtRegs) (uint64, error) {
	const fioNRead, fioClex, fioNClex, fioNBIO = 0x541b, 0x5451, 0x5450, 0x5421
	fd := int(int32(r.DI))
	d, ok := p.open[fd]
	if !ok {
		return 0, errno.EBADF
	}
	switch r.SI & 0xffffffff {
	case fioNRead:
		n := 0
		switch o := d.object.(type) {
		case *pipeEnd:
			n = len(o.b)
		case *input:
			n = len(o.rest)
		default:
			n = max(d.attributes(p).size-int(d.at), 0)
		}
		return 0, p.Write(x86.Addr(r.DX), binary.LittleEndian.AppendUint32(nil, uint32(n)))
	case fioClex, fioNClex:
		d.closes = r.SI&0xffffffff == fioClex
		p.open[fd] = d
		return 0, nil
	case fioNBIO:
		var b [4]byte
		if err := p.Read(x86.Addr(r.DX), b[:]); err != nil {
			return 0, err
		}
		d.flags &^= openNonBlock
		if b != [4]byte{} {
			d.flags |= openNonBlock
		}
		return 0, nil
	}
	return 0, errno.ENOTTY
}

func (p *Process) getcwd(r *x86.PtRegs) (uint64, error) {
	b := append([]byte(p.cwd), 0)
	if r.SI < uint64(len(b)) {
		return 0, errno.ERANGE
	}
	return uint64(len(b)), p.Write(x86.Addr(r.DI), b)
}

// setMask is umask.
func (p *Process) setMask(r *x86.PtRegs) (uint64, error) {
	was := p.umask
	p.umask = uint32(r.DI) & 0777
	return uint64(was), nil
}

func (p *Process) madvise(r *x86.PtRegs) (uint64, error) {
	const dontNeed, free, dontFork, doFork = 4, 8, 10, 11
	at, err := span(r.DI, r.SI)
	if err != nil || at.Len() == 0 {
		return 0, err
	}
	switch r.DX {
	case dontNeed:
		return 0, p.forget(at)
	case dontFork, doFork:
		list, err := p.split(at)
		if err != nil {
			return 0, err
		}
		for _, v := range list {
			v.Alone = r.DX == dontFork
		}
		p.join()
	case free: // it may stay
	}
	return 0, nil
}
