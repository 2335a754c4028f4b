package ring

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// written is a record as the model keeps it.
type written struct {
	time uint64
	data []byte
}

// model holds all records that were ever written on a CPU, and the consuming reader's position.
type model struct {
	all  []written
	next int
	lost uint64
}

func padded(data []byte) []byte {
	n := max(len(data), 1)
	n = (n + 3) &^ 3
	if n == 8 && len(data) <= maxSmall { // 12 bytes with the header become 16
		n = 12
	}
	return append(data, make([]byte, n-len(data))...)
}

func checkCounts(t *rapid.T, b *Buffer, cpu int, m *model) {
	s := b.Stats(cpu)
	require.Equal(t, uint64(len(m.all)), s.Entries+s.Overrun+s.Read)
	require.GreaterOrEqual(t, s.Bytes, int64(0))
	if s.Entries == 0 {
		require.Less(t, s.Bytes, int64(PageData))
	}
}

func TestAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.IntRange(1, 3).Draw(t, "cpus")
		b := New(cpus, rapid.IntRange(1, 4*PageData).Draw(t, "size"))
		models := make([]model, cpus)
		now := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				cpu := rapid.IntRange(0, cpus-1).Draw(t, "cpu")
				length := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, MaxRecord)).Draw(t, "length")
				for range rapid.IntRange(1, 60).Draw(t, "times") {
					now += rapid.OneOf(rapid.Uint64Range(0, 3000), rapid.Uint64Range(maxDelta-1, 1<<40)).Draw(t, "later")
					data := make([]byte, length)
					for i := range data {
						data[i] = byte(len(models[cpu].all) + i)
					}
					require.True(t, b.Write(cpu, now, data))
					models[cpu].all = append(models[cpu].all, written{now, padded(data)})
				}
			},
			"consume": func(t *rapid.T) {
				last := uint64(0)
				for range rapid.IntRange(1, 30).Draw(t, "times") {
					r, ok := b.Consume(AllCPUs, nil)
					if !ok {
						in, _ := b.Counts()
						require.Zero(t, in)
						return
					}
					m := &models[r.CPU]
					m.next += int(r.Lost)
					m.lost += r.Lost
					require.Equal(t, m.all[m.next], written{r.Time, r.Data})
					m.next++
					require.GreaterOrEqual(t, r.Time, last)
					last = r.Time
				}
			},
			"iterate": func(t *rapid.T) {
				it := b.Iterate(AllCPUs)
				in, _ := b.Counts()
				at := map[int]int{}
				for range in {
					r, ok := it.Next(nil)
					require.True(t, ok)
					m := &models[r.CPU]
					from, seen := at[r.CPU]
					if !seen {
						from = m.next
					}
					i := from
					for m.all[i].time != r.Time || string(m.all[i].data) != string(r.Data) {
						i++
					}
					at[r.CPU] = i + 1
				}
				_, ok := it.Next(nil)
				require.False(t, ok)
				for cpu, end := range at {
					require.Len(t, models[cpu].all, end, "the newest record is the last")
				}
			},
			"resize": func(t *rapid.T) {
				cpu := rapid.IntRange(-1, cpus-1).Draw(t, "cpu")
				require.True(t, b.Resize(cpu, rapid.IntRange(1, 6*PageData).Draw(t, "size")))
			},
			"": func(t *rapid.T) {
				for cpu := range models {
					checkCounts(t, b, cpu, &models[cpu])
				}
			},
		})
	})
}

func TestOverwriteTakesTheOldestPage(t *testing.T) {
	b := New(1, 2*PageData)
	record := make([]byte, 60) // 64 with its header: 63 on a page, 48 bytes left
	for i := range 63 * 2 {
		require.True(t, b.Write(0, uint64(i), record))
	}
	require.Equal(t, Stats{Entries: 126, Bytes: 63*64*2 + 48}, b.Stats(0))
	require.True(t, b.Write(0, 126, record))
	require.Equal(t, Stats{Entries: 64, Overrun: 63, Bytes: PageData + 64, OldestTime: 63}, b.Stats(0))
	r, ok := b.Consume(AllCPUs, nil)
	require.True(t, ok)
	require.Equal(t, uint64(63), r.Lost)
	require.Equal(t, uint64(63), r.Time)
	require.Equal(t, "CPU:0 [LOST 63 EVENTS]\n", r.LostLine())
	r, ok = b.Consume(AllCPUs, nil)
	require.True(t, ok)
	require.Zero(t, r.Lost)
	require.Empty(t, r.LostLine())
}

