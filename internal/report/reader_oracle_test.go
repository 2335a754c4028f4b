package report

import (
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
)

// TestReadersAgreeOnKernels: at every boundary of three kernels, the answer is the same
// by x86asm with its overrides and by the tables; with the kernel's decoder over them,
// and alone. KPROBELAB_SOAK=1 tests all functions, a plain run every sixteenth.
func TestReadersAgreeOnKernels(t *testing.T) {
	stride := 16
	switch {
	case os.Getenv("KPROBELAB_SOAK") != "":
		stride = 1
	case testing.Short():
		stride = 128
	}
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			s := NewScan(openKernel(t, kernel, nil))
			functions, err := s.Functions()
			require.NoError(t, err)
			points, read, overruled := 0, 0, 0
			_, err = inOrderOf(functions, stride, func(f []kimage.Symbol) *readerPair {
				p := newReaderPair(s)
				for _, sym := range f {
					p.function(sym)
				}
				return p
			}, func(p *readerPair) {
				require.Empty(t, p.wrong)
				points, read, overruled = points+p.points, read+int(p.both.Compared()), overruled+p.overruled
				require.Empty(t, p.both.Differences())
			})
			require.NoError(t, err)
			t.Logf("%d boundaries, %d readings compared, %d where the kernel's decoder decides against both", points, read, overruled)
			require.Positive(t, points)
		})
	}
}

// inOrderOf calls do for every stride-th function, in batches on all
// processors, and then each with the results in order.
func inOrderOf(functions []kimage.Symbol, stride int, do func([]kimage.Symbol) *readerPair, each func(*readerPair)) (int, error) {
	var some []kimage.Symbol
	for i := 0; i < len(functions); i += stride {
		some = append(some, functions[i])
	}
	const batch = 64
	n := (len(some) + batch - 1) / batch
	return n, inOrder(n, func(i int) *readerPair { return do(some[i*batch : min(len(some), (i+1)*batch)]) },
		func(_ int, p *readerPair) error { each(p); return nil })
}

// readerPair asks by both Readers, each under the kernel's decoder and alone.
type readerPair struct {
	both              *decoder.Both
	scanners          [2][2]*scanner
	points, overruled int
	wrong             []ScanRow
}

func newReaderPair(s *Scan) *readerPair {
	p := &readerPair{both: decoder.NewBoth(decoder.X86asm{}, decoder.Tables{})}
	for i, readers := range [][2]decoder.Reader{
		{p.both, decoder.Tables{}}, {decoder.Alone{Reader: decoder.X86asm{}}, decoder.Alone{Reader: decoder.Tables{}}},
	} {
		for j, r := range readers {
			by := *s
			by.View = kimage.ReadBy(s.View, r)
			p.scanners[i][j] = by.scanner()
		}
	}
	return p
}

func (p *readerPair) function(sym kimage.Symbol) {
	for i, pair := range p.scanners {
		pair[0].keep(sym)
		pair[1].keep(sym)
		for n := range pair[0].steps {
			a := &pair[0].steps[n]
			if a.IsPadding() {
				continue
			}
			if i == 0 {
				p.points++
				if a.Overruled() {
					p.overruled++
				}
			}
			if n >= len(pair[1].steps) || pair[1].steps[n].Addr != a.Addr {
				p.wrong = append(p.wrong, ScanRow{Addr: known(a.Addr)})
				return
			}
			r := probepoint.Request{Addr: a.Addr}
			x, y := pair[0].row(r, pair[0].SlotAddr, a), pair[1].row(r, pair[1].SlotAddr, &pair[1].steps[n])
			if !reflect.DeepEqual(x, y) {
				p.wrong = append(p.wrong, x, y)
			}
		}
	}
}
