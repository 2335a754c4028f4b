package process

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
)

// ownText is a file of /proc about a process. Each read makes the text, so an open file takes no
// memory.
type ownText struct {
	of   *group
	text func(p *Process, g *group) string
}

// texts maps the names of the files to the functions that make their texts.
var texts = map[string]func(p *Process, g *group) string{
	"/proc/self/maps":    (*Process).mapsText,
	"/proc/self/cmdline": func(_ *Process, g *group) string { return strings.Join(g.args, "\x00") + "\x00" },
	"/proc/self/environ": func(_ *Process, g *group) string { return strings.Join(append(slices.Clone(g.env), ""), "\x00") },
	"/proc/self/comm":    func(_ *Process, g *group) string { return g.name() + "\n" },
}

func (o *ownText) read(p *Process, at *int64, n int) ([]byte, error) {
	if o.of.ended {
		return nil, errno.ESRCH
	}
	return (&given{file: &File{Data: []byte(o.text(p, o.of))}}).read(p, at, n)
}

func (o *ownText) write(*Process, *int64, []byte) (int, error) { return 0, errno.EBADF }
func (o *ownText) ready(*Process) uint32                       { return pollIn | pollOut }

// attributes says a size of 0, as for all texts of /proc.
func (o *ownText) attributes(*Process) status {
	return status{mode: modeRegular | 0444, inode: procInode}
}

func (p *Process) mapsText(g *group) string {
	var b strings.Builder
	for _, v := range g.maps {
		line := v.String()
		fields := strings.SplitN(line, " ", 4)
		rest := ""
		if len(fields) > 3 {
			rest = fields[3]
		}
		inode := uint64(0)
		if v.File != nil {
			inode = fileInode + p.inodes[v.File]
		}
		fmt.Fprintf(&b, "%s %s %s 00:00 %d %26s\n", fields[0], fields[1], fields[2], inode, rest)
	}
	return b.String()
}
