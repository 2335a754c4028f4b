package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

const (
	anyMessage = "Invalid probed address or symbol\x00"
	anyReadme  = "tracing mini-HOWTO:\n  kprobe_events\n"
)

// readOnlyOf is an image's evidence whose only data is a .rodata.
func readOnlyOf(text string) *evidence {
	s := &Section{Name: ".rodata", Data: []byte(text)}
	return &evidence{img: &Image{sections: []*Section{s}}, kprobes: true}
}

// TestTextsDecide: a text in the data sets the field, and its absence clears it,
// whatever the release has.
func TestTextsDecide(t *testing.T) {
	for name, text := range map[string]string{
		"Tracing.Misspelled":       anyMessage + "Invalid $-valiable specified\x00",
		"Tracing.MaxRecord":        anyMessage + "Event too big (too many fields?)\x00",
		"Tracing.CountArgsLogged":  anyMessage + "Too many arguments are specified\x00",
		"Tracing.NoTypeLogged":     anyMessage + "No matching dynamic event type\x00",
		"Tracing.StringTypeLogged": anyMessage + "$comm and immediate-string only accepts string type\x00",
		"Tracing.Typecasts":        anyMessage + "Typecast requires a field access\x00",
		"Tracing.EventCasts":       anyMessage + "Typecasts are only for eprobe fields\x00",
		"Tracing.BTFArgs":          anyMessage + noBTF + "\x00" + anyReadme + "\t  <argname>[->field[->field|.field...]],\n",
		"Tracing.NoBTFArgs":        anyMessage + noBTF + "\x00" + anyReadme,
		"Tracing.ExitArgs":         anyMessage + "$arg* can be used only on function entry or exit\x00",
		"Tracing.BoundaryEINVAL":   "\x016Failed to allocate trace_probe.(%d)\n\x00" + "\x014Probing address(0x%p) is not an instruction boundary.\n\x00",
		"Tracing.RefusesNotrace":   anyMessage + "\x014Could not probe notrace function %s\n\x00",
		"Tracing.AutoNames":        anyReadme + "\t   Format: p[:[<group>/][<event>]] <place> [<args>]\n",
		"Tracing.ReturnSuffix":     anyReadme + "place (kretprobe): [<module>:]<symbol>[+<offset>]%return|<memaddr>\n",
		"Tracing.MaxActive":        anyReadme + "\t           r[maxactive][:[<group>/][<event>]] <place> [<args>]\n",
	} {
		t.Run(name, func(t *testing.T) {
			var r *rule
			for i := range tracingRules {
				if tracingRules[i].name == name {
					r = &tracingRules[i]
				}
			}
			require.NotNil(t, r)
			for data, want := range map[string]bool{text: true, anyMessage + anyReadme: false} {
				for _, before := range []string{"4.4", "7.3"} {
					c, _ := profile.Named(before)
					e := readOnlyOf(data)
					e.decide(r, c)
					require.Equal(t, want, r.get(c), "%s %q", before, data)
					require.Len(t, e.img.facts, 1)
				}
			}
			c, _ := profile.Named("6.1")
			e := readOnlyOf("no such texts")
			e.decide(r, c)
			require.Empty(t, e.img.facts, "data without them tells nothing")
		})
	}
}

func TestSameName(t *testing.T) {
	both := []Symbol{{Name: "f"}, {Name: "f", Module: "a"}, {Name: "f", Module: "b"}}
	require.Equal(t, 3, SameName(both, false))
	require.Equal(t, 1, SameName(both, true))
	require.Equal(t, 2, SameName(both[1:], true))
	require.Zero(t, SameName(nil, true))
}
