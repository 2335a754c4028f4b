package boottext

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHashesOfOneSeed: that hashes differ explains nothing. One seed has to make each of them of the one that
// the compiler wrote, and none may be an ENDBR.
func TestHashesOfOneSeed(t *testing.T) {
	const (
		seed  = 0x5ce0a317
		endbr = 0xfa1e0ff3
		other = 0x11223344
	)
	again := rehash(endbr^seed, seed)
	require.NotEqual(t, uint32(endbr), again)
	made := hash{other, other ^ seed}
	for name, c := range map[string]struct {
		list []hash
		want bool
	}{
		"none":                   {nil, false},
		"one":                    {[]hash{made}, true},
		"two_of_one_seed":        {[]hash{made, {0xfedcba98, 0xfedcba98 ^ seed}}, true},
		"two_seeds":              {[]hash{made, {0xfedcba98, 0xfedcba98 ^ seed ^ 1}}, false},
		"one_stays":              {[]hash{made, {0xfedcba98, 0xfedcba98}}, false},
		"all_stay":               {[]hash{{other, other}, {0xfedcba98, 0xfedcba98}}, true},
		"an_endbr_is_made_again": {[]hash{made, {endbr ^ seed, again}}, true},
		"as_the_first_one":       {[]hash{{endbr ^ seed, again}, made}, true},
		"an_endbr_as_it_comes":   {[]hash{made, {endbr ^ seed, endbr}}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, oneSeed(c.list)) })
	}
}

// TestHashesThatAreEndbrs: neither a hash nor its negative is one.
func TestHashesThatAreEndbrs(t *testing.T) {
	for _, v := range []uint32{0xfa1e0ff3, 0xfb1e0ff3, 0x001f0f66, 0xd6401f0f} {
		for _, v := range []uint32{v, -v} {
			got := rehash(v, 0)
			require.False(t, isEndbr(got) || isEndbr(-got), "%x", v)
		}
	}
	require.Equal(t, uint32(5), rehash(4, 1))
}
