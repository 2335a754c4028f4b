package process

import (
	"encoding/binary"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
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
		p.unknown(nr)
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

// UnknownRest is the number under which system calls that do not exist are counted, once bounded.UnknownCalls others are.
const UnknownRest uint64 = 1<<64 - 1

// unknown counts a system call that is answered ENOSYS.
func (p *Process) unknown(nr uint64) {
	if _, counted := p.Unknown[nr]; !counted && len(p.Unknown) >= bounded.UnknownCalls {
		nr = UnknownRest
	}
	p.Unknown[nr]++
}

func failed(e errno.Errno) uint64 { return uint64(-int64(e)) }

// callSigReturn is rt_sigreturn, which has no result.
const callSigReturn = 15

type call func(p *Process, r *x86.PtRegs) (uint64, error)

// nothing is a call that succeeds and has no effect that the program could see.
func nothing(*Process, *x86.PtRegs) (uint64, error) { return 0, nil }

func number(n uint64) call { return func(*Process, *x86.PtRegs) (uint64, error) { return n, nil } }

func refuse(e errno.Errno) call { return func(*Process, *x86.PtRegs) (uint64, error) { return 0, e } }

// calls are the system calls that are answered, by number
// (arch/x86/entry/syscalls/syscall_64.tbl).
var calls map[uint64]call

func init() {
	const cwd = 1<<64 + atCWD
	calls = map[uint64]call{
		0:  (*Process).read,
		1:  (*Process).write,
		2:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.openAt(cwd, r.DI, r.SI, r.DX) },
		3:  (*Process).close,
		4:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statName(cwd, r.DI, 0, r.SI) },
		5:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statFD(r.DI, r.SI) },
		6:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statName(cwd, r.DI, noFollow, r.SI) },
		7:  (*Process).poll,
		8:  (*Process).seek,
		9:  (*Process).mmap,
		10: (*Process).mprotect,
		11: (*Process).munmap,
		12: func(p *Process, r *x86.PtRegs) (uint64, error) { return uint64(p.setBreak(x86.Addr(r.DI))), nil },
		13: (*Process).sigAction,
		14: (*Process).sigMask,
		16: (*Process).ioctl,
		17: (*Process).pread,
		18: (*Process).pwrite,
		19: (*Process).readv,
		20: (*Process).writev,
		21: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.access(cwd, r.DI, r.SI, 0) },
		22: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.makePipe(r.DI, 0) },
		23: (*Process).selectOld,
		24: (*Process).yield,
		25: (*Process).mremap,
		26: nothing, // msync
		28: (*Process).madvise,
		32: func(p *Process, r *x86.PtRegs) (uint64, error) {
			d, err := p.fd(r.DI)
			if err != nil {
				return 0, err
			}
			return p.install(d, 0, false)
		},
		33: func(p *Process, r *x86.PtRegs) (uint64, error) {
			if _, err := p.fd(r.DI); err == nil && int32(r.DI) == int32(r.SI) {
				return r.SI, nil
			}
			return p.dup(r.DI, r.SI, 0)
		},
		34: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.suspend(p.mask, r) }, // pause
		35: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.nanosleep(r, r.DI, false, 1) },
		39: func(p *Process, _ *x86.PtRegs) (uint64, error) { return uint64(p.PID()), nil },
		40: (*Process).sendfile,
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
		72: (*Process).fcntl,
		73: (*Process).onOpen, // flock
		74: (*Process).onOpen, // fsync
		75: (*Process).onOpen, // fdatasync
		77: func(p *Process, r *x86.PtRegs) (uint64, error) {
			d, err := p.fd(r.DI)
			if err != nil {
				return 0, err
			}
			return p.truncate(d, r.SI)
		},
		79: (*Process).getcwd,
		80: func(p *Process, r *x86.PtRegs) (uint64, error) {
			name, err := p.name(cwd, r.DI)
			if err != nil {
				return 0, err
			}
			return p.chdir(name)
		},
		81: func(p *Process, r *x86.PtRegs) (uint64, error) {
			name, err := p.absolute(r.DI, ".")
			if err != nil {
				return 0, err
			}
			return p.chdir(name)
		},
		82: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.rename(cwd, r.DI, cwd, r.SI, 0) },
		83: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.mkdir(cwd, r.DI) },
		84: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.unlink(cwd, r.DI, true) },
		85: func(p *Process, r *x86.PtRegs) (uint64, error) {
			return p.openAt(cwd, r.DI, openWriteOnly|openCreate|openTruncate, r.SI)
		},
		86:  refuse(errno.EPERM), // link
		87:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.unlink(cwd, r.DI, false) },
		88:  refuse(errno.EPERM), // symlink
		89:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.readlink(cwd, r.DI, r.SI, r.DX) },
		90:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.chmod(cwd, r.DI, r.SI) },
		91:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.fchmod(r.DI, r.SI) },
		93:  (*Process).onOpen, // fchown
		95:  (*Process).setMask,
		96:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.putTime(r.DI, 1000) },
		97:  func(p *Process, r *x86.PtRegs) (uint64, error) { return p.rlimit(r.DI, r.SI) },
		98:  (*Process).rusage,
		99:  (*Process).sysinfo,
		100: (*Process).times,

		102: number(0), 104: number(0), 107: number(0), 108: number(0), // getuid, getgid, geteuid, getegid
		105: number(0), 106: number(0), // setuid, setgid
		109: nothing, // setpgid
		110: (*Process).parentPID,
		111: number(FirstPID),    // getpgrp
		112: refuse(errno.EPERM), // setsid
		115: number(0),           // getgroups
		116: nothing,             // setgroups
		118: (*Process).threeIDs, 120: (*Process).threeIDs,
		121: number(FirstPID), 124: number(FirstPID), // getpgid, getsid
		127: (*Process).sigPending,
		129: func(p *Process, r *x86.PtRegs) (uint64, error) {
			return p.queueInfo(p.byPID(int(int32(r.DI))), nil, r.SI, r.DX)
		},
		130: (*Process).sigSuspend,
		131: (*Process).sigAltStack,
		135: number(0), // personality
		137: func(p *Process, r *x86.PtRegs) (uint64, error) {
			if _, err := p.attributesAt(cwd, r.DI, 0); err != nil {
				return 0, err
			}
			return p.statfs(r.SI)
		},
		138: func(p *Process, r *x86.PtRegs) (uint64, error) {
			if _, err := p.fd(r.DI); err != nil {
				return 0, err
			}
			return p.statfs(r.SI)
		},
		157: (*Process).prctl,
		158: (*Process).archPrctl,
		160: nothing, // setrlimit
		186: func(p *Process, _ *x86.PtRegs) (uint64, error) { return uint64(p.tid), nil },
		191: refuse(errno.EOPNOTSUPP), 192: refuse(errno.EOPNOTSUPP), 193: refuse(errno.EOPNOTSUPP), // getxattr
		194: refuse(errno.EOPNOTSUPP), 195: refuse(errno.EOPNOTSUPP), 196: refuse(errno.EOPNOTSUPP), // listxattr
		200: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.killThread(r.DI, r.SI) },
		201: (*Process).time,
		202: (*Process).futex,
		203: nothing, // sched_setaffinity
		204: (*Process).affinity,
		217: (*Process).getdents,
		218: (*Process).setTIDAddress,
		221: (*Process).onOpen, // fadvise64
		228: (*Process).clockGettime,
		229: (*Process).clockResolution,
		230: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.nanosleep(r, r.DX, r.SI&1 != 0, r.DI) },
		231: (*Process).exitWith,
		232: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.epollWait(r, int64(int32(r.R10))*1e6) },
		233: (*Process).epollCtl,
		234: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.killThreadOf(r.DI, r.SI, r.DX) },
		257: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.openAt(r.DI, r.SI, r.DX, r.R10) },
		258: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.mkdir(r.DI, r.SI) },
		262: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.statName(r.DI, r.SI, r.R10, r.DX) },
		263: func(p *Process, r *x86.PtRegs) (uint64, error) {
			const removeDir = 0x200
			return p.unlink(r.DI, r.SI, r.DX&removeDir != 0)
		},
		264: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.rename(r.DI, r.SI, r.DX, r.R10, 0) },
		265: refuse(errno.EPERM), 266: refuse(errno.EPERM), // linkat, symlinkat
		267: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.readlink(r.DI, r.SI, r.DX, r.R10) },
		268: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.chmod(r.DI, r.SI, r.DX) },
		269: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.access(r.DI, r.SI, r.DX, 0) },
		270: (*Process).pselect,
		271: (*Process).ppoll,
		273: nothing, // set_robust_list
		280: nothing, // utimensat: times stay
		281: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.epollWait(r, int64(int32(r.R10))*1e6) },
		284: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.eventFD(r.DI, 0) },
		285: refuse(errno.EOPNOTSUPP), // fallocate
		290: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.eventFD(r.DI, r.SI) },
		291: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.epollCreate(r.DI) },
		292: func(p *Process, r *x86.PtRegs) (uint64, error) {
			if int32(r.DI) == int32(r.SI) {
				return 0, errno.EINVAL
			}
			return p.dup(r.DI, r.SI, r.DX)
		},
		293: (*Process).pipe2,
		297: (*Process).queueThreadInfo,
		302: (*Process).prlimit,
		309: (*Process).getCPU,
		316: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.rename(r.DI, r.SI, r.DX, r.R10, r.R8) },
		318: (*Process).getrandom,
		332: (*Process).statx,
		435: (*Process).clone3,
		436: (*Process).closeRange,
		439: func(p *Process, r *x86.PtRegs) (uint64, error) { return p.access(r.DI, r.SI, r.DX, r.R10) },
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
		d, err := p.fd(r.R8)
		if err != nil {
			return 0, err
		}
		switch o := d.object.(type) {
		case *given:
			v.File = o.file
		case *made: // as it is now
			if v.File, err = p.snapshot(o); err != nil {
				return 0, err
			}
		case *device:
			if d.name != "/dev/zero" {
				return 0, errno.ENODEV
			}
		default:
			return 0, errno.ENODEV
		}
		switch {
		case r.R10&shared != 0 && v.Prot&ProtWrite != 0:
			return 0, errno.EACCES // writes would have to reach the file
		case r.R9+r.SI < r.R9:
			return 0, errno.EINVAL
		}
		if v.File != nil {
			v.Offset = r.R9
		}
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
		v.lazy = v.lazily()
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
	if at%PageSize != 0 || n > uint64(userTop) || at > uint64(userTop)-n {
		return x86.Range{}, errno.EINVAL
	}
	r := x86.Range{Start: x86.Addr(at), End: pageUp(x86.Addr(at + n))}
	if r.End > userTop {
		return r, errno.EINVAL
	}
	return r, nil
}

