package kprobelab_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// countedReader is x86asm, and counts what it is asked; blind, it knows nothing.
type countedReader struct {
	decoder.X86asm
	mu    sync.Mutex
	asked int
	blind bool
}

func (r *countedReader) Read(b []byte, at x86.Addr) decoder.Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.blind {
		return decoder.Reading{}
	}
	return r.X86asm.Read(b, at)
}

// TestReaderOfRegistrations: the Reader of the Options is asked about every
// registration, and decides where it stands alone.
func TestReaderOfRegistrations(t *testing.T) {
	for name, k := range map[string]struct {
		blind, alone bool
		want         error
	}{
		"sees": {}, "sees_alone": {alone: true}, "blind_under_the_kernel": {blind: true}, "blind_alone": {true, true, errno.EILSEQ},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &countedReader{blind: k.blind}
			var r decoder.Reader = counted
			if k.alone {
				r = decoder.Alone{Reader: r}
			}
			lab, err := kprobelab.Open("", &kprobelab.Options{Reader: r, Optimize: true})
			require.NoError(t, err)
			defer lab.Close()
			p := &kprobes.Kprobe{SymbolName: "gcd", Offset: 8}
			err = lab.Kprobes.RegisterKprobe(p)
			require.ErrorIs(t, err, k.want)
			require.Positive(t, counted.asked)
			if err == nil {
				lab.Kprobes.UnregisterKprobe(p)
			}
		})
	}
}
