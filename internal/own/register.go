package own

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/machine"
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

// Registration is the result of the kernel's register_kprobe. If Errno is not 0, only Errno counts.
type Registration struct {
	// Errno is negative, 0 if the probe is registered.
	Errno int
	// Addr is the address that got the probe.
	Addr x86.Addr
	// Ftrace: the function tracer calls it, and there is no slot.
	Ftrace bool
	// Boostable: a jump back follows the copy in the slot.
	Boostable bool
	// Emulated: kprobes does what the instruction would do.
	Emulated bool
	// Optimized: a jump may replace the breakpoint.
	Optimized bool
	// Slot is the address of the copy, 0 if there is none; Copy has the bytes that the
	// kernel wrote there, nil if it does not keep their number.
	Slot x86.Addr
	Copy []byte
}

// ReturnRegistration is the result of the kernel's register_kretprobe.
type ReturnRegistration struct {
	// Errno is negative, 0 if the probe is registered.
	Errno int
	// MaxActive is the number of calls it can track by default.
	MaxActive int
}

// slotRoom is the most bytes that are written to a slot: the copy, and the jump or int3 after it.
const slotRoom = maxInsn + 5

// booted holds the buffers and the last answer of a booted kernel.
type booted struct {
	// probe is room for a struct kretprobe, which begins with a struct kprobe.
	probe *machine.Buf
	at    probeLayout
	// said and failed are the answer for the last address, and its error.
	said   Registration
	failed error
	last   x86.Addr
}

// probeLayout has the offsets of members of struct kprobe, by BTF.
type probeLayout struct {
	addr, flags, insn, emulate, written, maxActive int
	boostable                                      btf.Member
	// size is the size of struct kretprobe in bytes.
	size int
}

// layoutOf reads it from the image's types.
func layoutOf(img *kimage.Image) (l probeLayout, err error) {
	t, ok := img.Types().Struct("kretprobe")
	if !ok {
		return l, fmt.Errorf("struct kretprobe: %w", kimage.ErrNoBTF)
	}
	find := func(path ...string) (m btf.Member) {
		m.Type = t
		for _, name := range path {
			in, found := m.Type.Member(name)
			if !found {
				ok = false
				return btf.Member{}
			}
			in.Offset += m.Offset
			m = in
		}
		return m
	}
	l = probeLayout{
		addr: find("kp", "addr").Offset / 8, flags: find("kp", "flags").Offset / 8, insn: find("kp", "ainsn", "insn").Offset / 8,
		boostable: find("kp", "ainsn", "boostable"), maxActive: find("maxactive").Offset / 8, size: t.Size(),
	}
	if !ok || find("kp").Offset != 0 {
		return l, fmt.Errorf("struct kretprobe is none that is known: %w", ErrNotThere)
	}
	// These are not in every release.
	l.emulate, l.written = find("kp", "ainsn", "emulate_op").Offset/8, find("kp", "ainsn", "tp_len").Offset/8
	return l, nil
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
	if b.at, err = layoutOf(k.img); err != nil {
		return nil, err
	}
	if b.probe, err = k.m.NewBuf(b.at.size); err != nil {
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
	p := make([]byte, b.at.size)
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

// RegisterReturn lets the booted kernel register a disabled return probe at an address,
// and takes it back.
func (k *Kernel) RegisterReturn(at x86.Addr) (r ReturnRegistration, err error) {
	b, err := k.boot()
	if err != nil {
		return r, err
	}
	if err := b.lay(at); err != nil {
		return r, err
	}
	v, err := k.Call("register_kretprobe", uint64(b.probe.Addr))
	if err != nil {
		return r, err
	}
	if r.Errno = int(int32(v)); r.Errno == 0 {
		r.MaxActive = int(int32(binary.LittleEndian.Uint32(b.probe.Bytes()[b.at.maxActive:])))
	}
	return r, k.Undo()
}

// NumCPU returns the number of the machine's processors.
func (k *Kernel) NumCPU() int { return k.m.NumCPU() }

// Define lets the booted kernel take a definition as kprobe_events does, and takes it
// back. It returns 0 or a negative errno.
func (k *Kernel) Define(definition string) (int, error) {
	if _, err := k.boot(); err != nil {
		return 0, err
	}
	at := k.function("create_or_delete_trace_kprobe")
	if at == 0 {
		return 0, fmt.Errorf("create_or_delete_trace_kprobe: %w", ErrNotThere)
	}
	line, err := k.m.NewBuf(len(definition) + 1)
	if err != nil {
		return 0, err
	}
	defer line.Free()
	if _, err := line.Write([]byte(definition)); err != nil {
		return 0, err
	}
	var v uint64
	if k.Has("trace_run_command") { // to 5.11 it splits the line and gives the words
		v, err = k.Call("trace_run_command", uint64(line.Addr), uint64(at))
	} else {
		v, err = k.Call("create_or_delete_trace_kprobe", uint64(line.Addr))
	}
	if err != nil {
		return 0, err
	}
	return int(int32(v)), k.Undo()
}