func (p *Process) mprotect(r *x86.PtRegs) (uint64, error) {
	at, err := span(r.DI, r.SI)
	switch {
	case err != nil && r.DI%PageSize == 0:
		return 0, errno.ENOMEM
	case err != nil || r.SI == 0:
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

// epoch is the time of day when a program begins: 2026-01-01.
const epoch = 1767225600

// putTime writes seconds and the rest, in units of so many nanoseconds.
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

func (p *Process) clockResolution(r *x86.PtRegs) (uint64, error) {
	if r.DI > 11 {
		return 0, errno.EINVAL
	}
	if r.SI == 0 {
		return 0, nil
	}
	return 0, p.Write(x86.Addr(r.SI), binary.LittleEndian.AppendUint64(make([]byte, 8), 1))
}

// onOpen implements the calls that succeed for every open file.
func (p *Process) onOpen(r *x86.PtRegs) (uint64, error) {
	_, err := p.fd(r.DI)
	return 0, err
}

// prlimit tells limits. What is set is not kept.
func (p *Process) prlimit(r *x86.PtRegs) (uint64, error) {
	const limits = 16
	switch {
	case r.SI >= limits:
		return 0, errno.EINVAL
	case r.DI != 0 && p.byPID(int(int32(r.DI))) == nil:
		return 0, errno.ESRCH
	case r.R10 == 0:
		return 0, nil
	}
	return p.rlimit(r.SI, r.R10)
}

func (p *Process) rlimit(which, at uint64) (uint64, error) {
	const stack, core, files, infinity = 3, 4, 7, ^uint64(0)
	soft, hard := infinity, infinity
	switch which {
	case stack:
		soft = stackSize
	case core:
		soft = 0
	case files:
		soft, hard = bounded.Descriptors, bounded.Descriptors
	}
	b := binary.LittleEndian.AppendUint64(nil, soft)
	return 0, p.Write(x86.Addr(at), binary.LittleEndian.AppendUint64(b, hard))
}

func (p *Process) getrandom(r *x86.PtRegs) (uint64, error) {
	const most = 256
	b := make([]byte, min(r.SI, most))
	p.fill(b)
	return uint64(len(b)), p.Write(x86.Addr(r.DI), b)
}
