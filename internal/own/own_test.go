package own

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/integration/written"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

const base = written.Base

// made is an image whose functions are the given code.
func made(t *testing.T, functions map[string]string) *Kernel {
	t.Helper()
	return open(t, written.Image(t, functions))
}

func open(t *testing.T, img *kimage.Image) *Kernel {
	t.Helper()
	k, err := Open(img, 0)
	require.NoError(t, err)
	t.Cleanup(k.Close)
	return k
}

func TestFunctionsThatDoNotAnswer(t *testing.T) {
	const yes = "b8 01 00 00 00 c3"
	for name, c := range map[string]struct {
		code string
		want error
		more error
	}{
		"loops":                    {"eb fe", ErrNoAnswer, machine.ErrBudget},
		"loops_over_a_store":       {"48 89 04 24 eb fa", ErrNoAnswer, machine.ErrBudget},
		"fills_its_stack":          {"50 eb fd", ErrNoAnswer, nil},
		"reads_nothing":            {"48 8b 04 25 00 00 00 00 c3", ErrNoAnswer, nil},
		"jumps_to_nowhere":         {"31 c0 ff e0", ErrNoAnswer, nil},
		"ud2":                      {"0f 0b", ErrNoAnswer, nil},
		"int3":                     {"cc", ErrNoAnswer, nil},
		"halts":                    {"f4", ErrNoAnswer, machine.ErrHalted},
		"returns_two":              {"b8 02 00 00 00 c3", ErrNonsense, nil},
		"returns_an_address":       {"48 89 e0 c3", ErrNonsense, nil},
		"returns_a_bool_with_dirt": {"48 c7 c0 01 ff ff ff c3", nil, nil},
		"returns_one":              {yes, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := made(t, map[string]string{"can_probe": c.code, "can_optimize": yes})
			got, err := k.CanProbe(base)
			if c.want == nil {
				require.NoError(t, err)
				require.True(t, got)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "can_probe")
			if c.more != nil {
				require.ErrorIs(t, err, c.more)
			}
			got, err = k.CanOptimize(base) // the next question is answered
			require.NoError(t, err)
			require.True(t, got)
		})
	}
}

// TestWritesOfAFailedCallAreUndone: a function that writes over data and then
// faults leaves nothing for the next one.
func TestWritesOfAFailedCallAreUndone(t *testing.T) {
	guest, err := kimage.Open("../../testdata/guest.elf", nil)
	require.NoError(t, err)
	var data x86.Addr
	for _, s := range guest.Sections() {
		if s.Alloc && s.Write && s.Name == ".data" {
			data = s.Addr
		}
	}
	require.NotZero(t, data)
	// can_probe: incb (%rdi); ud2. find_bug: movzbl (%rdi),%eax; ret
	k := made(t, map[string]string{"can_probe": "fe 07 0f 0b", "find_bug": "0f b6 07 c3"})
	before, err := k.Call("find_bug", uint64(data))
	require.NoError(t, err)
	_, err = k.CanProbe(data)
	require.ErrorIs(t, err, ErrNoAnswer)
	after, err := k.Call("find_bug", uint64(data))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestDecodersThatAnswerNonsense(t *testing.T) {
	for name, c := range map[string]struct {
		functions map[string]string
		want      error
	}{
		"no_decoder":      {map[string]string{"can_boost": "31 c0 c3"}, ErrNotThere},
		"writes_nothing":  {map[string]string{"insn_decode": "31 c0 c3"}, ErrNonsense},
		"returns_address": {map[string]string{"insn_decode": "48 89 f8 c3"}, ErrNonsense},
		// mov %rsi,88(%rdi); movb $1,83(%rdi); movb $99,82(%rdi); xor %eax,%eax; ret
		"length_of_99": {map[string]string{"insn_decode": "48 89 77 58 c6 47 53 01 c6 47 52 63 31 c0 c3"}, ErrNonsense},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := made(t, c.functions).Decode([]byte{0x90})
			require.ErrorIs(t, err, c.want)
		})
	}
	// One that boosts everything, whatever it is given.
	_, err := made(t, map[string]string{"insn_decode": "31 c0 c3", "can_boost": "b8 01 00 00 00 c3"}).CanBoost([]byte{0x90}, 0)
	require.ErrorIs(t, err, ErrNonsense)
}

func TestAskingTheGuestKernel(t *testing.T) {
	img, err := kimage.Open("../../testdata/guest.elf", nil)
	require.NoError(t, err)
	k := open(t, img)
	require.False(t, k.Has("can_probe"))
	_, err = k.CanProbe(base)
	require.ErrorIs(t, err, ErrNotThere)
}

func TestRenamedAndAmbiguousFunctions(t *testing.T) {
	k := made(t, map[string]string{
		"can_probe.isra.0": "b8 01 00 00 00 c3", "can_optimize.part.0": "b8 01 00 00 00 c3",
		"find_bug.cold": "c3", "kernel_text_address.constprop.0": "c3", "kernel_text_address.constprop.1": "c3",
	})
	require.True(t, k.Has("can_probe"))
	require.False(t, k.Has("can_optimize"), "a part is not the function")
	require.False(t, k.Has("find_bug"))
	require.False(t, k.Has("kernel_text_address"), "which of the two is not known")
}

// TestOwnCanProbeAgreesWithTheBootedKernel compares the recorded kernels' own function
// with the answers of the booted kernels, at the same points.
func TestOwnCanProbeAgreesWithTheBootedKernel(t *testing.T) {
	for name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(oracle.Image(t, name), nil)
			require.NoError(t, err)
			k := open(t, img)
			asked := map[bool]int{}
			for i, p := range oracle.Points(t, name) {
				if i%every(97) != 0 || p.Err != 0 && p.Err != -int(errno.EILSEQ) || p.Ftrace {
					continue
				}
				_, reserved := img.Blacklisted(p.Addr)
				if reserved || !img.InText(p.Addr) {
					continue
				}
				can, err := k.CanProbe(p.Addr)
				require.NoError(t, err)
				if p.Err == 0 {
					require.True(t, can, "%s+%#x", p.Sym, p.Off)
				}
				asked[can]++
			}
			t.Logf("asked: %v", asked)
			require.Greater(t, asked[true], 10)
		})
	}
}

// TestSitesAreReserved: each recorded kernel's own functions know the sites that
// its tables have, and no other place.
func TestSitesAreReserved(t *testing.T) {
	for name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(oracle.Image(t, name), nil)
			require.NoError(t, err)
			k := open(t, img)
			for kind, ask := range map[kimage.SiteKind]func(x86.Addr, x86.Addr) (bool, error){
				kimage.SiteJumpLabel: k.JumpLabelReserved, kimage.SiteStaticCall: k.StaticCallReserved,
			} {
				sites := img.Sites(kind)
				for i := 0; i < len(sites); i += len(sites)/10 + 1 {
					at := sites[i].Addr
					on, err := ask(at, at)
					require.NoError(t, err)
					require.True(t, on, "%d: %s", kind, at)
				}
				can := img.Lookup("can_probe")[0].Addr
				on, err := ask(can, can)
				require.NoError(t, err)
				require.False(t, on)
			}
			bug := img.BugTable()[7].Addr
			on, err := k.FindBug(bug)
			require.NoError(t, err)
			require.True(t, on)
			on, err = k.FindBug(bug + 1)
			require.NoError(t, err)
			require.False(t, on)
		})
	}
}

// every returns n, the number of recorded points of which one is tested, or more in a short run.
func every(n int) int {
	if testing.Short() {
		return 5 * n
	}
	return n
}
