package kprobes

import (
	"fmt"
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
)

// The files kprobes/enabled and kprobes/blacklist in debugfs (docs/spec 8.2, 8.3).

// blacklistSource is a View that can list its blacklist, such as an image.
type blacklistSource interface {
	Blacklist() []kimage.BlacklistEntry
}

// Blacklist is the debugfs file kprobes/blacklist: a line for every element,
// the kernel's own and then the modules' in the order of loading. It is empty
// where the code under test does not list its blacklist.
func (k *Kprobes) Blacklist() string {
	src, ok := k.view.View.(blacklistSource)
	if !ok {
		return ""
	}
	var b strings.Builder
	all := src.Blacklist()
	blacklistOf(&b, all, "")
	for _, m := range k.mods {
		if m.state != probepoint.ModuleGoing {
			blacklistOf(&b, all, m.name)
		}
	}
	return b.String()
}

func blacklistOf(b *strings.Builder, all []kimage.BlacklistEntry, module string) {
	for _, e := range all {
		if e.Module == module {
			name := e.Symbol
			if module != "" {
				name += " [" + module + "]" // %ps
			}
			fmt.Fprintf(b, "0x%016x-0x%016x\t%s\n", uint64(e.Start), uint64(e.End), name)
		}
	}
}

// Enabled is the state of the file kprobes/enabled: false while all probes are
// disarmed.
func (k *Kprobes) Enabled() bool { return !k.disarmed }

// ReadEnabled returns the content of the file: "1\n" or "0\n".
func (k *Kprobes) ReadEnabled() string {
	if k.disarmed {
		return "0\n"
	}
	return "1\n"
}

// WriteEnabled acts on a write to the file: it arms or disarms all probes by the first characters
// of the text. It returns EINVAL if they mean neither yes nor no, else the error of SetEnabled.
func (k *Kprobes) WriteEnabled(text string) error {
	on, ok := k.boolean(text)
	if !ok {
		return fmt.Errorf("kprobes/enabled: %q is neither on nor off: %w", text, errno.EINVAL)
	}
	return k.SetEnabled(on)
}

// boolean is kstrtobool; before 5.16 the file knew y, Y, 1 and n, N, 0 only.
func (k *Kprobes) boolean(text string) (on, ok bool) {
	if text == "" {
		return false, false
	}
	switch text[0] {
	case 'y', 'Y', '1':
		return true, true
	case 'n', 'N', '0':
		return false, true
	}
	if !k.c.Log.EnabledBool {
		return false, false
	}
	switch text[0] {
	case 't', 'T':
		return true, true
	case 'f', 'F':
		return false, true
	case 'o', 'O':
		if len(text) < 2 {
			return false, false
		}
		switch text[1] {
		case 'n', 'N':
			return true, true
		case 'f', 'F':
			return false, true
		}
	}
	return false, false
}

// SetEnabled arms or disarms every probe that is not disabled itself
// (arm_all_kprobes, disarm_all_kprobes), and logs it if that is a change. It
// goes on after a failure and returns the last one.
func (k *Kprobes) SetEnabled(on bool) error {
	if on != k.disarmed {
		return nil
	}
	k.change()
	k.disarmed = !on
	change, total, failed := k.disarm, 0, 0
	if on {
		change = k.arm
	}
	var last error
	k.table.each(func(p *Kprobe) {
		if p.Disabled() {
			return
		}
		total++
		if err := change(p); err != nil {
			failed++
			last = k.armRefused(p, err)
		}
	})
	k.logEnabled(on, total, failed)
	if !on {
		k.drain()
	}
	return last
}

func (k *Kprobes) logEnabled(on bool, total, failed int) {
	state, verb, kept := "disabled", "disable", "enabled"
	if on {
		state, verb, kept = "enabled", "enable", "disabled"
	}
	line := k.c.Log.Prefix + "Kprobes globally " + state
	if failed > 0 && k.c.Log.ArmErrors {
		line += fmt.Sprintf(", but failed to %s %d out of %d probes. Please check which kprobes are kept %s via debugfs.",
			verb, failed, total, kept)
	}
	k.printk(line)
}
