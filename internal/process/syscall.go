package process

import (
	"encoding/binary"

	"kprobelab/errno"
	"kprobelab/x86"
)

// systemCall answers the syscall instruction at regs.IP.
func (p *Process) systemCall(regs *x86.PtRegs) {
	p.Syscalls++
	if p.c.Tracer != nil && p.c.Tracer.Syscall(regs) {
		return
	}
	nr := regs.AX
	regs.IP += 2
	regs.CX, regs.R11 = regs.IP, regs.Flags
	if nr == callSigReturn {
		p.sigReturn(regs)
		return
	}
	call, ok := calls[nr]
	if !ok {
		p.Unknown[nr]++
		regs.AX = failed(errno.ENOSYS)
		return
	}
	n, err := call(p, regs)
	switch {
	case err != nil:
		regs.AX = failed(errno.Of(err))
	case p.exit == nil && p.then == nil:
		regs.AX = n
	}
}

func failed(e errno.Errno) uint64 { return uint64(-int64(e)) }

// callSigReturn is rt_sigreturn, which has no result.
const callSigReturn = 15

type call func(p *Process, r *x86.PtRegs) (uint64, error)

// nothing is what succeeds and changes nothing that the program could see.
func nothing(*Process, *x86.PtRegs) (uint64, error) { return 0, nil }

func number(n uint64) call { return func(*Process, *x86.PtRegs) (uint64, error) { return n, nil } }

func refuse(e errno.Errno) call { return func(*Process, *x86.PtRegs) (uint64, error) { return 0, e } }

// calls are the system calls that are answered, by number
// (arch/x86/entry/syscalls/syscall_64.tbl).
var calls map[uint64]call

func init() {
	calls = map[uint64]call{
		0:  (*Process).read,
		1:  (*Process).write,
		2:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.openAt(r.DI, r.SI) },
		3:  (*Process).close,
		4:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statName(r.DI, r.SI) },
		5:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statFD(r.DI, r.SI) },
		6:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statName(r.DI, r.SI) },
		8:  (*Process).seek,
		9:  (*Process).mmap,
		10: (*Process).mprotect,
		11: (*Process).munmap,
		12: func(p *Process, r *x86.PtRegs) (uint64, error) { return uint64(p.setBreak(x86.Addr(r.DI))), nil },
		13: (*Process).sigAction,
		14: (*Process).sigMask,
		16: refuse(errno.ENOTTY),
		17: (*Process).pread,
		19: (*Process).readv,
		20: (*Process).writev,
		21: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.access(r.DI, r.SI) },
		28: nothing, // madvise
		24: (*Process).yield,
		34: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.suspend(p.mask, r) }, // pause
		35: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.nanosleep(r, r.DI, false, 1) },
		39: func(p *Process, _ *x86.PtRegs) (uint64, error) { return uint64(p.PID()), nil },
		56: (*Process).clone,
		57: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.newTask(newTask{exitSignal: sigCHLD}, r) },
		58: func(p *Process, r *x86.PtRegs) (uint64, error) {
			return p.newTask(newTask{flags: cloneVM | cloneVfork, exitSignal: sigCHLD}, r)
		},
		59: (*Process).execve,
		60: (*Process).exitThread,
		61: (*Process).wait4,
		62: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.kill(r.DI, r.SI) },
		63: (*Process).uname,
		79: (*Process).getcwd,
		89: refuse(errno.EINVAL), // readlink: no name is a link
		96: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.putTime(r.DI, 1000) },

		102: number(0), 104: number(0), 107: number(0), 108: number(0), // getuid, getgid, geteuid, getegid
		110: (*Process).parentPID,
		127: (*Process).sigPending,
		129: func(p *Process, r *x86.PtRegs) (uint64, error) {
			return p.queueInfo(p.byPID(int(int32(r.DI))), nil, r.SI, r.DX)
		},
		130: (*Process).sigSuspend,
		131: (*Process).sigAltStack,
		158: (*Process).archPrctl,
		186: func(p *Process, _ *x86.PtRegs) (uint64, error) { return uint64(p.tid), nil },
		200: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.killThread(r.DI, r.SI) },
		201: (*Process).time,
		202: (*Process).futex,
		218: (*Process).setTIDAddress,
		228: (*Process).clockGettime,
		230: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.nanosleep(r, r.DX, r.SI&1 != 0, r.DI) },
		231: (*Process).exitWith,
		234: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.killThreadOf(r.DI, r.SI, r.DX) },
		257: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.openAt(r.SI, r.DX) },
		262: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statAt(r) },
		267: refuse(errno.EINVAL),
		269: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.access(r.SI, r.DX) },
		273: nothing, // set_robust_list
		297: (*Process).queueThreadInfo,
		302: (*Process).prlimit,
		318: (*Process).getrandom,
		435: (*Process).clone3,
	}
}

func (p *Process) exitWith(r *x86.PtRegs) (uint64, error) {
	p.end(Exit{Code: int(r.DI & 0xff)}, r)
	return 0, nil
}

