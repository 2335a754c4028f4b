package process

import (
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// status holds the attributes that stat returns.
type status struct {
	mode  uint32
	size  int
	inode uint64
	// device is a device's number.
	device uint64
}

// Kinds of files (S_IFMT).
const (
	modeKind    = 0170000
	modePipe    = 0010000
	modeDevice  = 0020000
	modeFolder  = 0040000
	modeRegular = 0100000
	modeLink    = 0120000
)

// places reports whether there are places in it, for lseek and pread.
func (a status) places() bool {
	k := a.mode & modeKind
	return k == modeRegular || k == modeFolder || k == modeDevice
}

// input is the program's standard input: a pipe that is already filled.
type input struct{ rest []byte }

func (o *input) read(_ *Process, _ *int64, n int) ([]byte, error) {
	b := o.rest[:min(n, len(o.rest))]
	o.rest = o.rest[len(b):]
	return b, nil
}
func (o *input) write(*Process, *int64, []byte) (int, error) { return 0, errno.EBADF }
func (o *input) ready(*Process) uint32 {
	if len(o.rest) == 0 {
		return pollIn | pollHup
	}
	return pollIn
}
func (o *input) attributes(*Process) status { return status{mode: modePipe | 0600, inode: 1} }

// sink is standard output or error.
type sink struct {
	to *output
	fd uint64
}

func (o *sink) read(*Process, *int64, int) ([]byte, error) { return nil, errno.EBADF }
func (o *sink) write(_ *Process, _ *int64, b []byte) (int, error) {
	o.to.write(b)
	return len(b), nil
}
func (o *sink) ready(*Process) uint32 { return pollOut }
func (o *sink) attributes(*Process) status {
	return status{mode: modePipe | 0600, inode: o.fd + 1}
}

// Where numbers of inodes begin: of standard streams and devices, and of files.
const (
	deviceInode = 8
	fileInode   = 32
	procInode   = 1 << 40
)

// given is a file that cannot be written: one of Config.Files, or a text of /proc.
type given struct {
	file  *File
	inode uint64
}

func (o *given) read(_ *Process, at *int64, n int) ([]byte, error) {
	data := o.file.Data[min(*at, int64(len(o.file.Data))):]
	b := data[:min(n, len(data))]
	*at += int64(len(b))
	return b, nil
}
func (o *given) write(*Process, *int64, []byte) (int, error) { return 0, errno.EBADF }
func (o *given) ready(*Process) uint32                       { return pollIn | pollOut }
func (o *given) attributes(*Process) status {
	return status{mode: modeRegular | 0555, size: len(o.file.Data), inode: o.inode}
}

// made is a file that the program has made. Its content is the sandbox's own.
type made struct {
	file  *File
	inode uint64
	mode  uint32
	// shown is the file's content for mappings and programs, nil if it has changed since.
	shown *File
}

func (o *made) read(p *Process, at *int64, n int) ([]byte, error) {
	b, err := (&given{file: o.file}).read(p, at, n)
	return slices.Clone(b), err
}

func (o *made) write(p *Process, at *int64, b []byte) (int, error) {
	if *at > bounded.MadeFiles {
		return 0, errno.EFBIG
	}
	if err := o.resize(p, max(len(o.file.Data), int(*at)+len(b))); err != nil {
		return 0, err
	}
	o.shown = nil
	n := copy(o.file.Data[*at:], b)
	*at += int64(n)
	return n, nil
}

// resize changes the file's length. The content in mappings of it does not change.
func (o *made) resize(p *Process, n int) error {
	if n > len(o.file.Data) && p.written+n-len(o.file.Data) > bounded.MadeFiles {
		if p.sweep(); p.written+n-len(o.file.Data) > bounded.MadeFiles {
			return errno.ENOSPC
		}
	}
	o.shown = nil
	p.written += n - len(o.file.Data)
	if n <= len(o.file.Data) {
		clear(o.file.Data[n:])
		o.file.Data = o.file.Data[:n]
		return nil
	}
	o.file.Data = append(o.file.Data, make([]byte, n-len(o.file.Data))...)
	return nil
}

func (o *made) ready(*Process) uint32 { return pollIn | pollOut }
func (o *made) attributes(*Process) status {
	return status{mode: modeRegular | o.mode, size: len(o.file.Data), inode: o.inode}
}

// folder is a directory; its entries are found by its name.
type folder struct {
	name  string
	inode uint64
	// writes: the program may make files in it.
	writes bool
}

func (o *folder) read(*Process, *int64, int) ([]byte, error)  { return nil, errno.EISDIR }
func (o *folder) write(*Process, *int64, []byte) (int, error) { return 0, errno.EISDIR }
func (o *folder) ready(*Process) uint32                       { return pollIn }
func (o *folder) attributes(*Process) status {
	mode := uint32(0555)
	if o.writes {
		mode = 01777
	}
	return status{mode: modeFolder | mode, size: PageSize, inode: o.inode}
}

// device is a file of /dev.
type device struct {
	inode, number uint64
	reads         func(p *Process, b []byte)
	full          bool
}

// devices holds the memory devices (major number 1), by their paths.
var devices = map[string]*device{
	"/dev/null":    {inode: deviceInode, number: 1<<8 | 3},
	"/dev/zero":    {inode: deviceInode + 1, number: 1<<8 | 5, reads: func(_ *Process, b []byte) { clear(b) }},
	"/dev/full":    {inode: deviceInode + 2, number: 1<<8 | 7, reads: func(_ *Process, b []byte) { clear(b) }, full: true},
	"/dev/random":  {inode: deviceInode + 3, number: 1<<8 | 8, reads: (*Process).fill},
	"/dev/urandom": {inode: deviceInode + 4, number: 1<<8 | 9, reads: (*Process).fill},
}

func (o *device) read(p *Process, _ *int64, n int) ([]byte, error) {
	if o.reads == nil {
		return nil, nil
	}
	b := make([]byte, n)
	o.reads(p, b)
	return b, nil
}

func (o *device) write(_ *Process, _ *int64, b []byte) (int, error) {
	if o.full && len(b) > 0 {
		return 0, errno.ENOSPC
	}
	return len(b), nil
}
func (o *device) ready(*Process) uint32 { return pollIn | pollOut }
func (o *device) attributes(*Process) status {
	return status{mode: modeDevice | 0666, inode: o.inode, device: o.number}
}

// chmod gives a made file other permissions.
func (p *Process) chmod(dir, at, mode uint64) (uint64, error) {
	name, err := p.name(dir, at)
	if err != nil {
		return 0, err
	}
	o, err := p.lookup(name)
	if err != nil {
		return 0, err
	}
	return 0, setMode(o, mode)
}

func (p *Process) fchmod(fd, mode uint64) (uint64, error) {
	d, err := p.fd(fd)
	if err != nil {
		return 0, err
	}
	return 0, setMode(d.object, mode)
}

func setMode(o object, mode uint64) error {
	switch f := o.(type) {
	case *made:
		f.mode = uint32(mode) & 0777
	case *appended:
		f.mode = uint32(mode) & 0777
	case *given:
		return errno.EROFS
	}
	return nil
}
