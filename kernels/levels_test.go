package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLevelsOfDebian(t *testing.T) {
	var list []Listed
	for _, r := range []string{
		"6.12.118+deb13-cloud-amd64", "6.1.0-9-cloud-amd64", "6.12.107+deb13-cloud-amd64", "6.12.107+deb12-cloud-amd64", "6.1.0-56-cloud-amd64",
		"6.1.0-0.deb11.52-cloud-amd64", "6.12.90+deb13.1-cloud-amd64", "7.3-cloud-amd64", "7.3.4+deb13-amd64", "own", "6.1.0-56-cloud-amd64",
	} {
		list = append(list, Listed{&Kernel{Release: r}, true})
	}
	got := Levels(list, DefaultFlavour)
	require.Equal(t, []string{
		"6.1.0-9-cloud-amd64", "6.1.0-56-cloud-amd64", "6.12.90+deb13.1-cloud-amd64", "6.12.107+deb13-cloud-amd64", "6.12.118+deb13-cloud-amd64", "7.3-cloud-amd64",
	}, got)
	for _, c := range []struct {
		words    []string
		from, to int
	}{{nil, 0, 5}, {[]string{"6.1", "newest"}, 1, 5}, {[]string{"6.12.118+deb13-cloud-amd64", "6.1.0-9-cloud-amd64"}, 0, 4}, {[]string{"6.12", "6.12"}, 4, 4}} {
		part, err := Between(got, c.words)
		require.NoError(t, err)
		require.Equal(t, got[c.from:c.to+1], part, c.words)
	}
	for _, words := range [][]string{{"6.1"}, {"6.1", "6.2"}, {"6.1", "trixie"}, {"6.1", "?"}, {"a", "b", "c"}} {
		_, err := Between(got, words)
		require.ErrorIs(t, err, ErrKernel, words)
	}
}
