package ways

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage"
)

// What the verifier refuses does not load; what a site or a trampoline cannot do is refused
// when the program is attached. As bpftrace on the booted kernels says it.
func TestRefusedWhenLoadedOrWhenAttached(t *testing.T) {
	type answer struct {
		loads bool
		err   errno.Errno
	}
	for name, functions := range map[string]map[string]answer{
		"6.1": {
			"vfs_read":           {true, 0},
			"bitfill_unaligned":  {true, errno.ENOTSUPP}, // eight words of arguments
			"ZSTD_buildFSETable": {true, errno.ENOTSUPP},
			"migrate_disable":    {false, errno.EINVAL}, // a set of the verifier's
		},
		"6.12": {
			"bitfill_unaligned": {true, 0},
			"_copy_from_iter":   {true, errno.EBUSY}, // no site
			"migrate_disable":   {false, errno.EINVAL},
		},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(dumps.File(t, name), nil)
			require.NoError(t, err)
			b := ForBpftrace(img)
			for function, want := range functions {
				verified, err := b.Trampoline(function, true)
				assert.Equal(t, want.err, errno.Of(err), function)
				assert.Equal(t, want.loads, !verified || err == nil, function)
			}
		})
	}
}
