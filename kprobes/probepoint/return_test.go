package probepoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestResolveReturn goes through steps 1 to 3 of docs/spec 5.2.
func TestResolveReturn(t *testing.T) {
	v := kernel(movAX, nop, ret)
	name := v.symbols[0].Name
	outside := v.text + 1<<20
	for _, c := range []struct {
		name       string
		kret       profile.Kret
		rename     string
		at         probepoint.Request
		errno      errno.Errno
		rule       rule.ID
		registered bool
	}{
		{name: "entry", kret: profile.Kret{EntryOnly: true}, at: probepoint.Request{Addr: v.text}, registered: true},
		{name: "inside", kret: profile.Kret{EntryOnly: true}, at: probepoint.Request{Symbol: name, Offset: 5}, errno: errno.EINVAL, rule: rule.NotEntry},
		{name: "inside_allowed", at: probepoint.Request{Symbol: name, Offset: 5}, registered: true},
		{name: "unknown_name", kret: profile.Kret{EntryOnly: true}, at: probepoint.Request{Symbol: "none"}, errno: errno.EINVAL, rule: rule.NotEntry},
		{name: "unknown_name_told", kret: profile.Kret{EntryOnly: true, EntryErrno: true}, at: probepoint.Request{Symbol: "none"}, errno: errno.ENOENT, rule: rule.UnknownSymbol},
		{name: "no_symbol", kret: profile.Kret{EntryOnly: true}, at: probepoint.Request{Addr: outside}, errno: errno.EINVAL, rule: rule.NotEntry},
		{name: "no_symbol_told", kret: profile.Kret{EntryOnly: true, EntryErrno: true}, at: probepoint.Request{Addr: outside}, errno: errno.ENOENT, rule: rule.NoSymbol},
		{name: "switch_to", kret: profile.Kret{BlacklistSwitchTo: true}, rename: "__switch_to", at: probepoint.Request{Addr: v.text}, errno: errno.EINVAL, rule: rule.KretBlacklist},
		{name: "switch_to_allowed", rename: "__switch_to", at: probepoint.Request{Addr: v.text}, registered: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := *named(t, "6.1")
			p.Kret, p.Resolve.NeedsSymbol = c.kret, false
			v.symbols[0].Name = name
			if c.rename != "" {
				v.symbols[0].Name = c.rename
			}
			pt, err := probepoint.ResolveReturn(v, c.at, &p)
			if c.registered {
				require.NoError(t, err)
				require.Equal(t, v.text+x86.Addr(c.at.Offset), pt.Addr)
				return
			}
			refused(t, err, c.errno, c.rule)
		})
	}
}
