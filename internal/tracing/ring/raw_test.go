package ring

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadPageCountsWhatWasLost(t *testing.T) {
	b := New(1, 2*PageData)
	written := uint64(0)
	for ; b.Stats(0).Overrun == 0; written++ {
		require.True(t, b.Write(0, 1000+written, []byte{1, 2, 3, 4}))
	}
	var page [PageSize]byte
	require.True(t, b.ReadPage(0, &page))
	commit := binary.NativeEndian.Uint64(page[8:])
	require.NotZero(t, commit&missedEvents)
	n := commit & (missedStored - 1)
	if commit&missedStored != 0 {
		require.Equal(t, b.Stats(0).Overrun, binary.NativeEndian.Uint64(page[pageHeader+n:]))
	}
	for b.ReadPage(0, &page) {
		require.Zero(t, binary.NativeEndian.Uint64(page[8:])&missedEvents)
	}
	s := b.Stats(0)
	require.Zero(t, s.Entries)
	require.Equal(t, written, s.Read+s.Overrun)
}

// What a reader of records has taken is not on the page any more, and the
// page's time is such that the first event's delta leads to its own.
func TestReadPageAfterARecord(t *testing.T) {
	b := New(1, 0)
	for i := range uint64(3) {
		b.Write(0, 100*(i+1), []byte{byte(i), 0, 0, 0})
	}
	_, ok := b.Consume(0, nil)
	require.True(t, ok)
	var dst [PageSize]byte
	require.True(t, b.ReadPage(0, &dst))
	p := page{mem: dst[:]}
	at, now := 0, p.stamp()
	for i := range uint64(2) {
		e := p.event(at)
		at, now = at+e.length, now+e.delta
		require.Equal(t, 100*(i+2), now)
		require.Equal(t, byte(i+1), e.data[0])
	}
	require.Equal(t, p.commit(), at)
	require.False(t, b.ReadPage(0, &dst))
}
