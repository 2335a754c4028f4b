package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage"
)

// Answers of booted kernels of Debian: to perf's event, then to kprobe_events, and to BPF's
// trampoline.
func TestWaysOfBootedKernels(t *testing.T) {
	for name, c := range map[string]struct {
		names int // of available_filter_functions
		// events are the answers of kprobe_events, entries and exits those of the trampoline.
		events, entries, exits map[string]errno.Errno
	}{
		"6.1": {35610, map[string]errno.Errno{
			"vfs_read": 0, "vfs_read+1": errno.EILSEQ, "init_once": errno.EADDRNOTAVAIL, "nothing": errno.ENOENT, "start_kernel": errno.EINVAL, "do_int3": errno.EINVAL,
		}, map[string]errno.Errno{"vfs_read": 0, "start_kernel": errno.EINVAL}, nil},
		"6.12": {40328, map[string]errno.Errno{
			"vfs_read": 0, "vfs_read+1": errno.EILSEQ, "init_once": errno.EINVAL, "nothing": errno.EINVAL, "start_kernel": errno.EINVAL, "_copy_from_iter": errno.EINVAL, "do_exit.cold": 0, "nothere:vfs_read": 0,
		}, map[string]errno.Errno{"_copy_from_iter": errno.EBUSY, "do_exit": 0, "migrate_disable": errno.EINVAL}, map[string]errno.Errno{"do_exit": errno.EINVAL}},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(dumps.File(t, name), nil)
			require.NoError(t, err)
			w := NewWays(OfImage(img))
			names := map[string]bool{}
			for s := range w.Traced {
				names[s.Name] = true
			}
			assert.Greater(t, len(names), c.names*9/10)
			assert.True(t, names["vfs_read"])
			assert.False(t, names["start_kernel"], "boot has freed it")
			assert.False(t, names["__x64_sys_getppid"], "an alias")
			for place, want := range c.events {
				assert.Equal(t, want, errno.Of(w.Events(place, false)), place)
			}
			for function, want := range c.entries {
				assert.Equal(t, want, errno.Of(w.Trampoline(function, false)), function)
			}
			for function, want := range c.exits {
				assert.Equal(t, want, errno.Of(w.Trampoline(function, true)), function)
			}
			assert.Equal(t, name != "6.1", w.Multi("ksys_read") == nil)
		})
	}
}
