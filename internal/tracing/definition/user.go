package definition

import (
	"fmt"
	"path"
	"strings"

	"kprobelab/errno"
	"kprobelab/profile"
)

// UserGroup is the group of uprobe events that name no group.
const UserGroup = "uprobes"

// pointerDigits is the number of hexadecimal digits of an offset in a line of uprobe_events.
const pointerDigits = 16

// Files checks whether a file can be probed. It returns nil if it can, ENOENT if the file
// does not exist, EINVAL if it is no regular file.
type Files func(name string) error

// ParseUser reads the definition of a uprobe, in the kernel's order of checks. The error is an
// *Error.
func ParseUser(l Line, files Files, c *profile.Tracing) (*Definition, error) {
	if !l.User() {
		return nil, l.Refuse(0, 0, NotAProbe, errno.ECANCELED)
	}
	d := &Definition{Return: l.Words[0][0] == 'r', Group: UserGroup, Line: l}
	if err := d.userPlace(l.Words[1], files); err != nil {
		return nil, l.located(1, err)
	}
	if name, named := strings.CutPrefix(l.Words[0][1:], ":"); named {
		if err := d.names(c, name); err != nil {
			return nil, l.located(0, err)
		}
	}
	if d.Event == "" {
		tail := path.Base(d.File)
		if i := strings.IndexAny(tail, ".-_"); i >= 0 {
			tail = tail[:i]
		}
		d.Event = fmt.Sprintf("p_%s_0x%x", tail, d.FileOffset)
		d.Event = d.Event[:min(len(d.Event), MaxName)]
	}
	args := l.Words[2:]
	if len(args) > MaxArgs && c.CountArgs {
		id := NotLogged
		if c.CountArgsLogged {
			id = TooManyArgs
		}
		return nil, l.Refuse(2, 0, id, errno.E2BIG)
	}
	p := &parser{context: &context{c: c, line: l, exit: d.Return, user: true}}
	for i, a := range args[:min(len(args), MaxArgs)] {
		if err := p.field(d, a); err != nil {
			return nil, l.located(i+2, err)
		}
	}
	return d, nil
}

// userPlace reads FILE:OFFSET[(COUNTER)][%return].
func (d *Definition) userPlace(text string, files Files) error {
	i := strings.LastIndexByte(text, ':')
	d.File = text[:i]
	offset, offs := text[i+1:], i+1
	if err := files(d.File); err != nil {
		id := FileNotFound
		if errno.Of(err) == errno.EINVAL {
			id = NoRegularFile
		}
		return &fault{id, errno.Of(err), 0}
	}
	if at, rest, counted := strings.Cut(offset, "("); counted {
		number, suffix, closed := strings.Cut(rest, ")")
		switch {
		case !closed:
			return bad(len(text), RefcntOpenBrace)
		case suffix != "":
			return bad(len(text)-len(suffix), BadRefcntSuffix)
		}
		v, err := kstrtoull(number, 0)
		if err != nil {
			return badNumber(offs+len(at)+1, BadRefcnt, err)
		}
		offset, d.Counter = at, v
	}
	if at, suffix, has := strings.Cut(offset, "%"); has {
		if suffix != "return" {
			return bad(offs+len(at), BadAddrSuffix)
		}
		offset, d.Return = at, true
	}
	v, err := kstrtoull(offset, 0)
	if err != nil {
		return badNumber(offs, BadUprobeOffs, err)
	}
	d.FileOffset = v
	return nil
}
