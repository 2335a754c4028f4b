package own

import (
	"encoding/binary"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// register asks register_kprobe and register_kretprobe about what they refuse
// before they need anything of a booted kernel. An answer other than the refusals
// that are looked for, or none, decides nothing.
func (m *measuring) register() error {
	probe, err := m.m.NewBuf(probeSize)
	if err != nil {
		return err
	}
	defer probe.Free()
	const nowhere = 0x1000
	switch m.refusal(probe, "register_kprobe", kprobeAddr, nowhere) {
	case errno.ENOENT:
		m.say("Resolve.NeedsSymbol", true, "register_kprobe of %#x is ENOENT", nowhere)
	case errno.EINVAL:
		m.say("Resolve.NeedsSymbol", false, "register_kprobe of %#x is EINVAL", nowhere)
	}
	for _, c := range []struct {
		field string
		kind  kimage.SiteKind
	}{{"Check.JumpLabels", kimage.SiteJumpLabel}, {"Check.StaticCalls", kimage.SiteStaticCall}} {
		for _, at := range m.plainSites(c.kind) {
			if m.refusal(probe, "register_kprobe", kprobeAddr, at) == errno.EINVAL {
				m.say(c.field, true, "register_kprobe of %s is EINVAL", m.m.Symbolize(at))
				break
			}
		}
	}
	if at := m.plainBug(); at != 0 && m.refusal(probe, "register_kprobe", kprobeAddr, at) == errno.EINVAL {
		m.say("Check.BugTable", true, "register_kprobe of %s is EINVAL", m.m.Symbolize(at))
	}
	m.entryFlag(probe)
	return m.registerReturn(probe)
}

// entryFlag registers a probe at a function's entry, and looks for the entry's flag in the probe
// afterwards: once the registration fails for want of memory, and once it is refused because
// find_bug finds a bug there.
func (m *measuring) entryFlag(probe *machine.Buf) {
	const function = "get_kprobe"
	at, bug := m.function(function), m.function("find_bug")
	if at == 0 || m.refusal(probe, "register_kprobe", kprobeAddr, at) != errno.ENOMEM {
		return
	}
	m.say("Resolve.EntryFlag", flagged(probe), "register_kprobe of %s is ENOMEM, and leaves the flag or not", function)
	here := []byte{0x48, 0x89, 0xf8, 0xc3} // mov %rdi,%rax; ret
	old := make([]byte, len(here))
	if bug == 0 || m.m.ReadMem(bug, old) != nil || m.m.WriteText(bug, here) != nil {
		return
	}
	if m.refusal(probe, "register_kprobe", kprobeAddr, at) == errno.EINVAL {
		m.say("Resolve.EntryFlagEarly", flagged(probe), "register_kprobe of a BUG is EINVAL, and leaves the flag or not")
	}
	_ = m.m.WriteText(bug, old)
}

// flagged reports whether a probe has the flag of a function's entry, and no other.
func flagged(probe *machine.Buf) bool {
	const flag, word = 16, 4 // KPROBE_FLAG_ON_FUNC_ENTRY (linux/kprobes.h)
	for b := probe.Bytes()[kprobeSymbol+8:]; len(b) >= word; b = b[word:] {
		if binary.LittleEndian.Uint32(b) == flag {
			return true
		}
	}
	return false
}

// registerReturn registers a return probe at a function that does not exist.
func (m *measuring) registerReturn(probe *machine.Buf) error {
	name, err := m.m.NewBuf(32)
	if err != nil {
		return err
	}
	defer name.Free()
	if _, err := name.Write([]byte("no_such_function_at_all\x00")); err != nil {
		return err
	}
	switch m.refusal(probe, "register_kretprobe", kprobeSymbol, name.Addr) {
	case errno.ENOENT:
		m.say("Kret.EntryErrno", true, "register_kretprobe of an unknown name is ENOENT")
	case errno.EINVAL:
		m.say("Kret.EntryErrno", false, "register_kretprobe of an unknown name is EINVAL")
	}
	return nil
}

// refusal registers a probe of zeros except for one pointer, and returns the errno; 0
// if there is none.
func (m *measuring) refusal(probe *machine.Buf, function string, field int, value x86.Addr) errno.Errno {
	m.setState(0)
	defer m.setState(systemRunning)
	b := make([]byte, probeSize)
	binary.LittleEndian.PutUint64(b[field:], uint64(value))
	if _, err := probe.Write(b); err != nil {
		return 0
	}
	v, err := m.Call(function, uint64(probe.Addr))
	if r := int32(v); err == nil && r < 0 && r >= -4095 {
		return errno.Errno(-r)
	}
	return 0
}

// plainSites are a few sites of a kind that nothing else forbids.
func (m *measuring) plainSites(kind kimage.SiteKind) (list []x86.Addr) {
	for _, s := range m.img.Sites(kind) {
		if m.plain(s.Addr) && !m.img.BugEntry(s.Addr) {
			if list = append(list, s.Addr); len(list) == 2 {
				break
			}
		}
	}
	return list
}

// plainBug returns a BUG or WARN that no other rule forbids, 0 if there is none.
func (m *measuring) plainBug() x86.Addr {
	for _, b := range m.img.BugTable() {
		if m.plain(b.Addr) {
			return b.Addr
		}
	}
	return 0
}

// plain reports whether an address is in the text, and in no list of functions that
// are not to be probed.
func (m *measuring) plain(at x86.Addr) bool {
	_, listed := m.img.Blacklisted(at)
	return !listed && m.img.InText(at) && !m.img.InEntryText(at)
}
