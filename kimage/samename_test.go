package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSameName(t *testing.T) {
	both := []Symbol{{Name: "f"}, {Name: "f", Module: "a"}, {Name: "f", Module: "b"}}
	require.Equal(t, 3, SameName(both, false))
	require.Equal(t, 1, SameName(both, true))
	require.Equal(t, 2, SameName(both[1:], true))
	require.Zero(t, SameName(nil, true))
}
