package probepoint_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
)

// TestSlotRefusal: a refusal by the slot package keeps its rule, its errno and
// its error.
func TestSlotRefusal(t *testing.T) {
	v := kernel(movAX, "\xff\x27") // jmp *(%rdi)
	c := named(t, "6.1")
	p, err := probepoint.Resolve(v, probepoint.Request{Symbol: "fn", Offset: 3}, c)
	require.NoError(t, err)
	_, err = probepoint.Place(v, &p, 0xffffffffc0000000, false, c)
	refused(t, err, errno.EOPNOTSUPP, rule.BranchMemory)
	var e *slot.Error
	require.True(t, errors.As(err, &e))
}

// TestPlace: the four ways.
func TestPlace(t *testing.T) {
	const slotAddr = 0xffffffffc0000000
	tests := map[string]struct {
		body   string
		kernel string
		post   bool
		how    probepoint.How
	}{
		"stepped":             {movAX, "6.1", false, probepoint.Stepped},
		"boosted":             {movAX, "5.10", false, probepoint.Boosted},
		"post_is_not_boosted": {movAX, "5.10", true, probepoint.Stepped},
		"emulated":            {"\xe8\x00\x00\x00\x00", "6.1", false, probepoint.Emulated},
		"boost_is_first":      {ret, "5.10", false, probepoint.Boosted},
		"emulated_with_post":  {ret, "5.10", true, probepoint.Emulated},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v, c := kernel(tc.body, ret), named(t, tc.kernel)
			p, err := probepoint.Resolve(v, probepoint.Request{Symbol: "fn"}, c)
			require.NoError(t, err)
			got, err := probepoint.Place(v, &p, slotAddr, tc.post, c)
			require.NoError(t, err)
			require.Equal(t, tc.how, got.How)
			require.NotEmpty(t, got.How.String())
		})
	}
}
