package infer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
	"kprobelab/x86"
)

// image is an image with one section.
type image struct {
	section opened.Section
	symbols []opened.Symbol
}

func (i *image) Bytes(addr x86.Addr, n int) []byte {
	off := addr.Sub(i.section.Addr)
	if off < 0 || off+int64(n) > int64(len(i.section.Data)) {
		return nil
	}
	return i.section.Data[off:][:n]
}

func (i *image) CodeAt(addr x86.Addr, b []byte) int {
	for n := len(b); n > 0; n-- {
		if have := i.Bytes(addr, n); have != nil {
			return copy(b, have)
		}
	}
	return 0
}

func (i *image) SymbolAddr(name string) (x86.Addr, bool) {
	if found := i.Lookup(name); found != nil {
		return found[0].Addr, true
	}
	return 0, false
}

func (i *image) Lookup(name string) (found []opened.Symbol) {
	for n, s := range i.symbols {
		if s.Name == name {
			end := i.section.Addr.Add(int64(len(i.section.Data)))
			if n+1 < len(i.symbols) {
				end = i.symbols[n+1].Addr
			}
			s.Size = uint64(end.Sub(s.Addr))
			found = append(found, s)
		}
	}
	return found
}

func (i *image) SymbolAt(addr x86.Addr) (s opened.Symbol, ok bool) {
	for _, has := range i.symbols {
		if has.Addr <= addr {
			s, ok = has, true
		}
	}
	return s, ok
}

func (i *image) Partly(string) string { return "" }

func (i *image) Section(name string) *opened.Section {
	if i.section.Name == name {
		return &i.section
	}
	return nil
}

func (i *image) Sections() []opened.Section             { return []opened.Section{i.section} }
func (i *image) OnlyText() bool                         { return false }
func (i *image) Kernel() bool                           { return true }
func (i *image) EntryText() (entry, irqEntry x86.Range) { return entry, irqEntry }

// TestVersionOfBanner: the patch level is in the release, or in Debian's version.
func TestVersionOfBanner(t *testing.T) {
	for text, want := range map[string]profile.Version{
		"6.1.0-56-cloud-amd64 (a@b) (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-1 (2026-10-01)": {Major: 6, Minor: 1, Patch: 192},
		"5.15.0-91-generic (a@b) (gcc) #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023":            {Major: 5, Minor: 15, Patch: profile.AnyPatch},
		"5.15.85 (a@b) (gcc) #1 SMP Mon Jan 1":                                                  {Major: 5, Minor: 15, Patch: 85},
		"6.1.0 (a@b) (gcc) #1 SMP Debian 5.10.2-1":                                              {Major: 6, Minor: 1},
	} {
		b, ok := parseBanner([]byte("Linux version "+text), "here")
		require.True(t, ok)
		v, ok := b.Version()
		require.True(t, ok)
		require.Equal(t, want, v, text)
	}
}

func TestParseBanner(t *testing.T) {
	b, ok := parseBanner([]byte("Linux version 6.1.0-test (me@here) (gcc-12 (Debian 12.2.0) 12.2.0, GNU ld 2.40) #1 SMP PREEMPT_DYNAMIC today\n\x00"), "here")
	require.True(t, ok)
	require.Equal(t, "6.1.0-test", b.Release)
	require.Equal(t, "gcc-12 (Debian 12.2.0) 12.2.0, GNU ld 2.40", b.Compiler)
	require.Equal(t, "PREEMPT_DYNAMIC", b.Preempt())
	_, ok = parseBanner([]byte("Linux version %s (%s)"), "format")
	require.False(t, ok, "the format string is no banner")
	b, ok = parseBanner([]byte("Linux version 5.10.0 (a@b) (cc) #1 SMP Debian"), "here")
	require.True(t, ok)
	require.Empty(t, b.Preempt())
}

// holds reports whether a rule's field has the value that the rule gives it.
func holds(r *rule, c *profile.Config) bool {
	switch r.name {
	case "ModuleBase":
		return c.ModuleBase == moduleBaseRandom
	case "Tracing.MaxRecord":
		return c.Tracing.MaxRecord != 0
	}
	return c.Field(r.name) == "true"
}

// TestRules checks that each rule sets its field, in each profile.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range slices.Concat(rules, shownRules, tracingRules) {
		require.False(t, seen[r.name], r.name)
		seen[r.name] = true
		for _, name := range profile.Names() {
			for _, on := range []bool{true, false} {
				c, _ := profile.Named(name)
				r.put(c, on)
				require.Equal(t, on, holds(&r, c), "%s in %s", r.name, name)
			}
		}
	}
}

// TestEveryComponentIsAField: a misspelt one would decide nothing.
func TestEveryComponentIsAField(t *testing.T) {
	c, _ := profile.Named(profile.Default)
	above := map[string]bool{}
	for _, p := range components {
		require.NotEmpty(t, c.Field(p.name), p.name)
		for _, list := range p.needs {
			for _, name := range list {
				require.True(t, above[name], "%s needs %s, which is not above it", p.name, name)
			}
		}
		above[p.name] = true
	}
}

const (
	anyMessage = "Invalid probed address or symbol\x00"
	anyReadme  = "tracing mini-HOWTO:\n  kprobe_events\n"
)

// readOnlyOf is an image's evidence whose only data is a .rodata.
func readOnlyOf(text string) *Evidence {
	img := &image{section: opened.Section{Name: ".rodata", Data: []byte(text)}}
	return &Evidence{img: img, facts: &evidence.Facts{}, kprobes: true}
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
					require.Equal(t, want, holds(r, c), "%s %q", before, data)
					require.Len(t, *e.facts, 1)
				}
			}
			c, _ := profile.Named("6.1")
			e := readOnlyOf("no such texts")
			e.decide(r, c)
			require.Empty(t, *e.facts, "data without them tells nothing")
		})
	}
}
