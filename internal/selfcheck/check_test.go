package selfcheck

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/integration/written"
	"kprobelab/internal/own"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestImagesAgreeWithTheRules: on recorded kernels every question is answered by both,
// and alike. Their boot was compared with the rules before.
func TestImagesAgreeWithTheRules(t *testing.T) {
	n := 240
	if testing.Short() {
		n = 40
	}
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img, err := kimage.Open(oracle.Image(t, kernel), nil)
			require.NoError(t, err)
			done := int64(0)
			r, err := Check(img, Draw(img, n, 1), 0, func(at, total int64) {
				require.Equal(t, int64(n), total)
				done = at
			})
			require.NoError(t, err)
			require.Equal(t, int64(n), done)
			require.Equal(t, n, r.Points)
			var text bytes.Buffer
			require.NoError(t, r.WriteText(&text))
			require.Zero(t, r.Differ(), text.String())
			for i := range r.Questions {
				if q := &r.Questions[i]; !q.NotThere {
					require.Positive(t, q.Asked, q.Function)
				}
			}
		})
	}
}

// TestStandInsArePassedOver: code that a stand-in replaces has no answer, however often
// the question comes, and the code after it has one.
func TestStandInsArePassedOver(t *testing.T) {
	img, err := kimage.Open(oracle.Image(t, "oracle"), nil)
	require.NoError(t, err)
	poke, next := img.Lookup("text_poke"), img.Lookup("vfs_read")
	require.Len(t, poke, 1)
	var points []x86.Addr
	for s := range kimage.NewWalker(img, &img.Profile().Decoder).Function(poke[0]) {
		points = append(points, s.Addr)
	}
	points = points[:min(len(points), 2*tries)]
	require.Greater(t, len(points), patience)
	for s := range kimage.NewWalker(img, &img.Profile().Decoder).Function(next[0]) {
		points = append(points, s.Addr)
	}
	k, err := own.Open(img, 0)
	require.NoError(t, err)
	defer k.Close()
	s := newAsker(img, k)
	for _, a := range points {
		s.at(a)
	}
	i := slices.IndexFunc(s.result.Questions, func(a Answers) bool { return a.Function == "arch_prepare_kprobe" })
	q := s.result.Questions[i]
	require.Greater(t, q.Silent, patience)
	require.False(t, q.GivenUp)
	require.Contains(t, q.Why, "stand-in")
	require.Positive(t, q.Asked)
}

// TestWrongRulesShow: the rules of another release differ from the image, each kind
// with its rule and examples.
func TestWrongRulesShow(t *testing.T) {
	p, ok := profile.Named("6.1")
	require.True(t, ok)
	img, err := kimage.Open(oracle.Image(t, "oracle612"), &kimage.Options{Profile: p})
	require.NoError(t, err)
	var points []x86.Addr
	for _, a := range Draw(img, 4000, 1) { // points that 6.9 changed: shifts and others by a register
		var b [2]byte
		if img.CodeAt(a, b[:]); b[0] == 0xd1 || b[0] == 0xc1 || b[0] == 0x0f && b[1] == 0x0b {
			points = append(points, a)
		}
	}
	require.Greater(t, len(points), 10)
	r, err := Check(img, points, 0, nil)
	require.NoError(t, err)
	require.Positive(t, r.Differ())
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "can_boost: the image says yes, the rules no by NOT_BOOSTABLE; ")
}

// TestFunctionsThatDoNotAnswer: they are called a few times and no more, and the other
// functions' answers count.
func TestFunctionsThatDoNotAnswer(t *testing.T) {
	for name, code := range map[string]string{
		"does_not_return":       "eb fe",
		"faults":                "48 8b 04 25 00 00 00 00 c3",
		"answers_nonsense":      "b8 02 00 00 00 c3",
		"overwrites_the_stack":  "50 eb fd",
		"is_no_code":            "0f 0b",
		"answers_once_in_while": "48 f7 c7 3f 00 00 00 74 fe 31 c0 c3", // test $63,%rdi; je .
	} {
		t.Run(name, func(t *testing.T) {
			img := written.Image(t, map[string]string{"can_probe": code, "find_bug": "31 c0 c3", "helper": "90 90 90 c3"})
			r, err := Check(img, Draw(img, 200, 1), 0, nil)
			require.NoError(t, err)
			for i := range r.Questions {
				switch q := &r.Questions[i]; q.Function {
				case "can_probe":
					require.Positive(t, q.Silent)
					require.LessOrEqual(t, q.Silent, workers*tries)
					require.NotEmpty(t, q.Why)
				case "find_bug":
					require.Equal(t, 200, q.Asked)
					require.Zero(t, q.Differ)
				default:
					require.True(t, q.NotThere, q.Function)
				}
			}
			var text, lines bytes.Buffer
			require.NoError(t, r.WriteText(&text))
			require.Contains(t, text.String(), "  can_probe: ")
			require.NoError(t, r.WriteJSON(&lines))
			require.Equal(t, len(r.Questions), strings.Count(lines.String(), "\n"))
		})
	}
}

// TestFunctionsThatTakeTooLong: the timeout ends a question before its budget does, and
// is the reason that is given.
func TestFunctionsThatTakeTooLong(t *testing.T) {
	img := written.Image(t, map[string]string{"can_probe": "eb fe", "find_bug": "31 c0 c3"})
	r, err := Check(img, Draw(img, 20, 1), time.Nanosecond, nil)
	require.NoError(t, err)
	for i := range r.Questions {
		if q := &r.Questions[i]; q.Function == "can_probe" {
			require.Positive(t, q.Silent)
			require.Contains(t, q.Why, "still running after 1ns")
		}
	}
}

// TestDraw: the same seed draws the same, all points are in the text, and there are
// starts and insides of instructions among them.
func TestDraw(t *testing.T) {
	img, err := kimage.Open("../../testdata/guest.elf", nil)
	require.NoError(t, err)
	points := Draw(img, 400, 7)
	require.Equal(t, points, Draw(img, 400, 7))
	require.NotEqual(t, points, Draw(img, 400, 8))
	starts := map[x86.Addr]bool{}
	for _, a := range All(img) {
		starts[a] = true
	}
	in := 0
	for _, a := range points {
		require.True(t, img.InText(a), a)
		if starts[a] {
			in++
		}
	}
	require.Greater(t, in, 200)
	require.Less(t, in, 390)
}