func TestWithoutOverwriteTheNewestIsDropped(t *testing.T) {
	b := New(1, 1)
	b.SetOverwrite(false)
	require.False(t, b.Overwrite())
	for i := range 63 * 2 {
		require.True(t, b.Write(0, uint64(i), make([]byte, 60)))
	}
	for range 5 {
		require.False(t, b.Write(0, 200, make([]byte, 60)))
	}
	require.Equal(t, Stats{Entries: 126, Dropped: 5, Bytes: 2 * PageData}, b.Stats(0))
}

func TestReadersPageIsNotOverwritten(t *testing.T) {
	b := New(1, 1)
	write := func(n int) {
		for range n {
			b.Write(0, 0, make([]byte, 60))
		}
	}
	write(63)
	_, ok := b.Consume(0, nil)
	require.True(t, ok)
	write(63 * 5)
	for range 62 {
		r, ok := b.Consume(0, nil)
		require.True(t, ok)
		require.Zero(t, r.Lost)
	}
	r, ok := b.Consume(0, nil)
	require.True(t, ok)
	require.Equal(t, uint64(63*3), r.Lost)
}

func TestIteratorCountsWhatIsOverwrittenUnderIt(t *testing.T) {
	b := New(1, 1)
	for i := range 63 * 2 {
		b.Write(0, uint64(i), make([]byte, 60))
	}
	it := b.Iterate(AllCPUs)
	_, ok := it.Next(nil)
	require.True(t, ok)
	b.Write(0, 200, make([]byte, 60))
	r, ok := it.Next(nil)
	require.True(t, ok)
	require.Equal(t, uint64(63), r.Time)
	require.Equal(t, uint64(62), r.Lost)

	b.Reset()
	_, ok = it.Next(nil)
	require.False(t, ok)
	b.Write(0, 300, []byte("a"))
	r, ok = it.Next(nil)
	require.True(t, ok)
	require.Equal(t, Record{Time: 300, Data: []byte("a\x00\x00\x00")}, r)
}

func TestLongestRecord(t *testing.T) {
	b := New(1, 0)
	require.True(t, b.Write(0, 1, make([]byte, MaxRecord)))
	require.True(t, b.Write(0, 1<<40, make([]byte, MaxRecord)))
	require.False(t, b.Write(0, 1<<40, make([]byte, MaxRecord+1)))
	r, ok := b.Peek(AllCPUs, nil)
	require.True(t, ok)
	require.Len(t, r.Data, MaxRecord)
	again, _ := b.Consume(AllCPUs, nil)
	require.Equal(t, r, again)
}

func TestEqualTimesGoByCPU(t *testing.T) {
	b := New(3, 0)
	for _, cpu := range []int{2, 0, 1} {
		b.Write(cpu, 7, []byte{byte(cpu)})
	}
	it := b.Iterate(AllCPUs)
	for want := range 3 {
		r, ok := it.Next(nil)
		require.True(t, ok)
		require.Equal(t, want, r.CPU)
		r, ok = b.Consume(AllCPUs, nil)
		require.True(t, ok)
		require.Equal(t, want, r.CPU)
		it = b.Iterate(AllCPUs)
	}
	b.Write(0, 8, nil)
	b.Write(1, 8, nil)
	r, ok := b.Consume(1, nil)
	require.True(t, ok)
	require.Equal(t, 1, r.CPU)
}

func TestSizes(t *testing.T) {
	b := New(2, 0)
	size, same := b.SameSize()
	require.True(t, same)
	require.Equal(t, 1410, size>>10)
	require.True(t, b.Resize(1, 4096))
	_, same = b.SameSize()
	require.False(t, same)
	require.Equal(t, 1410+7, b.TotalKB())
	require.Equal(t, 2*PageData, b.Size(1))
	for _, bad := range []int{0, -1, MaxSize + 1} {
		require.False(t, b.Resize(AllCPUs, bad))
	}
	require.Equal(t, 2, b.CPUs())
}

