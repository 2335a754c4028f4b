//go:build cgo && linux && amd64

package own

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kprobelab/emu"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// A kernel that has booted registers probes by itself: KPROBE_FLAG_DISABLED keeps it
// from writing the breakpoint, and everything else is decided and made.

// ErrNotBooted: the image is no memory dump of a booted kernel.
var ErrNotBooted = errors.New("the image is no memory dump of a booted kernel")

// Flags of a kprobe (include/linux/kprobes.h).
const (
	flagDisabled = 2
	flagFtrace   = 8
)

// Registration is what the kernel's register_kprobe made of a probe. Only Errno counts
// where that is not 0.
type Registration struct {
	// Errno is negative, 0 where the probe is registered.
	Errno int
	// Addr is where it was placed.
	Addr x86.Addr
	// Ftrace: the function tracer calls it, and there is no slot.
	Ftrace bool
	// Boostable: a jump back follows the copy in the slot.
	Boostable bool
	// Emulated: kprobes does what the instruction would do.
	Emulated bool
	// Optimized: a jump may replace the breakpoint.
	Optimized bool
	// Slot is where the copy is, 0 where there is none; Copy is what the kernel wrote
	// there, nil where it does not keep how much that was.
	Slot x86.Addr
	Copy []byte
}

// slotRoom is the most that is written to a slot: the copy, and the jump or int3
// after it.
const slotRoom = maxInsn + 5

// booted is what asking a booted kernel needs.
type booted struct {
	// probe is room for a struct kprobe, size bytes of it are used.
	probe *emu.Buf
	size  int
	at    probeLayout
	// said and failed are what came of the last address that was asked about.
	said   Registration
	failed error
	last   x86.Addr
}

// probeLayout is where the members of struct kprobe are, as BTF says.
type probeLayout struct {
	addr, flags, insn, emulate, written int
	boostable                           kimage.Member
}

// layoutOf reads it from the image's types.
func layoutOf(img *kimage.Image) (l probeLayout, size int, err error) {
	t, ok := img.Types().Struct("kprobe")
	if !ok {
		return l, 0, fmt.Errorf("struct kprobe: %w", kimage.ErrNoBTF)
	}
	find := func(path ...string) (m kimage.Member) {
		in := t
		for _, name := range path {
			next, found := in.Member(name)
			if !found {
				ok = false
				return m
			}
			next.Offset += m.Offset
			m, in = next, next.Type
		}
		return m
	}
	l.addr, l.flags = find("addr").Offset/8, find("flags").Offset/8
	l.insn, l.boostable = find("ainsn", "insn").Offset/8, find("ainsn", "boostable")
	if !ok {
		return l, 0, fmt.Errorf("struct kprobe is not the one of a kernel that is known: %w", ErrNotThere)
	}
	// These are not in every release.
	l.emulate, l.written = find("ainsn", "emulate_op").Offset/8, find("ainsn", "tp_len").Offset/8
	return l, t.Size(), nil
}

// getSlot takes a slot of a cache. The first one of a cache makes its page, which would
// take most of the time of each question.
const getSlot = "__get_insn_slot"

var slotCaches = []string{"kprobe_insn_slots", "kprobe_optinsn_slots"}

// boot makes a booted kernel ready for questions the first time.
func (k *Kernel) boot() (*booted, error) {
	if k.booted != nil || k.bootErr != nil {
		return k.booted, k.bootErr
	}
	b, err := k.makeReady()
	k.booted, k.bootErr = b, err
	return b, err
}

func (k *Kernel) makeReady() (b *booted, err error) {
	if k.img.Core() == nil {
		return nil, ErrNotBooted
	}
	b = &booted{}
	if b.at, b.size, err = layoutOf(k.img); err != nil {
		return nil, err
	}
	if b.probe, err = k.m.NewBuf(b.size); err != nil {
		return nil, err
	}
	for _, cache := range slotCaches {
		if at := only(k.img.Lookup(cache)); at != 0 && k.Has(getSlot) {
			if _, err := k.Call(getSlot, uint64(at)); err != nil {
				return nil, err
			}
		}
	}
	k.clean, err = k.m.Snapshot() // Undo comes back to here
	return b, err
}

// lay makes a probe at an address, to be registered.
func (b *booted) lay(at x86.Addr) error {
	p := make([]byte, b.size)
	binary.LittleEndian.PutUint64(p[b.at.addr:], uint64(at))
	binary.LittleEndian.PutUint32(p[b.at.flags:], flagDisabled)
	_, err := b.probe.Write(p)
	return err
}

// Register lets the booted kernel register a disabled probe at an address, and takes
// it back.
func (k *Kernel) Register(at x86.Addr) (Registration, error) {
	b, err := k.boot()
	if err != nil {
		return Registration{}, err
	}
	if b.last != at || at == 0 {
		b.last = at
		b.said, b.failed = k.register(b, at)
	}
	return b.said, b.failed
}

func (k *Kernel) register(b *booted, at x86.Addr) (r Registration, err error) {
	if err := b.lay(at); err != nil {
		return r, err
	}
	v, err := k.Call("register_kprobe", uint64(b.probe.Addr))
	if err != nil {
		return r, err
	}
	if r, err = k.registered(b, int(int32(v))); err != nil {
		return r, err
	}
	return r, k.Undo()
}

func (k *Kernel) registered(b *booted, no int) (r Registration, err error) {
	if r.Errno = no; no != 0 {
		return r, nil
	}
	p := b.probe.Bytes()
	word := func(at int) x86.Addr { return x86.Addr(binary.LittleEndian.Uint64(p[at:])) }
	r.Addr, r.Slot = word(b.at.addr), word(b.at.insn)
	r.Ftrace = binary.LittleEndian.Uint32(p[b.at.flags:])&flagFtrace != 0
	first := b.at.boostable.Offset
	r.Boostable = p[first/8]>>(first%8)&1 != 0
	r.Emulated = b.at.emulate != 0 && word(b.at.emulate) != 0
	if r.Slot != 0 && b.at.written != 0 {
		r.Copy = make([]byte, min(p[b.at.written], slotRoom))
		if err := k.m.ReadMem(r.Slot, r.Copy); err != nil {
			return r, err
		}
	}
	v, err := k.Call("get_kprobe", uint64(r.Addr))
	r.Optimized = x86.Addr(v) != b.probe.Addr
	return r, err
}
