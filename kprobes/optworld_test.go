package kprobes_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// optWorld is the fake machine with a function whose probes can be optimized
// and overlap, and with CPUs that see changed text late: until it is
// synchronized, a CPU may fetch of every byte any value that it had since.
type optWorld struct {
	*fakeMachine
	k    *kprobes.Kprobes
	over x86.Addr
	rng  *rand.Rand
	// stale holds, by CPU and address, the values of the byte since the last SyncCore.
	stale []map[x86.Addr][]byte
	// threads are the tasks' current calls, calls how many each has ended.
	threads []*thread
	calls   []uint64
	// jumps are all jumps that were ever built for an address.
	jumps map[x86.Addr][][]byte
	torn  []string
	// leaveOut names a step of the text changes that this machine does not
	// make, such as "optimize: sync after tail"; "wait" is the grace period.
	leaveOut string
	// doing is the last step.
	doing string
	clean string
}

var _ kprobes.Patcher = (*optWorld)(nil)

// over(x) = x+5, in instructions of 3 and 4 bytes and a ret; then nops.
var (
	overCode   = movAX + strings.Repeat(addAX, 5) + ret + strings.Repeat(nop, 8)
	overStarts = []int64{0, 3, 7, 11, 15, 19, 23, 24}
	overSizes  = map[int64]int{0: 7, 3: 8, 7: 8, 11: 8, 15: 8, 19: 5, 23: 5}
)

const overResult = 5

func newOptWorld(t testing.TB, kernel string) *optWorld {
	c, ok := profile.Named(kernel)
	require.True(t, ok)
	w := newOptWorldOf(c, 1)
	t.Cleanup(func() {
		if !t.Failed() {
			require.NoError(t, w.k.Settle())
			require.Equal(t, 0, w.k.Registered(), "probes left")
			require.Equal(t, w.clean, w.text(), "text is not restored")
			used, garbage := kprobes.Detours(w.k)
			require.Equal(t, used, garbage, "detour buffers are lost")
			require.NoError(t, w.k.Err())
		}
	})
	return w
}

func newOptWorldOf(c *profile.Config, seed uint64) *optWorld {
	w := &optWorld{fakeMachine: newFake(2), rng: rand.New(rand.NewPCG(seed, 1)), jumps: map[x86.Addr][][]byte{}}
	w.stale = []map[x86.Addr][]byte{{}, {}}
	w.threads, w.calls = make([]*thread, 2), make([]uint64, 2)
	w.over = w.add("over", overCode)
	w.built = w.text()
	w.fetch = w.fetched
	w.k = kprobes.New(w, w.fakeMachine, c)
	if err := w.k.InitOptprobes(); err != nil {
		panic(err)
	}
	w.clean = w.text()
	return w
}

// PokeTextNoSync implements kprobes.Patcher.
func (w *optWorld) PokeTextNoSync(addr x86.Addr, b []byte) error {
	if w.doing = w.stepName(addr, b); w.doing == w.leaveOut {
		return nil
	}
	for i := range b {
		at := addr.Add(int64(i))
		old := w.mem(at, 1)[0]
		for cpu := range w.stale {
			w.stale[cpu][at] = append(w.stale[cpu][at], old)
		}
	}
	return w.fakeMachine.PokeText(addr, b)
}

// stepName returns the step that a write belongs to: an int3 over an int3 begins to optimize, an
// int3 over a jump to undo; an int3 over an instruction arms.
func (w *optWorld) stepName(addr x86.Addr, b []byte) string {
	dir, _, _ := strings.Cut(w.doing, ":")
	old := w.mem(addr, 1)[0]
	switch {
	case len(b) > 1:
		return dir + ": tail"
	case b[0] == 0xe9:
		return dir + ": first"
	case b[0] != 0xcc:
		return "disarm: first"
	case old == 0xcc:
		return "optimize: int3"
	case old == 0xe9:
		return "undo: int3"
	}
	return "arm: first"
}

// PokeText is a change whose bytes every CPU sees at once.
func (w *optWorld) PokeText(addr x86.Addr, b []byte) error {
	for i := range b {
		for cpu := range w.stale {
			delete(w.stale[cpu], addr.Add(int64(i)))
		}
	}
	return w.fakeMachine.PokeText(addr, b)
}

// SyncCore implements kprobes.Patcher.
func (w *optWorld) SyncCore(cpu int) {
	if dir, step, _ := strings.Cut(w.doing, ": "); dir+": sync after "+step != w.leaveOut {
		clear(w.stale[cpu])
	}
}

// TaskSwitches implements kprobes.Patcher.
func (w *optWorld) TaskSwitches(task int) (uint64, bool, bool) {
	if task >= len(w.threads) {
		return 0, false, false
	}
	t := w.threads[task]
	return w.calls[task], t != nil && !t.done && w.leaveOut != "wait", true
}

