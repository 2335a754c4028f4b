package breakpoints

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/watch/registers"
	"kprobelab/x86"
)

// Random questions repeat by their seed, ask for all that there is, and are refused for each of
// the reasons that have an errno of their own.
func TestRandomQuestions(t *testing.T) {
	k := registers.Kernel{CPUs: 2, Restricted: true, Blacklisted: func(at x86.Addr) bool { return at%2 == 0 }}
	c := Choice{CPUs: 2, Hotplug: true, Kernel: []x86.Addr{0xffffffff81000000}}
	kinds, errnos := map[uint64]bool{}, map[int64]bool{}
	for seed := range uint64(60) {
		list := Random(rand.New(rand.NewPCG(seed, 2)), c, k, 300)
		require.Equal(t, list, Random(rand.New(rand.NewPCG(seed, 2)), c, k, 300))
		require.Len(t, Encode(list), len(list)*binary.Size(Ask{}))
		got := Answers(k, list)
		require.Empty(t, Differences(k, list, got))
		require.Len(t, Differences(k, list, got[:len(got)-1]), 1)
		for i, a := range list {
			kinds[a.What] = true
			errnos[-got[i]] = true
			require.NotEmpty(t, a.String())
		}
	}
	require.Len(t, kinds, Online+1)
	for _, e := range []errno.Errno{errno.EPERM, errno.EIO, errno.EACCES, errno.EINVAL, errno.ENOSPC, errno.EOPNOTSUPP, errno.ENODEV} {
		require.True(t, errnos[int64(e)], e.Error())
	}
}

func TestRead(t *testing.T) {
	list, err := Read("0\n-28\n4294905840\n")
	require.NoError(t, err)
	require.Equal(t, []int64{0, -28, 4294905840}, list)
	_, err = Read("0\nKilled\n")
	require.ErrorContains(t, err, `answer 1: "Killed\n" is no number`)
}