func (p *Process) archPrctl(r *x86.PtRegs) (uint64, error) {
	const setFS, getFS = 0x1002, 0x1003
	switch r.DI {
	case setFS:
		if r.SI >= uint64(userTop) {
			return 0, errno.EPERM
		}
		r.AX = 0
		p.setBase(r.SI, r)
		return 0, nil
	case getFS:
		return 0, p.Write(x86.Addr(r.SI), binary.LittleEndian.AppendUint64(nil, p.fsBase))
	}
	return 0, errno.EINVAL
}

func (p *Process) mmap(r *x86.PtRegs) (uint64, error) {
	const shared, fixed, anonymous, fixedNoReplace = 1, 0x10, 0x20, 0x100000
	v := Mapping{Prot: int(r.DX & 7)}
	if r.SI == 0 || r.R9%PageSize != 0 {
		return 0, errno.EINVAL
	}
	if r.R10&(anonymous|shared) == anonymous|shared {
		v.shared = &frames{}
	}
	if r.R10&anonymous == 0 {
		f := p.open[int(int32(r.R8))]
		switch {
		case f == nil:
			return 0, errno.EBADF
		case r.R10&shared != 0 && v.Prot&ProtWrite != 0:
			return 0, errno.EACCES // no file is open for writing
		case r.R9+r.SI < r.R9:
			return 0, errno.EINVAL
		}
		v.File, v.Offset = f.file, r.R9
	}
	at := x86.Addr(r.DI)
	var m *Mapping
	var err error
	switch {
	case r.R10&(fixed|fixedNoReplace) == 0:
		m, err = p.MapFree(at, v, r.SI)
	case at%PageSize != 0 || r.SI > uint64(userTop):
		return 0, errno.EINVAL
	default:
		v.Range = x86.Range{Start: at, End: pageUp(at.Add(int64(r.SI)))}
		if r.R10&fixedNoReplace != 0 && !p.free(v.Range) {
			return 0, errno.EEXIST
		}
		m, err = p.Map(v)
	}
	if err != nil {
		return 0, err
	}
	p.mapped(m)
	return uint64(m.Start), nil
}

// span is the pages of an address and a length, as mprotect and munmap take them.
func span(at, n uint64) (x86.Range, error) {
	r := x86.Range{Start: x86.Addr(at), End: pageUp(x86.Addr(at + n))}
	if at%PageSize != 0 || n > uint64(userTop) || r.End > userTop {
		return r, errno.EINVAL
	}
	return r, nil
}

func (p *Process) mprotect(r *x86.PtRegs) (uint64, error) {
	at, err := span(r.DI, r.SI)
	if err != nil || r.SI == 0 {
		return 0, err
	}
	return 0, p.protect(at, int(r.DX&7))
}

func (p *Process) munmap(r *x86.PtRegs) (uint64, error) {
	at, err := span(r.DI, r.SI)
	if err != nil || r.SI == 0 {
		return 0, errno.EINVAL
	}
	return 0, p.Unmap(at)
}

func (p *Process) uname(r *x86.PtRegs) (uint64, error) {
	const field = 65
	b := make([]byte, 6*field)
	for i, s := range []string{"Linux", "kprobelab", p.c.Release, "#1", "x86_64", "(none)"} {
		copy(b[i*field:(i+1)*field-1], s)
	}
	return 0, p.Write(x86.Addr(r.DI), b)
}

func (p *Process) getcwd(r *x86.PtRegs) (uint64, error) {
	if r.SI < 2 {
		return 0, errno.ERANGE
	}
	return 2, p.Write(x86.Addr(r.DI), []byte{'/', 0})
}

// epoch is the time of day when a program begins: 2026-01-01.
const epoch = 1767225600

// putTime writes seconds and what is beside them, in units of so many nanoseconds.
func (p *Process) putTime(at uint64, unit uint64) (uint64, error) {
	now := p.Now()
	b := binary.LittleEndian.AppendUint64(nil, epoch+now/1e9)
	return 0, p.Write(x86.Addr(at), binary.LittleEndian.AppendUint64(b, now%1e9/unit))
}

func (p *Process) clockGettime(r *x86.PtRegs) (uint64, error) {
	if r.DI > 11 {
		return 0, errno.EINVAL
	}
	return p.putTime(r.SI, 1)
}

func (p *Process) time(r *x86.PtRegs) (uint64, error) {
	now := epoch + p.Now()/1e9
	if r.DI != 0 {
		if err := p.Write(x86.Addr(r.DI), binary.LittleEndian.AppendUint64(nil, now)); err != nil {
			return 0, err
		}
	}
	return now, nil
}

func (p *Process) prlimit(r *x86.PtRegs) (uint64, error) {
	const stack, core, infinity = 3, 4, ^uint64(0)
	switch {
	case r.SI > 15:
		return 0, errno.EINVAL
	case r.DX != 0:
		return 0, errno.EPERM
	case r.R10 == 0:
		return 0, nil
	}
	soft := infinity
	switch r.SI {
	case stack:
		soft = stackSize
	case core:
		soft = 0
	}
	b := binary.LittleEndian.AppendUint64(nil, soft)
	return 0, p.Write(x86.Addr(r.R10), binary.LittleEndian.AppendUint64(b, infinity))
}

func (p *Process) getrandom(r *x86.PtRegs) (uint64, error) {
	const most = 256
	b := make([]byte, min(r.SI, most))
	p.fill(b)
	return uint64(len(b)), p.Write(x86.Addr(r.DI), b)
}
