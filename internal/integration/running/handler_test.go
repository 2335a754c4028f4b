package running

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// TestHandlersCallTheGuest has a handler call the kernel for longer than a turn of a
// processor and for longer than a tick, and the interrupted call go on after it.
func TestHandlersCallTheGuest(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		text, err := k.Machine.Alloc(64)
		require.NoError(t, err)
		require.NoError(t, k.Machine.WriteMem(text, []byte("%d %d\x00")))
		out := text + 16
		inner, preempt := uint64(0), uint32(0)
		p := &kprobes.Kprobe{SymbolName: "hex_to_bin", PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
			preempt = k.Kprobes.PreemptCount()
			for range 20_000 {
				n, err := k.Machine.Call("snprintf", out, 48, text, 1, 22)
				require.NoError(t, err)
				inner += n
			}
			return 0
		}}
		require.NoError(t, k.Kprobes.RegisterKprobe(p))
		before := k.Machine.Instructions()
		v, err := k.Call("hex_to_bin", 'b')
		require.NoError(t, err)
		require.EqualValues(t, 11, v)
		require.True(t, countsNMI(k, preempt), "the kernel counts an NMI as %#x", preempt)
		require.EqualValues(t, 20_000*len("1 22"), inner)
		require.Greater(t, k.Machine.Instructions()-before, uint64(10_000_000), "the handler took longer than a tick")
		ticks, _ := k.Machine.Interrupts()
		for i := 0; ; i++ {
			require.Less(t, i, 1000, "no tick came after the handler")
			_, err := k.Machine.Call("snprintf", out, 48, text, 1, 22)
			require.NoError(t, err)
			if n, _ := k.Machine.Interrupts(); n > ticks {
				break
			}
		}
	})
}

// countsNMI reports whether the kernel's code adds this count to the preempt count, as it
// does in the entry of an NMI.
func countsNMI(k *kernel, count uint32) bool {
	at := k.Image.Lookup("_stext")[0].Addr
	text := make([]byte, k.Image.Lookup("_etext")[0].Addr.Sub(at))
	k.Image.CodeAt(at, text)
	imm := binary.LittleEndian.AppendUint32(nil, count)
	for _, op := range []string{"\x65\x81\x05", "\x65\x48\x81\x05"} { // add $count,%gs:(%rip)
		for from := text; ; {
			i := bytes.Index(from, []byte(op))
			if i < 0 {
				break
			}
			from = from[i+len(op):]
			if len(from) >= 8 && bytes.Equal(from[4:8], imm) {
				return true
			}
		}
	}
	return false
}