// Swapped buffers have each other's records, sizes and counters; iterators and waiting readers
// notice.
func TestSwap(t *testing.T) {
	a, b := New(2, 100_000), New(2, 1)
	a.Write(0, 1, []byte("a000"))
	a.Write(1, 2, []byte("a111"))
	it, changed := a.Iterate(AllCPUs), a.Changed()
	a.Swap(b)
	<-changed
	_, ok := it.Next(nil)
	require.False(t, ok, "what it iterated over has gone")
	in, written := b.Counts()
	require.Equal(t, [2]uint64{2, 2}, [2]uint64{in, written})
	in, _ = a.Counts()
	require.Zero(t, in)
	require.Equal(t, 2*PageData, a.Size(0))
	a.Write(0, 3, []byte("newr"))
	a.Swap(b)
	r, ok := b.Consume(AllCPUs, nil)
	require.True(t, ok)
	require.Equal(t, "newr", string(r.Data))
	r, ok = a.Consume(AllCPUs, nil)
	require.True(t, ok)
	require.Equal(t, "a000", string(r.Data))
}

func TestStatsText(t *testing.T) {
	b := New(1, 0)
	b.Write(0, 1_500_000_499, []byte("abcd"))
	require.Equal(t, strings.Join([]string{
		"entries: 1", "overrun: 0", "commit overrun: 0", "bytes: 8", "oldest event ts:     1.500000",
		"now ts:     2.000001", "dropped events: 0", "read events: 0", "",
	}, "\n"), b.Stats(0).Text(2_000_000_500, true))
}

func TestChangedWakesAtTheNextWrite(t *testing.T) {
	b := New(1, 0)
	first, second := b.Changed(), b.Changed()
	b.Write(0, 1, nil)
	<-first
	<-second
	third := b.Changed()
	select {
	case <-third:
		t.Fatal("woken without a write")
	default:
	}
	b.Wake()
	<-third
}

func TestWriteDoesNotAllocate(t *testing.T) {
	b := New(1, 1)
	record := make([]byte, 48)
	require.Zero(t, testing.AllocsPerRun(1000, func() { b.Write(0, 1, record) }))
}

// A writer for each CPU, a consumer, and an iterator, at once: the read and the lost records add up
// to the written ones.
func TestHammer(t *testing.T) {
	const cpus, each = 2, 20_000
	b := New(cpus, 4*PageData)
	var writers sync.WaitGroup
	for cpu := range cpus {
		writers.Go(func() {
			var record [16]byte
			for i := range uint64(each) {
				binary.NativeEndian.PutUint64(record[:], i)
				b.Write(cpu, i, record[:])
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			it := b.Iterate(AllCPUs)
			for range 500 {
				if _, ok := it.Next(nil); !ok {
					break
				}
			}
			b.Resize(AllCPUs, 3*PageData)
			b.Resize(AllCPUs, 5*PageData)
		}
	})
	readers.Go(func() { writers.Wait(); close(stop) })
	var got, lost [cpus]uint64
	var buf []byte
	for done := false; ; {
		r, ok := b.Consume(AllCPUs, buf)
		if !ok {
			if done {
				break
			}
			select {
			case <-stop:
				done = true
			default:
			}
			continue
		}
		buf = r.Data
		lost[r.CPU] += r.Lost
		require.Equal(t, got[r.CPU]+lost[r.CPU], binary.NativeEndian.Uint64(r.Data))
		got[r.CPU]++
	}
	readers.Wait()
	for cpu := range cpus {
		require.Equal(t, uint64(each), got[cpu]+lost[cpu])
	}
}

func BenchmarkWrite(b *testing.B) {
	buf := New(1, 0)
	record := make([]byte, 48)
	b.ReportAllocs()
	now := uint64(0)
	for b.Loop() {
		now += 1000
		buf.Write(0, now, record)
	}
}

func BenchmarkConsume(b *testing.B) {
	buf := New(2, 0)
	record := make([]byte, 48)
	b.ReportAllocs()
	now := uint64(0)
	var space []byte
	for b.Loop() {
		now += 1000
		buf.Write(int(now/1000)&1, now, record)
		r, _ := buf.Consume(AllCPUs, space)
		space = r.Data
	}
}

func Example() {
	b := New(2, 0)
	b.Write(1, 2000, []byte("second"))
	b.Write(0, 1000, []byte("first"))
	for {
		r, ok := b.Consume(AllCPUs, nil)
		if !ok {
			break
		}
		fmt.Printf("[%03d] %dns %s\n", r.CPU, r.Time, strings.TrimRight(string(r.Data), "\x00"))
	}
	// Output:
	// [000] 1000ns first
	// [001] 2000ns second
}
