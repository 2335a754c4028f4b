package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/tools/conformance/boottext"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Booted holds the answers of a booted machine.
type Booted struct {
	// Frames holds the content of the frames that init sent, by the frame's name.
	Frames map[string][]byte
	// Text and Settled are the kernel's text as boot left it, and with the
	// probes in place.
	Text, Settled []byte
	// Clocks is the state of its clocks by its memory; nil in older answers.
	Clocks *boottext.Clocks
	// Left are the events of points and the programs that were not enabled: the
	// machine stops when they are, or ones near them.
	Left []string
}

// TextOf is the range of a kernel's text.
func TextOf(img *kimage.Image) (r x86.Range, err error) {
	start, end := img.Lookup("_stext"), img.Lookup("_etext")
	if len(start) != 1 || len(end) != 1 {
		return r, fmt.Errorf("%s: no _stext and _etext", img.Name())
	}
	return x86.Range{Start: start[0].Addr, End: end[0].Addr}, nil
}

// maxBoots bounds how often a machine is booted that probes stop.
const maxBoots = 20

// patience is the time that a machine may take to enable one probe.
const patience = 90 * time.Second

// Ask boots the machine with the image's kernel, lets it define the
// points and the definitions by name, attaches programs, enables the points, and
// waits until init is done. A machine that stops at a probe is booted again without
// it. say is told what happens.
func Ask(m *qemu.Machine, img *kimage.Image, points int, say func(string)) (*Booted, error) {
	m.Files[frame.EventsFile] = []byte(strings.Join(events(points), "\n"))
	var s stops
	for boots := 1; ; boots++ {
		m.Files[frame.LeaveFile] = []byte(strings.Join(s.left, "\n"))
		b := &Booted{Frames: map[string][]byte{}, Left: s.left}
		var enabled []string
		err := m.Boot(func(r *qemu.Running) error { return b.follow(r, img, &enabled, say) })
		if err == nil {
			return b, nil
		}
		if boots == maxBoots {
			return nil, err
		}
		if _, ran := b.Frames[frame.Booted]; s.early(ran) {
			say(fmt.Sprintf("it ended before init ran (%s): again", reason(err)))
			continue
		}
		if !s.stopped(enabled) {
			return nil, err
		}
		say(fmt.Sprintf("it stopped when %s was enabled (%s): again, without %s",
			enabled[len(enabled)-1], reason(err), strings.Join(s.left, " ")))
	}
}

// reason returns the line of the kernel's console that says why the machine ended, or the error's first line.
func reason(err error) string {
	for line := range strings.Lines(err.Error()) {
		for _, sign := range []string{"BUG", "Oops", "Unable to handle", "general protection", "invalid opcode", "int3", "panic"} {
			if strings.Contains(line, sign) {
				return strings.TrimSpace(line)
			}
		}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// follow reads frames to the last one, and notes what the machine enables.
func (b *Booted) follow(r *qemu.Running, img *kimage.Image, enabled *[]string, say func(string)) error {
	text, err := TextOf(img)
	if err != nil {
		return err
	}
	for {
		name, data, err := r.Frame()
		if err != nil {
			return err
		}
		r.Within(0)
		if name == frame.Enabling {
			*enabled = append(*enabled, string(data))
			r.Within(patience)
			continue
		}
		b.Frames[name] = data
		switch name {
		case frame.Booted:
			say("booted; reading its text")
			if b.Text, err = r.Memory(text); err != nil {
				return err
			}
			if b.Clocks, err = readClocks(img, r.Memory); err != nil {
				return err
			}
			if err := r.Tell("go on"); err != nil {
				return err
			}
		case frame.Errnos:
			say("every definition is written")
		case frame.Attached:
			say("every program is attached or refused")
		case frame.Failed:
			return errors.New("init: " + string(data))
		case frame.Done:
			return b.settle(r, text)
		}
	}
}

// restTime is the time for which a text with missing jumps has to stay unchanged.
// Before each 256 jumps, the optimizer waits until every task has scheduled.
const restTime = time.Minute

// settle reads the text with the probes in place. The kernel's list calls a probe
// optimized as soon as it is queued; its jump comes later.
func (b *Booted) settle(r *qemu.Running, text x86.Range) error {
	kprobes, err := parseList(b.Frames[frame.List])
	if err != nil {
		return err
	}
	var jumps []x86.Addr
	for at, flags := range kprobes.byAddr {
		if strings.Contains(flags, optimized) && text.Contains(at) {
			jumps = append(jumps, at)
		}
	}
	told := len(kprobes.byPlace) == 0 || len(jumps) > 0 // addresses, and no hashes of them
	for changed := time.Now(); ; time.Sleep(2 * time.Second) {
		now, err := r.Memory(text)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, b.Settled) {
			changed, b.Settled = time.Now(), now
		}
		queued := slices.ContainsFunc(jumps, func(at x86.Addr) bool { return now[at.Sub(text.Start)] != x86.Jmp32 })
		if told && !queued || time.Since(changed) > restTime {
			return nil
		}
	}
}
