package kprobelab_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// The buffers of a system call take no more memory of a task than the bound says.
func TestBuffersOfASystemCallThatAreTooLarge(t *testing.T) {
	l, err := Open("", nil)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	require.ErrorIs(t, l.MapUser(bounded.SyscallBuffers), errno.ENOSYS, "it is asked for: the guest kernel has no mmap")
	err = l.MapUser(bounded.SyscallBuffers + 1)
	require.ErrorIs(t, err, errno.ENOMEM)
	require.ErrorContains(t, err, "67108865 bytes for a system call's buffers, 67108864 are possible")
}
