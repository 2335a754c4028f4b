package matrix

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kprobelab/run"
)

// Plans makes of a plan one for each kernel. Their programs end with SIGINT when ctx ends, and what they leave on the
// host has names of its own: see Named. The plans may be done at the same time.
func Plans(plan *run.Kernel) func(ctx context.Context, c *Cell) *run.Kernel {
	var one sync.Mutex
	return func(ctx context.Context, c *Cell) *run.Kernel {
		p := *plan
		if c.Seed != 0 {
			p.Seed = c.Seed
		}
		p.Jobs = slices.Clone(plan.Jobs)
		for i, j := range p.Jobs {
			if j.Host == nil {
				continue
			}
			h := *j.Host
			h.Context, h.Core, h.Outs = ctx, c.Named(h.Core), slices.Clone(h.Outs)
			for i := range h.Outs {
				h.Outs[i].Host = c.Named(h.Outs[i].Host)
			}
			if wanted := h.Wanted; wanted != nil {
				h.Wanted = func(asked []string, has func(string) bool) []string {
					one.Lock()
					defer one.Unlock()
					return wanted(asked, has)
				}
			}
			p.Jobs[i].Host = &h
		}
		return &p
	}
}

// Named is the name of a kernel's own file or folder: the kernel's label stands before the extension, as in
// trace-6.12.json. "" stays.
func (c *Cell) Named(file string) string {
	if file == "" {
		return ""
	}
	dir, name := filepath.Split(filepath.Clean(file))
	ext := filepath.Ext(name)
	if ext == name {
		ext = "" // .name
	}
	return dir + strings.TrimSuffix(name, ext) + "-" + c.Label + ext
}
