package boot

import (
	"context"

	"kprobelab/kernels"
)

// Keep boots a kernel of a store as the options say, but for Kernel, and keeps its memory there. Progress may be nil.
func Keep(ctx context.Context, s *kernels.Store, k *kernels.Kernel, o *Options, progress func(stage string, done, total int64)) error {
	with := *o
	var err error
	if with.Kernel, err = Open(k.Image, nil); err != nil {
		return err
	}
	return s.SaveDump(ctx, k, func(file string) error {
		return Boot(ctx, &with, func(g *Guest) error {
			_, err := g.Save(&Dump{File: file, Format: Zstd, Progress: progress})
			return err
		})
	})
}
