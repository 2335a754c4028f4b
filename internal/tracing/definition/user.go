package definition

import (
	"fmt"
	"path"
	"strings"

	"kprobelab/errno"
	"kprobelab/profile"
)

// UserGroup is the group of uprobe events that name none.
const UserGroup = "uprobes"

// pointerDigits is how many digits an offset has where it is read back.
const pointerDigits = 16

// Files says whether a file can be probed: nil, ENOENT where it is not there, EINVAL
// where it is no regular file.
type Files func(name string) error

// IsUser reports whether a line's words define a uprobe: a file and an offset, which a digit
// begins.
func IsUser(words []string) bool {
	if len(words) < 2 || words[0][0] != 'p' && words[0][0] != 'r' {
		return false
	}
	i := strings.LastIndexByte(words[1], ':')
	return i >= 0 && strings.Contains(words[1], "/") && isDigit(first(words[1][i+1:]))
}

// ParseUser reads the definition of a uprobe, in the kernel's order of checks. The error is an
// *Error.
func ParseUser(words []string, files Files, c *profile.Tracing) (*Definition, error) {
	if !IsUser(words) {
		return nil, Refuse(words, 0, 0, NotAProbe, errno.ECANCELED)
	}
	d := &Definition{Return: words[0][0] == 'r', Group: UserGroup, Words: words}
	if err := d.userPlace(words[1], files); err != nil {
		return nil, located(words, 1, err)
	}
	if name, named := strings.CutPrefix(words[0][1:], ":"); named {
		if err := d.names(c, name); err != nil {
			return nil, located(words, 0, err)
		}
	}
	if d.Event == "" {
		tail := path.Base(d.File)
		if i := strings.IndexAny(tail, ".-_"); i >= 0 {
			tail = tail[:i]
		}
		d.Event = fmt.Sprintf("p_%s_0x%x", tail, d.FileOffset)
		d.Event = d.Event[:min(len(d.Event), maxName-1)]
	}
	args := words[2:]
	if len(args) > maxArgs && c.CountArgs {
		id := NotLogged
		if c.CountArgsLogged {
			id = TooManyArgs
		}
		return nil, Refuse(words, 2, 0, id, errno.E2BIG)
	}
	p := &parser{context: &context{c: c, words: words, exit: d.Return, user: true}}
	for i, a := range args[:min(len(args), maxArgs)] {
		if err := p.field(d, a); err != nil {
			return nil, located(words, i+2, err)
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
