package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// at is a place of the guest kernel, by the rules of a release.
func at(t *testing.T, release, symbol string, offset x86.Addr) (*kimage.Image, x86.Addr, *profile.Config) {
	t.Helper()
	c, ok := profile.Named(release)
	require.True(t, ok)
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Profile: c})
	require.NoError(t, err)
	found := img.Lookup(symbol)
	require.Len(t, found, 1)
	return img, found[0].Addr + offset, c
}

func TestBarred(t *testing.T) {
	const (
		entry    = "a return probe has to be at a function's entry"
		fentry   = "it is a fentry site: the function tracer calls the handlers, and nothing traps"
		noFentry = "it is no fentry site: the function tracer does not call the handlers"
		emulated = "the instruction is emulated: no copy of it is executed"
	)
	for _, c := range []struct {
		release, symbol string
		offset          x86.Addr
		// want are the reasons, none for a path that is taken.
		want map[string]string
	}{
		{"6.1", placeOptimizable, 0, map[string]string{
			"k": "", "k-tf": "this kernel has an int3 after the copy, as from 5.13 on: the path is k", "k-post": "", "b": "", "o": "",
			"r": "", "rb": "", "ro": "", "kr": "", "nested": "", "disabled": "", "next-door": "",
			"emulated": "the instruction is not emulated: a copy of it is executed", "ftrace": noFentry, "r-ftrace": noFentry,
			"r-missed": "the one instance would have to be taken by a call that is still inside the function",
		}},
		{"6.1", placeOptimizable, 3, map[string]string{"k": "", "b": "", "o": "", "r": entry, "rb": entry, "ro": entry, "kr": entry, "r-missed": entry}},
		{"6.1", placeTraced, 0, map[string]string{
			"k": fentry, "b": fentry, "o": fentry, "ftrace": "", "r": fentry, "ro": fentry, "r-ftrace": "", "nested": fentry, "disabled": "",
		}},
		{"6.1", placeBranch, 3, map[string]string{"k": emulated, "k-post": emulated, "b": emulated, "emulated": "", "nested": emulated, "disabled": ""}},
		{"5.10", placeBranch, 3, map[string]string{"k": emulated, "b": emulated, "emulated": ""}},
		// The code of 6.1 boosts no shifts, the code of 6.12 does.
		{"6.1", "opt_no_shift", 0, map[string]string{
			"k": "", "b": "no jump back may follow a copy of this instruction: it cannot be boosted",
			"o": "opt_no_shift+0x0: shl $0x3,%rdi is not boostable, so the kernel copies it into no detour buffer",
		}},
		{"6.12", "opt_no_shift", 0, map[string]string{"k": "", "b": "", "o": ""}},
		{"5.8", placeOptimizable, 0, map[string]string{
			"k": "this kernel steps by the trap flag, as before 5.13: the path is k-tf", "k-tf": "", "b": "",
			"r": "this kernel misses every return probe whose entry is hit through an int3", "disabled": "",
		}},
		{"4.4", placeOptimizable, 0, map[string]string{"k-tf": "", "b": "", "r": "", "rb": ""}},
		{"4.4", placeOptimizable, 3, map[string]string{"r": ""}}, // it refuses no place
		{"2.6.18", placeOptimizable, 0, map[string]string{"k-tf": "", "o": "this kernel optimizes no probes"}},
	} {
		img, place, profile := at(t, c.release, c.symbol, c.offset)
		for _, p := range Paths() {
			if want, ok := c.want[p.Name]; ok {
				require.Equal(t, want, p.barred(img, place, p.rules(profile)), "%s at %s+%#x in %s", p.Name, c.symbol, c.offset, c.release)
			}
		}
	}
}

func TestRulesOfAPath(t *testing.T) {
	preempt, _ := profile.Named("6.1")
	none, _ := profile.Named("5.10")
	for name, want := range map[string][2]string{
		"k": {"6.1", "5.10+PREEMPTION"}, "b": {"6.1 (no PREEMPTION)", "5.10 (no PREEMPTION)"},
		"o": {"6.1", "5.10 (no PREEMPTION)"}, "ftrace": {"6.1", "5.10 (no PREEMPTION)"},
		"r": {"6.1", "5.10+PREEMPTION"}, "rb": {"6.1 (no PREEMPTION)", "5.10 (no PREEMPTION)"}, "disabled": {"6.1", "5.10 (no PREEMPTION)"},
	} {
		chosen, err := Choose([]string{name})
		require.NoError(t, err)
		p := &chosen[0]
		require.Equal(t, want, [2]string{rulesName(p.rules(preempt), preempt), rulesName(p.rules(none), none)}, name)
	}
	require.True(t, preempt.Preemption, "a profile's own rules are left alone")
}
