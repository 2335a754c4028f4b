package booted

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// The buffers of a system call take no more memory of a task than the bound says.
func TestBuffersOfASystemCallThatAreTooLarge(t *testing.T) {
	err := (&Kernel{}).MapUser(bounded.SyscallBuffers + 1)
	require.ErrorIs(t, err, errno.ENOMEM)
	require.ErrorContains(t, err, "67108865 bytes for a system call's buffers, 67108864 are possible")
	require.NoError(t, (&Kernel{user: arena{size: bounded.SyscallBuffers}}).MapUser(bounded.SyscallBuffers))
}
