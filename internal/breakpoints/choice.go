package breakpoints

import (
	"kprobelab/kimage"
	"kprobelab/watch/registers"
	"kprobelab/x86"
)

// plain are symbols of most kernels that kprobes accept or that are data.
var plain = []string{"vfs_read", "kfree", "do_exit", "jiffies_64", "init_task", "linux_banner"}

// ChoiceOf chooses addresses to ask a kernel about: the edges of the memory that no register may watch,
// functions on and off the blacklist, and data.
func ChoiceOf(k registers.Kernel, img *kimage.Image) Choice {
	c := Choice{CPUs: k.CPUs}
	for _, r := range k.Entry {
		c.Kernel = append(c.Kernel, r.Start, r.End-8)
	}
	for _, name := range plain {
		for _, s := range img.Lookup(name) {
			c.Kernel = append(c.Kernel, s.Addr)
		}
	}
	list := img.Blacklist()
	for i := 0; i < len(list); i += 1 + len(list)/16 {
		c.Kernel = append(c.Kernel, list[i].Start)
	}
	if len(c.Kernel) == 0 {
		c.Kernel = []x86.Addr{x86.UserEnd}
	}
	return c
}
