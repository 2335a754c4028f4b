package process

import (
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// snapshot is a made file as it is now, for a mapping or a program, which do not change with the file.
func (p *Process) snapshot(m *made) (*File, error) {
	if m.shown != nil {
		return m.shown, nil
	}
	if p.snapshotBytes()+len(m.file.Data) > bounded.MadeSnapshots {
		return nil, errno.ENOMEM
	}
	m.shown = &File{Name: m.file.Name, Data: slices.Clone(m.file.Data)}
	p.snapshots[m.shown] = struct{}{}
	return m.shown, nil
}

// snapshotBytes returns the size of the snapshots that are still in use, and drops the others.
func (p *Process) snapshotBytes() (n int) {
	live := map[*File]bool{}
	for _, m := range p.makes {
		live[m.shown] = true
	}
	for _, g := range p.groups {
		live[g.program] = true
	}
	for _, s := range p.spaces {
		for _, v := range s.maps {
			live[v.File] = true
		}
	}
	for f := range p.snapshots {
		if !live[f] {
			delete(p.snapshots, f)
			continue
		}
		n += len(f.Data)
	}
	return n
}

// fileToRun is a file by its name, as execve would map it; nil if there is none.
func (p *Process) fileToRun(name string) (*File, error) {
	f := p.files[name]
	if m := p.makes[f]; m != nil {
		return p.snapshot(m)
	}
	return f, nil
}
