package explore

import (
	"fmt"
	"strings"

	"kprobelab/profile"
)

// Switch brings a bug of the past back: fields of the profile that releases with
// it have, or that no named profile has.
type Switch struct {
	// ID is its number in docs/bugs.md.
	ID    string
	Title string
	// Fields are the profile's, with the value of the bug.
	Fields map[string]string
	// Kernel is the profile on which the bug is brought back, "" for the default.
	Kernel string
	// Scenario is one that the bug makes fail.
	Scenario string
}

// Switches lists them in the order of their numbers.
func Switches() []Switch { return switches }

var switches = []Switch{
	{"1", "a disabled neighbour's jump still stands when the overlap is checked", map[string]string{"Optimize.EnabledNeighboursOnly": "true"}, "", "neighbour-inside-disabled"},
	{"2", "the bytes under a jump are not recovered while it waits to be undone", map[string]string{"Optimize.RecoversUnlistedOnly": "true"}, "", "register-in-waiting-jump"},
	{"3", "OPTIMIZED is cleared before the jump is undone", map[string]string{"Optimize.FlagClearedFirst": "true"}, "", "neighbour-armed"},
	{"4", "OPTIMIZED is cleared when undoing is asked for", map[string]string{"Optimize.ClearedWhenQueued": "true"}, "", "optimized-disable-enable"},
	{"5", "the worker forgets a jump that was undone by force", map[string]string{"Optimize.FreeingNeedsUndo": "true"}, "", "forced-while-waiting"},
	{"6", "a disarmed probe hides the jump that runs over an address", map[string]string{"Optimize.FirstProbeEndsSearch": "true"}, "", "disarmed-between"},
	{"7", "an int3 in the padding of a function is taken for a breakpoint", map[string]string{"Check.PaddingInt3": "false"}, "", "padding-before"},
	{"8", "the padding of int3s after a function keeps its probes from being jumps", map[string]string{"Optimize.Int3Blocks": "true", "Optimize.Int3Tail": "false"}, "", "padding-after"},
	{"9", "no prefix keeps an instruction from being executed elsewhere", map[string]string{"Slot.BoostRule": "Boost58"}, "", "cs-prefix"},
	{"10", "a far jump through memory is not known as a jump", map[string]string{"Step.FarJumpUnseen": "true"}, "5.8", "far-jump"},
	{"11", "an indirect call is not known as a call", map[string]string{"Step.GroupUnread": "true"}, "5.8", "indirect-call"},
	{"12", "a #DB ends the step", map[string]string{"Step.TrapFlag": "true", "Slot.Emulate": "false"}, "", "nmi-in-step"},
	{"13", "an emulated jle asks for less and equal", map[string]string{"Step.JLENeedsBoth": "true"}, "", "jle"},
	{"13b", "a step that has ended counts as under way", map[string]string{"Step.StatusKept": "true"}, "", "foreign-int3"},
	{"14", "the return address of an emulated indirect call is 5 bytes on", map[string]string{"Step.CallIndirectReturnsPast5": "true"}, "", "indirect-call"},
	{"17", "the worker takes text_mutex before kprobe_mutex", map[string]string{"Optimize.TextMutexFirst": "true"}, "", "optimize-unregister"},
	{"18", "a member that could not be armed counts as enabled", map[string]string{"Ftrace.RefusedIsEnabled": "true"}, "", "livepatch-enable"},
	{"19", "the module of an address is asked for twice", map[string]string{"Check.ModuleAskedTwice": "true"}, "", "module-unloaded-while-registered"},
	{"21", "the bytes before a function can be probed", map[string]string{"Check.CFISymbols": "false"}, "", "preamble"},
	{"22", "the names of those bytes are compared the wrong way round", map[string]string{"Check.CFISwapped": "true"}, "", "preamble"},
	{"24", "probes that wait for a module come before its jump labels", map[string]string{"Check.ProbesBeforeLabels": "true"}, "", "module-label"},
	{"25", "a probe on a fentry site is disarmed in a registration where it is not", map[string]string{"Ftrace.PostCleared": "true"}, "", "ftrace-post-leaves"},
	{"26", "a second registration makes a return probe's instances anew", map[string]string{"Kret.LateReregistration": "true"}, "", "return-register-again"},
	{"27", "a return probe's instances have any size", map[string]string{"Kret.MaxDataSize": "0"}, "", "return-data"},
	{"33", "the return address of an emulated call with a prefix is 5 bytes on", map[string]string{"Step.CallReturnsPast5": "true"}, "7.3", "cs-call"},
	{"34", "a single change is appended to the queue of text_poke", map[string]string{"Poke.SharedArray": "true", "Poke.SingleAppends": "true"}, "", "single-among-queued"},
	{"35", "a probe cannot be disarmed once the function tracer was killed", map[string]string{"Ftrace.KilledFails": "true"}, "7.3", "ftrace-killed"},
}

// Find is a switch by its number.
func Find(id string) (*Switch, error) {
	var known []string
	for i := range switches {
		if switches[i].ID == id {
			return &switches[i], nil
		}
		known = append(known, switches[i].ID)
	}
	return nil, fmt.Errorf("there is no bug %q: %s", id, strings.Join(known, ", "))
}

// Set brings the bug back in a profile.
func (s *Switch) Set(c *profile.Config) error {
	for name, value := range s.Fields {
		if err := c.SetField(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Kernel returns the profile of that name with these bugs brought back. Without a name it is the one that the first
// bug is brought back on.
func Kernel(name string, bugs []string) (*profile.Config, error) {
	list := make([]*Switch, len(bugs))
	for i, id := range bugs {
		var err error
		if list[i], err = Find(id); err != nil {
			return nil, err
		}
	}
	if name == "" {
		name = profile.Default
		if len(list) > 0 && list[0].Kernel != "" {
			name = list[0].Kernel
		}
	}
	c, err := profile.Find(name)
	for _, b := range list {
		if err == nil {
			err = b.Set(c)
		}
	}
	return c, err
}
