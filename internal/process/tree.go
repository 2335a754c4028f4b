package process

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// The program's files are the given ones, under their names, with their folders; devices; a few
// files of /proc about itself; and the files that it makes in /tmp. None of them is the host's.

// made files and folders may be here.
const scratch = "/tmp"

// plantTree makes the folders of the files that there are.
func (p *Process) plantTree() {
	p.folders = map[string]*folder{}
	for name := range p.files {
		p.folderOf(path.Dir(name))
	}
	for _, name := range []string{"/dev", "/proc/self", scratch} {
		p.folderOf(name)
	}
	p.folders[scratch].writes = true
}

func (p *Process) folderOf(name string) {
	for p.folders[name] == nil {
		p.lastInode++
		p.folders[name] = &folder{name: name, inode: p.lastInode}
		name = path.Dir(name)
	}
}

// maxName bounds a name in a folder, in bytes (NAME_MAX). A whole path is shorter than a page (PATH_MAX); in a kernel
// only one that a program gives at once is.
const maxName = 255

// atCWD is the descriptor that stands for the working directory (AT_FDCWD).
const atCWD = -100

// name reads a path and makes it absolute, from a directory on.
func (p *Process) name(dir, at uint64) (string, error) {
	text, err := p.text(x86.Addr(at), PageSize)
	switch {
	case err != nil && errno.Of(err) == errno.EINVAL:
		return "", errno.ENAMETOOLONG
	case err != nil:
		return "", err
	case text == "":
		return "", errno.ENOENT
	}
	return p.absolute(dir, text)
}

func (p *Process) absolute(dir uint64, text string) (string, error) {
	base := p.cwd
	if !path.IsAbs(text) && int32(dir) != atCWD {
		d, err := p.fd(dir)
		if err != nil {
			return "", err
		}
		f, is := d.object.(*folder)
		if !is {
			return "", errno.ENOTDIR
		}
		base = f.name
	}
	if !path.IsAbs(text) {
		text = base + "/" + text
	}
	name := path.Clean(text)
	if len(name) >= PageSize || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxName }) {
		return "", errno.ENAMETOOLONG
	}
	if strings.HasSuffix(text, "/") && name != "/" && p.folders[name] == nil {
		if _, err := p.lookup(name); err == nil {
			return "", errno.ENOTDIR
		}
	}
	return name, nil
}

// link returns the target of a name that is a link.
func (p *Process) link(name string) (to string, ok bool) {
	if name == "/proc/self" {
		return strconv.Itoa(p.PID()), true
	}
	switch name = p.self(name); name {
	case "/proc/self/exe":
		return Clean(p.program.Name), true
	case "/proc/self/cwd":
		return p.cwd, true
	case "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return fmt.Sprintf("/proc/self/fd/%d", slices.Index([]string{"in", "out", "err"}, name[len("/dev/std"):])), true
	case "/dev/fd":
		return "/proc/self/fd", true
	}
	if d := p.descriptorOf(name); d != nil {
		if d.name != "" {
			return d.name, true
		}
		return fmt.Sprintf("pipe:[%d]", d.attributes(p).inode), true
	}
	return "", false
}

// self replaces the process's number in a name of /proc by self.
func (p *Process) self(name string) string {
	for _, own := range []string{fmt.Sprintf("/proc/%d", p.PID()), "/proc/thread-self"} {
		if rest, ok := strings.CutPrefix(name, own); ok && (rest == "" || rest[0] == '/') {
			return "/proc/self" + rest
		}
	}
	return name
}

// descriptorOf returns the open file of a name of /dev/fd and the like, nil for another name.
func (p *Process) descriptorOf(name string) *description {
	name = p.self(name)
	if std, ok := strings.CutPrefix(name, "/dev/std"); ok {
		if n := slices.Index([]string{"in", "out", "err"}, std); n >= 0 {
			name = fmt.Sprintf("/dev/fd/%d", n)
		}
	}
	number, ok := strings.CutPrefix(name, "/dev/fd/")
	if !ok {
		number, ok = strings.CutPrefix(name, "/proc/self/fd/")
	}
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil
	}
	return p.open[n].description
}

// lookup finds the object of a name; it follows links.
func (p *Process) lookup(name string) (object, error) {
	if d := p.descriptorOf(name); d != nil {
		return d.object, nil
	}
	switch to, is := p.link(name); {
	case is && name == "/proc/self":
		return p.folders[name], nil
	case is:
		return p.lookup(to)
	}
	name = p.self(name)
	switch {
	case p.files[name] != nil:
		f := p.files[name]
		if m := p.makes[f]; m != nil {
			return m, nil
		}
		return &given{f, fileInode + p.inodes[f]}, nil
	case p.folders[name] != nil:
		return p.folders[name], nil
	case devices[name] != nil:
		return devices[name], nil
	}
	if text := texts[name]; text != nil {
		return &ownText{p.group, text}, nil
	}
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		if p.files[dir] != nil || devices[dir] != nil {
			return nil, errno.ENOTDIR
		}
	}
	return nil, errno.ENOENT
}

