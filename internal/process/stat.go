package process

import (
	"cmp"
	"encoding/binary"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

const emptyPath, noFollow = 0x1000, 0x100 // AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW

// attributesAt returns the attributes of a name, or of the descriptor dir if the name is empty and the flags allow
// this (AT_EMPTY_PATH).
func (p *Process) attributesAt(dir, at, flags uint64) (status, error) {
	if flags&emptyPath != 0 {
		text, err := "", error(nil)
		if at != 0 {
			text, err = p.text(x86.Addr(at), PageSize)
		}
		if err == nil && text == "" {
			return p.attributesOf(dir)
		}
	}
	name, err := p.name(dir, at)
	if err != nil {
		return status{}, err
	}
	if to, is := p.link(name); is && flags&noFollow != 0 {
		return status{mode: modeLink | 0777, size: len(to), inode: procInode + 1}, nil
	}
	o, err := p.lookup(name)
	if err != nil {
		return status{}, err
	}
	return o.attributes(p), nil
}

func (p *Process) attributesOf(fd uint64) (status, error) {
	if int32(fd) == atCWD {
		return cmp.Or(p.cwdFolder, p.folders["/"]).attributes(p), nil
	}
	d, err := p.fd(fd)
	if err != nil {
		return status{}, err
	}
	return d.attributes(p), nil
}

// stat writes a struct stat.
func (p *Process) stat(a status, err error, at uint64) (uint64, error) {
	if err != nil {
		return 0, err
	}
	b := make([]byte, 144)
	put := binary.LittleEndian.PutUint64
	put(b[0:], 1) // st_dev
	put(b[8:], a.inode)
	put(b[16:], 1) // st_nlink
	binary.LittleEndian.PutUint32(b[24:], a.mode)
	put(b[40:], a.device)
	put(b[48:], uint64(a.size))
	put(b[56:], PageSize)
	put(b[64:], (uint64(a.size)+511)/512)
	for _, off := range []int{72, 88, 104} { // atime, mtime, ctime
		put(b[off:], epoch)
	}
	return 0, p.Write(x86.Addr(at), b)
}

func (p *Process) statName(dir, name, flags, at uint64) (uint64, error) {
	a, err := p.attributesAt(dir, name, flags)
	return p.stat(a, err, at)
}

func (p *Process) statFD(fd, at uint64) (uint64, error) {
	a, err := p.attributesOf(fd)
	return p.stat(a, err, at)
}

// statx writes a struct statx with the basic fields.
func (p *Process) statx(r *x86.PtRegs) (uint64, error) {
	a, err := p.attributesAt(r.DI, r.SI, r.DX)
	if err != nil {
		return 0, err
	}
	const basic = 0x7ff
	b := make([]byte, 256)
	le := binary.LittleEndian
	le.PutUint32(b[0:], basic)
	le.PutUint32(b[4:], PageSize)
	le.PutUint32(b[16:], 1) // stx_nlink
	le.PutUint16(b[28:], uint16(a.mode))
	le.PutUint64(b[32:], a.inode)
	le.PutUint64(b[40:], uint64(a.size))
	le.PutUint64(b[48:], (uint64(a.size)+511)/512)
	for _, off := range []int{64, 96, 112} { // atime, ctime, mtime
		le.PutUint64(b[off:], epoch)
	}
	le.PutUint32(b[128:], uint32(a.device>>8))
	le.PutUint32(b[132:], uint32(a.device&0xff))
	le.PutUint32(b[140:], 1) // stx_dev_minor
	return 0, p.Write(x86.Addr(r.R8), b)
}

func (p *Process) access(dir, name, mode, flags uint64) (uint64, error) {
	const writing, executing = 2, 1
	a, err := p.attributesAt(dir, name, flags)
	switch {
	case err != nil:
		return 0, err
	case mode&writing != 0 && a.mode&0222 == 0:
		return 0, errno.EACCES
	case mode&executing != 0 && a.mode&0111 == 0:
		return 0, errno.EACCES
	}
	return 0, nil
}

// statfs says that it is a tmpfs.
func (p *Process) statfs(at uint64) (uint64, error) {
	const magic, blocks = 0x01021994, bounded.MadeFiles / PageSize
	b := make([]byte, 120)
	for i, w := range []uint64{magic, PageSize, blocks, blocks - uint64(p.written)/PageSize, blocks - uint64(p.written)/PageSize, bounded.MadeNames, bounded.MadeNames / 2, 0, 255, PageSize} {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	return 0, p.Write(x86.Addr(at), b)
}
