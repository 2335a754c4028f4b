package infer

import (
	"bytes"
	"fmt"
	"slices"

	"kprobelab/kimage/evidence"
	"kprobelab/profile"
)

// An image has its tracing README and every message of error_log as text. They
// tell what kprobe_events accepts, better than the release does: most of it went
// into stable releases too.

// tracingRules are the fields of profile.Tracing that a text decides.
var tracingRules = []rule{
	{name: "Tracing.Misspelled", look: message("Invalid $-valiable specified"), from: evidence.Coded},
	{name: "Tracing.MaxRecord", look: message("Event too big (too many fields?)"), from: evidence.Coded,
		set: func(c *profile.Config, on bool) {
			if c.Tracing.MaxRecord = 0; on {
				c.Tracing.MaxRecord = maxProbeEvent
			}
		}},
	{name: "Tracing.CountArgsLogged", look: message("Too many arguments are specified"), from: evidence.Coded},
	{name: "Tracing.NoTypeLogged", look: message("No matching dynamic event type"), from: evidence.Coded},
	{name: "Tracing.StringTypeLogged", look: message("$comm and immediate-string only accepts string type"), from: evidence.Coded},
	{name: "Tracing.EventCasts", look: message("Typecasts are only for eprobe fields"), from: evidence.Coded},
	{name: "Tracing.Typecasts", look: message("Typecast requires a field access"), from: evidence.Coded,
		set: setTypecasts},
	{name: "Tracing.BTFArgs", look: message(noBTF), from: evidence.Coded},
	{name: "Tracing.NoBTFArgs", look: builtWithoutBTFArgs, more: []look{optedOutOfBTFArgs}, from: evidence.Coded},
	{name: "Tracing.ExitArgs", look: message("$arg* can be used only on function entry or exit"), from: evidence.Coded},
	{name: "Tracing.RefusesNotrace", look: message("Could not probe notrace function"), from: evidence.Coded},
	{name: "Tracing.BoundaryEINVAL", look: message("is not an instruction boundary.\n"), from: evidence.Coded},
	{name: "Tracing.AutoNames", look: readmeHas("p[:[<group>/][<event>]] <place>"), from: evidence.Coded},
	{name: "Tracing.ReturnSuffix", look: readmeHas("[+<offset>]%return|<memaddr>"), from: evidence.Coded},
	{name: "Tracing.MaxActive", look: readmeHas("r[maxactive]["), from: evidence.Coded},
}

// noBTF is a message of every kernel that has parameters by name, also of one without BTF.
const noBTF = "BTF is not available or not supported"

// builtWithoutBTFArgs: the message is there, and the README does not name parameters.
func builtWithoutBTFArgs(e *Evidence) (on bool, why string, ok bool) {
	knows, why, ok := message(noBTF)(e)
	if !ok || !knows {
		return false, why, ok
	}
	has, why, ok := readmeHas("<argname>[")(e)
	return !has, why, ok
}

// optedOutOfBTFArgs: the message is there, and the configuration does without the option.
func optedOutOfBTFArgs(e *Evidence) (on bool, why string, ok bool) {
	knows, _, ok := message(noBTF)(e)
	has, why, known := e.option("CONFIG_PROBE_EVENTS_BTF_ARGS")
	return !has, why, ok && knows && known
}

// maxProbeEvent bounds a record of an event (MAX_PROBE_EVENT_SIZE).
const maxProbeEvent = 3072

// setTypecasts also sets the length of an expression, which came with them.
func setTypecasts(c *profile.Config, on bool) {
	c.Tracing.Typecasts = on
	if c.Tracing.MaxArgText = 63; on {
		c.Tracing.MaxArgText = 255
	}
}

// parserMessages are in every kernel that has kprobe_events: in its error log, or (to 5.1)
// in the kernel's.
var parserMessages = []string{"Invalid probed address or symbol", "Failed to allocate trace_probe"}

// message looks for a message of error_log. An image without a message that all
// releases with error_log have tells nothing.
func message(text string) func(*Evidence) (bool, string, bool) {
	return func(e *Evidence) (bool, string, bool) {
		data := e.readOnly()
		if !slices.ContainsFunc(parserMessages, func(text string) bool { return bytes.Contains(data, []byte(text)) }) {
			return false, "", false
		}
		return found(data, text, ".rodata")
	}
}

// readmeHas looks for a text in the tracing README.
func readmeHas(text string) func(*Evidence) (bool, string, bool) {
	return func(e *Evidence) (bool, string, bool) {
		data := e.readOnly()
		i := bytes.Index(data, []byte("tracing mini-HOWTO:\n"))
		if i < 0 {
			return false, "", false
		}
		readme, _, _ := bytes.Cut(data[i:], []byte{0})
		if !bytes.Contains(readme, []byte("  kprobe_events")) {
			return false, "", false
		}
		return found(readme, text, "the tracing README")
	}
}

func found(data []byte, text, where string) (on bool, why string, ok bool) {
	if bytes.Contains(data, []byte(text)) {
		return true, fmt.Sprintf("%q in %s", text, where), true
	}
	return false, fmt.Sprintf("no %q in %s", text, where), true
}

// readOnly returns the data with the kernel's texts; empty if the image has no such
// section, or is no kernel.
func (e *Evidence) readOnly() []byte {
	if s := e.img.Section(".rodata"); s != nil && e.kprobes {
		return s.Data
	}
	return nil
}