// fetched returns the bytes that a CPU executes, which may be stale, and checks them (checkWhole).
func (w *optWorld) fetched(cpu int, at x86.Addr, code []byte) []byte {
	if len(w.stale[cpu]) > 0 {
		code = bytes.Clone(code)
		for i := range code {
			if old := w.stale[cpu][at.Add(int64(i))]; len(old) > 0 {
				if n := w.rng.IntN(len(old) + 1); n < len(old) {
					code[i] = old[n]
				}
			}
		}
	}
	if off := at.Sub(w.over); off >= 0 && off < int64(len(overCode)) {
		w.checkWhole(at, off, code)
	}
	return code
}

// checkWhole notes an instruction that is none of: the original, an int3, a
// jump to a detour buffer of that address.
func (w *optWorld) checkWhole(at x86.Addr, off int64, code []byte) {
	switch code[0] {
	case 0xcc:
		return
	case 0xe9:
		if d, ok := w.k.Detour(at); ok {
			w.jumps[at] = append(w.jumps[at], d.Jump[:])
		}
		for _, j := range w.jumps[at] {
			if bytes.Equal(j, code[:5]) {
				w.jumps[at] = [][]byte{j}
				return
			}
		}
	default:
		for i, s := range overStarts {
			if s != off {
				continue
			}
			end := off + 1
			if i+1 < len(overStarts) {
				end = overStarts[i+1]
			}
			if string(code[:end-off]) == overCode[off:end] {
				return
			}
		}
	}
	w.torn = append(w.torn, fmt.Sprintf("over+%#x: % x", off, code[:5]))
}

// begin starts a call of over on a CPU, as the task of the same number.
func (w *optWorld) begin(cpu int, arg uint64) {
	w.threads[cpu] = w.start(cpu, cpu, w.over, arg)
}

// step lets a CPU execute one instruction; true when its call has ended.
func (w *optWorld) step(cpu int) bool {
	t := w.threads[cpu]
	if t == nil || t.done {
		return true
	}
	t.step()
	if t.done {
		w.calls[cpu]++
	}
	return t.done
}

// finish lets a CPU's call run to its end.
func (w *optWorld) finish(cpu int) error {
	for range 10000 {
		if w.step(cpu) {
			return w.threads[cpu].err
		}
	}
	return fmt.Errorf("cpu %d runs away", cpu)
}

// result makes a call on CPU 0.
func (w *optWorld) result(t testing.TB, arg uint64) {
	t.Helper()
	w.begin(0, arg)
	require.NoError(t, w.finish(0))
	require.EqualValues(t, arg+overResult, w.threads[0].regs.AX)
	require.Empty(t, w.torn)
}

// at is a place of over.
func (w *optWorld) place(off int64) x86.Addr { return w.over.Add(off) }

// bytesAt are the five bytes in memory at a place of over.
func (w *optWorld) bytesAt(off int64) []byte { return bytes.Clone(w.mem(w.place(off), 5)) }

// detourInsn executes the instructions of a detour buffer and its callback.
func (t *thread) detourInsn(c []byte, rel32 func(int) uint64) bool {
	r := &t.regs
	switch {
	case bytes.HasPrefix(c, []byte{0x0f, 0x1f, 0x00}): // nop of 3 bytes
		r.IP += 3
	case bytes.HasPrefix(c, []byte{0x48, 0x89, 0xe6}): // mov %rsp,%rsi
		r.SI = r.SP
		r.IP += 3
	case bytes.HasPrefix(c, []byte{0x48, 0x89, 0xf7}): // mov %rsi,%rdi
		r.DI = r.SI
		r.IP += 3
	case bytes.HasPrefix(c, []byte{0x48, 0x89, 0x7e}): // mov %rdi,disp8(%rsi)
		t.f.setWord(x86.Addr(r.SI+uint64(c[3])), r.DI)
		r.IP += 4
	case bytes.HasPrefix(c, []byte{0x48, 0xbf}): // movabs $imm64,%rdi
		r.DI = binary.LittleEndian.Uint64(c[2:])
		r.IP += 10
	case bytes.HasPrefix(c, []byte{0x48, 0x8b, 0x94, 0x24}): // mov disp32(%rsp),%rdx
		r.DX = t.f.word(x86.Addr(r.SP + rel32(4)))
		r.IP += 8
	case bytes.HasPrefix(c, []byte{0x48, 0x89, 0x94, 0x24}): // mov %rdx,disp32(%rsp)
		t.f.setWord(x86.Addr(r.SP+rel32(4)), r.DX)
		r.IP += 8
	default:
		return false
	}
	return true
}
