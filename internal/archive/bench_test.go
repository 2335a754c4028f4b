package archive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/archive"
)

func BenchmarkPack(b *testing.B) {
	img := guest(b)
	for b.Loop() {
		_, err := archive.Pack(img, nil)
		require.NoError(b, err)
	}
}

func BenchmarkOpen(b *testing.B) {
	_, name := packed(b, guest(b))
	for b.Loop() {
		_, err := archive.Open(name)
		require.NoError(b, err)
	}
}
