package process

import (
	"encoding/binary"

	"kprobelab/errno"
	"kprobelab/x86"
)

// openFile is a file and the place in it.
type openFile struct {
	file *File
	at   int64
	// closes: execve closes it (O_CLOEXEC).
	closes bool
}

const (
	firstFD  = 3
	maxOpen  = 256
	maxWrite = 1 << 20 // of one system call; a program goes on with the rest
)

func (p *Process) openAt(name, flags uint64) (uint64, error) {
	const writing, closes = 3, 02000000
	f, err := p.named(name)
	switch {
	case err != nil:
		return 0, err
	case flags&writing != 0:
		return 0, errno.EACCES
	}
	for fd := firstFD; fd < maxOpen; fd++ {
		if p.open[fd] == nil {
			p.open[fd] = &openFile{file: f, closes: flags&closes != 0}
			return uint64(fd), nil
		}
	}
	return 0, errno.EMFILE
}

func (p *Process) named(at uint64) (*File, error) {
	name, err := p.text(x86.Addr(at), PageSize)
	if err != nil {
		return nil, err
	}
	f := p.files[Clean(name)]
	if f == nil || name == "" {
		return nil, errno.ENOENT
	}
	return f, nil
}

func (p *Process) close(r *x86.PtRegs) (uint64, error) {
	fd := int(int32(r.DI))
	if p.open[fd] == nil && (fd < 0 || fd >= firstFD) {
		return 0, errno.EBADF
	}
	delete(p.open, fd)
	return 0, nil
}

// readAt reads into memory from what a descriptor has at an offset; at is where it stands.
func (p *Process) readInto(fd int, buf x86.Addr, n uint64, offset *int64) (uint64, error) {
	data := &p.c.Stdin
	var at int64
	f := p.open[fd]
	switch {
	case f != nil:
		data = &f.file.Data
		if at = f.at; offset != nil {
			at = *offset
		}
	case fd == 0 && offset == nil:
	case fd == 0:
		return 0, errno.ESPIPE
	default:
		return 0, errno.EBADF
	}
	if at < 0 {
		return 0, errno.EINVAL
	}
	rest := (*data)[min(at, int64(len(*data))):]
	b := rest[:min(n, uint64(len(rest)), maxWrite)]
	if err := p.Write(buf, b); err != nil {
		return 0, err
	}
	switch {
	case f == nil:
		p.c.Stdin = rest[len(b):]
	case offset == nil:
		f.at += int64(len(b))
	}
	return uint64(len(b)), nil
}

func (p *Process) read(r *x86.PtRegs) (uint64, error) {
	return p.readInto(int(int32(r.DI)), x86.Addr(r.SI), r.DX, nil)
}

func (p *Process) pread(r *x86.PtRegs) (uint64, error) {
	at := int64(r.R10)
	return p.readInto(int(int32(r.DI)), x86.Addr(r.SI), r.DX, &at)
}

func (p *Process) writeFrom(fd int, buf x86.Addr, n uint64) (uint64, error) {
	to := &p.stdout
	switch fd {
	case 1:
	case 2:
		to = &p.stderr
	default:
		return 0, errno.EBADF
	}
	b := make([]byte, min(n, maxWrite))
	if err := p.Read(buf, b); err != nil {
		return 0, err
	}
	to.write(b)
	return uint64(len(b)), nil
}

func (p *Process) write(r *x86.PtRegs) (uint64, error) {
	return p.writeFrom(int(int32(r.DI)), x86.Addr(r.SI), r.DX)
}

func (p *Process) readv(r *x86.PtRegs) (uint64, error) {
	return p.vector(r, func(at x86.Addr, n uint64) (uint64, error) { return p.readInto(int(int32(r.DI)), at, n, nil) })
}

func (p *Process) writev(r *x86.PtRegs) (uint64, error) {
	return p.vector(r, func(at x86.Addr, n uint64) (uint64, error) { return p.writeFrom(int(int32(r.DI)), at, n) })
}

// vector does one for each piece of an iovec, until one is not done whole.
func (p *Process) vector(r *x86.PtRegs, one func(at x86.Addr, n uint64) (uint64, error)) (total uint64, err error) {
	const most = 1024
	if r.DX > most {
		return 0, errno.EINVAL
	}
	for i := range r.DX {
		var b [16]byte
		if err := p.Read(x86.Addr(r.SI+16*i), b[:]); err != nil {
			return 0, err
		}
		n := binary.LittleEndian.Uint64(b[8:])
		done, err := one(x86.Addr(binary.LittleEndian.Uint64(b[:])), n)
		if err != nil && total == 0 {
			return 0, err
		}
		if total += done; err != nil || done < n {
			break
		}
	}
	return total, nil
}

func (p *Process) seek(r *x86.PtRegs) (uint64, error) {
	f := p.open[int(int32(r.DI))]
	switch {
	case f == nil && r.DI < firstFD:
		return 0, errno.ESPIPE
	case f == nil:
		return 0, errno.EBADF
	}
	var from int64
	switch r.DX {
	case 0:
	case 1:
		from = f.at
	case 2:
		from = int64(len(f.file.Data))
	default:
		return 0, errno.EINVAL
	}
	if from += int64(r.SI); from < 0 {
		return 0, errno.EINVAL
	}
	f.at = from
	return uint64(from), nil
}

// Kinds of files (S_IFREG, S_IFIFO), with their permissions.
const (
	regular = 0100555
	pipe    = 0010600
)

// stat writes a struct stat; f is nil for a pipe.
func (p *Process) stat(f *File, fd, at uint64) (uint64, error) {
	b := make([]byte, 144)
	mode, size, inode := uint32(pipe), 0, fd+1
	if f != nil {
		mode, size, inode = regular, len(f.Data), firstFD+p.inodes[f]
	}
	put := binary.LittleEndian.PutUint64
	put(b[0:], 1) // st_dev
	put(b[8:], inode)
	put(b[16:], 1) // st_nlink
	binary.LittleEndian.PutUint32(b[24:], mode)
	put(b[48:], uint64(size))
	put(b[56:], PageSize)
	put(b[64:], (uint64(size)+511)/512)
	for _, off := range []int{72, 88, 104} { // atime, mtime, ctime
		put(b[off:], epoch)
	}
	return 0, p.Write(x86.Addr(at), b)
}

func (p *Process) statName(name, at uint64) (uint64, error) {
	f, err := p.named(name)
	if err != nil {
		return 0, err
	}
	return p.stat(f, 0, at)
}

func (p *Process) statFD(fd, at uint64) (uint64, error) {
	f := p.open[int(int32(fd))]
	switch {
	case f != nil:
		return p.stat(f.file, fd, at)
	case fd < firstFD:
		return p.stat(nil, fd, at)
	}
	return 0, errno.EBADF
}

// statAt is newfstatat: of a descriptor where the name is empty and the flags say so.
func (p *Process) statAt(r *x86.PtRegs) (uint64, error) {
	const emptyPath = 0x1000
	if name, err := p.text(x86.Addr(r.SI), PageSize); err == nil && name == "" && r.R10&emptyPath != 0 {
		return p.statFD(r.DI, r.DX)
	}
	return p.statName(r.SI, r.DX)
}

func (p *Process) access(name, mode uint64) (uint64, error) {
	const writing = 2
	if _, err := p.named(name); err != nil {
		return 0, err
	}
	if mode&writing != 0 {
		return 0, errno.EACCES
	}
	return 0, nil
}