// entry is a name in a folder.
type entry struct {
	name string
	kind uint32 // mode's
	node uint64
}

// entries returns the entries of a folder: first the folder itself and its parent, then the others, sorted by name.
func (p *Process) entries(f *folder) []entry {
	list := []entry{{".", modeFolder, f.inode}, {"..", modeFolder, p.folders[path.Dir(f.name)].inode}}
	begin := len(list)
	for name, o := range p.folders {
		if name != "/" && path.Dir(name) == f.name {
			list = append(list, entry{path.Base(name), modeFolder, o.inode})
		}
	}
	for name, o := range p.files {
		if path.Dir(name) == f.name {
			list = append(list, entry{path.Base(name), modeRegular, fileInode + p.inodes[o]})
		}
	}
	for name, o := range devices {
		if path.Dir(name) == f.name {
			list = append(list, entry{path.Base(name), modeDevice, o.inode})
		}
	}
	slices.SortFunc(list[begin:], func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return list
}

// entriesAfter returns the entries that follow one, which may have been removed; "" is before the first.
func (p *Process) entriesAfter(f *folder, last string) []entry {
	list := p.entries(f)
	switch last {
	case "":
		return list
	case ".":
		return list[1:]
	}
	list = list[2:]
	if last == ".." {
		return list
	}
	return list[sort.Search(len(list), func(i int) bool { return list[i].name > last }):]
}

func (p *Process) getdents(r *x86.PtRegs) (uint64, error) {
	d, err := p.fd(r.DI)
	if err != nil {
		return 0, err
	}
	f, is := d.object.(*folder)
	if !is {
		return 0, errno.ENOTDIR
	}
	if p.folders[f.name] != f {
		return 0, errno.ENOENT // it has been removed
	}
	var b []byte
	for _, e := range p.entriesAfter(f, d.last) {
		const head = 19
		size := (head + len(e.name) + 1 + 7) &^ 7
		if len(b)+size > int(min(r.DX, maxWrite)) {
			if len(b) == 0 {
				return 0, errno.EINVAL
			}
			break
		}
		d.at, d.last = d.at+1, e.name
		one := binary.LittleEndian.AppendUint64(nil, e.node)
		one = binary.LittleEndian.AppendUint64(one, uint64(d.at))
		one = binary.LittleEndian.AppendUint16(one, uint16(size))
		one = append(append(one, byte(e.kind>>12)), e.name...)
		b = append(b, append(one, make([]byte, size-len(one))...)...)
	}
	return uint64(len(b)), p.Write(x86.Addr(r.SI), b)
}

func (p *Process) openAt(dir, at, flags, mode uint64) (uint64, error) {
	name, err := p.name(dir, at)
	if err != nil {
		return 0, err
	}
	d := &description{name: name, flags: flags & openKept}
	if own := p.descriptorOf(name); own != nil {
		return p.install(own, 0, flags&openCloseExec != 0)
	}
	o, err := p.lookup(name)
	create := flags&openCreate != 0
	writes := flags&openAccess != openRead || flags&openTruncate != 0
	switch _, isFolder := o.(*folder); {
	case err != nil && !(create && errno.Of(err) == errno.ENOENT):
		return 0, err
	case err != nil:
		if o, err = p.create(name, uint32(mode)); err != nil {
			return 0, err
		}
	case create && flags&openExclusive != 0:
		return 0, errno.EEXIST
	case flags&openDirectory != 0 && !isFolder:
		return 0, errno.ENOTDIR
	case isFolder && (writes || create):
		return 0, errno.EISDIR
	}
	switch f := o.(type) {
	case *given, *ownText:
		if writes {
			return 0, errno.EACCES
		}
	case *made:
		if flags&openTruncate != 0 {
			_ = f.resize(p, 0)
		}
		if flags&openAppend != 0 {
			d.object = &appended{f}
			return p.install(d, 0, flags&openCloseExec != 0)
		}
	}
	d.object = o
	return p.install(d, 0, flags&openCloseExec != 0)
}

// appended is a made file that is written at its end.
type appended struct{ *made }

func (o *appended) write(p *Process, at *int64, b []byte) (int, error) {
	*at = int64(len(o.file.Data))
	return o.made.write(p, at, b)
}

// mayMake says why the program cannot make something of a name.
func (p *Process) mayMake(name string) error {
	f := p.folders[path.Dir(name)]
	switch {
	case f == nil && p.files[path.Dir(name)] != nil:
		return errno.ENOTDIR
	case f == nil:
		return errno.ENOENT
	case !f.writes:
		return errno.EROFS
	}
	if len(p.makes)+len(p.folders) >= bounded.MadeNames {
		if p.sweep(); len(p.makes)+len(p.folders) >= bounded.MadeNames {
			return errno.ENOSPC
		}
	}
	return nil
}

func (p *Process) create(name string, mode uint32) (object, error) {
	if err := p.mayMake(name); err != nil {
		return nil, err
	}
	p.lastInode++
	m := &made{file: &File{Name: name}, mode: mode & 0777 &^ p.umask, inode: p.lastInode}
	p.files[name], p.makes[m.file], p.inodes[m.file] = m.file, m, m.inode-fileInode
	return m, nil
}

func (p *Process) mkdir(dir, at uint64) (uint64, error) {
	name, err := p.name(dir, at)
	if err != nil {
		return 0, err
	}
	if _, err := p.lookup(name); err == nil {
		return 0, errno.EEXIST
	}
	if err := p.mayMake(name); err != nil {
		return 0, err
	}
	p.folderOf(name)
	p.folders[name].writes = true
	return 0, nil
}

// unlink takes a name away; a folder's, where that is empty.
func (p *Process) unlink(dir, at uint64, isFolder bool) (uint64, error) {
	name, err := p.name(dir, at)
	if err != nil {
		return 0, err
	}
	o, err := p.lookup(name)
	if err != nil {
		return 0, err
	}
	f, folder := o.(*folder)
	switch {
	case folder && !isFolder:
		return 0, errno.EISDIR
	case !folder && isFolder:
		return 0, errno.ENOTDIR
	case p.folders[path.Dir(name)] == nil || !p.folders[path.Dir(name)].writes:
		return 0, errno.EROFS
	case folder && len(p.entries(f)) > 2:
		return 0, errno.ENOTEMPTY
	case folder:
		delete(p.folders, name)
	default:
		p.forgetFile(name)
	}
	return 0, nil
}

// forgetFile removes a made file's name. Open descriptions keep the file, and its bytes count until
// the last is closed.
func (p *Process) forgetFile(name string) {
	delete(p.files, name)
	p.sweep()
}

// sweep forgets the made files that have no name and that no process has open.
func (p *Process) sweep() {
	open := map[*File]bool{}
	for d := range p.opened() {
		switch o := d.object.(type) {
		case *made:
			open[o.file] = true
		case *appended:
			open[o.file] = true
		}
	}
	for f := range p.makes {
		if p.files[f.Name] != f && !open[f] {
			p.written -= len(f.Data)
			delete(p.makes, f)
			delete(p.inodes, f)
		}
	}
}

func (p *Process) rename(oldDir, oldAt, newDir, newAt, flags uint64) (uint64, error) {
	const noReplace = 1
	from, err := p.name(oldDir, oldAt)
	if err != nil {
		return 0, err
	}
	to, err := p.name(newDir, newAt)
	if err != nil {
		return 0, err
	}
	m := p.makes[p.files[from]]
	switch _, err := p.lookup(from); {
	case err != nil:
		return 0, err
	case m == nil:
		return 0, errno.EROFS // and folders stay where they are
	case flags&^noReplace != 0:
		return 0, errno.EINVAL
	}
	if err := p.mayMake(to); err != nil {
		return 0, err
	}
	if to == from {
		return 0, nil
	}
	if _, err := p.lookup(to); err == nil {
		if flags&noReplace != 0 || p.makes[p.files[to]] == nil {
			return 0, errno.EEXIST
		}
		p.forgetFile(to)
	}
	delete(p.files, from)
	m.file.Name = to
	p.files[to] = m.file
	return 0, nil
}

func (p *Process) readlink(dir, at, buf, n uint64) (uint64, error) {
	name, err := p.name(dir, at)
	if err != nil {
		return 0, err
	}
	to, is := p.link(name)
	if !is {
		if _, err := p.lookup(name); err != nil {
			return 0, err
		}
		return 0, errno.EINVAL
	}
	if int64(n) <= 0 {
		return 0, errno.EINVAL
	}
	b := []byte(to)[:min(n, uint64(len(to)))]
	return uint64(len(b)), p.Write(x86.Addr(buf), b)
}

func (p *Process) chdir(name string) (uint64, error) {
	o, err := p.lookup(name)
	if err != nil {
		return 0, err
	}
	f, is := o.(*folder)
	if !is {
		return 0, errno.ENOTDIR
	}
	p.cwd, p.cwdFolder = f.name, f
	return 0, nil
}

func (p *Process) truncate(d *description, n uint64) (uint64, error) {
	m, is := d.object.(*made)
	if a, appends := d.object.(*appended); appends {
		m, is = a.made, true
	}
	if !is || d.flags&openAccess == openRead || int64(n) < 0 {
		return 0, errno.EINVAL
	}
	if n > bounded.MadeFiles {
		return 0, errno.EFBIG
	}
	return 0, m.resize(p, int(n))
}

// named is the file of a name, for execve.
func (p *Process) named(dir, at uint64) (*File, error) {
	name, err := p.name(dir, at)
	if err != nil {
		return nil, err
	}
	o, err := p.lookup(name)
	switch f := o.(type) {
	case *given:
		return f.file, nil
	case *made:
		if f.mode&0111 == 0 {
			return nil, errno.EACCES
		}
		return p.snapshot(f)
	}
	if err == nil {
		err = errno.EACCES
	}
	return nil, err
}
