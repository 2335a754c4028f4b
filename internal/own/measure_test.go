package own

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/bounded"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
)

// said are the answers by field.
func said(t *testing.T, answers []kimage.Answer) map[string]string {
	t.Helper()
	c, _ := profile.Named(profile.Default)
	m := map[string]string{}
	for _, a := range answers {
		require.NoError(t, c.SetField(a.Field, a.Value), "%+v", a)
		require.NotContains(t, m, a.Field)
		require.False(t, odd(a), "%+v", a)
		m[a.Field] = a.Value
	}
	return m
}

// TestMeasuredIsWhatWasModelled: on the recorded kernels, whose profiles were
// compared with the booted kernels, measuring finds the same.
func TestMeasuredIsWhatWasModelled(t *testing.T) {
	t.Setenv(CacheVariable, "off")
	for name, of := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(oracle.Image(t, name), nil)
			require.NoError(t, err)
			answers, err := Measured(img)
			require.NoError(t, err)
			got := said(t, answers)
			require.Greater(t, len(got), 15)
			want, _ := profile.Named(of)
			for field, value := range got {
				if field != "Slot.BoostTable" { // no named profile has one; see TestMeasuredBoostTable
					require.Equal(t, want.Field(field), value, field)
				}
			}
		})
	}
}

// TestMeasuringFindsWhatTheReleaseDoesNotTell: an image that is opened as one of
// another release is measured as its true release.
func TestMeasuringFindsWhatTheReleaseDoesNotTell(t *testing.T) {
	t.Setenv(CacheVariable, "off")
	b, err := os.ReadFile(oracle.Image(t, "oracle612"))
	require.NoError(t, err)
	plain, err := kimage.FromBytes("6.12", b, nil)
	require.NoError(t, err)
	wrong, _ := profile.Named("5.8")
	img, err := kimage.FromBytes("6.12", b, &kimage.Options{Measure: Measured, Profile: wrong})
	require.NoError(t, err)
	require.Equal(t, wrong, img.Profile(), "a profile that is asked for wins")
	answers, err := Measure(img)
	require.NoError(t, err)
	for field, value := range said(t, answers) {
		if field != "Slot.BoostTable" {
			require.Equal(t, plain.Profile().Field(field), value, field)
		}
	}
}

// TestMeasuringAnImageThatDoesNotAnswer: what cannot be asked is left out, and the
// error says which functions.
func TestMeasuringAnImageThatDoesNotAnswer(t *testing.T) {
	t.Setenv(CacheVariable, "off")
	const yes, no = "b8 01 00 00 00 c3", "31 c0 c3"
	for name, c := range map[string]struct {
		functions map[string]string
		says      string
	}{
		"all_loop":          {map[string]string{"can_probe": "eb fe", "can_boost": "eb fe", "can_optimize": "eb fe", "insn_decode": "eb fe", "kprobe_int3_handler": "eb fe"}, "insn_decode"},
		"all_fault":         {map[string]string{"can_probe": "0f 0b", "can_boost": "0f 0b", "insn_init": "0f 0b", "insn_get_length": "0f 0b", "kprobe_emulate_jcc": "0f 0b"}, "insn_init"},
		"all_say_yes":       {map[string]string{"can_probe": yes, "can_boost": yes, "can_optimize": yes, "insn_decode": yes}, "nonsense"},
		"all_say_no":        {map[string]string{"can_probe": no, "can_boost": no, "can_optimize": no, "insn_decode": no}, "nonsense"},
		"nothing_but_boost": {map[string]string{"can_boost": no}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := made(t, c.functions)
			answers, err := Measured(k.Image())
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
			require.Empty(t, said(t, answers))
		})
	}
}

func TestTheGuestKernelIsNotAsked(t *testing.T) {
	img, err := kimage.Open("../../testdata/guest.elf", &kimage.Options{Measure: Measured})
	require.NoError(t, err)
	require.Equal(t, "modelled, not measured", img.Standing())
}

// TestCacheIsNotTrusted: whatever is in a file of answers, the image gets answers
// of its own, and none that are not of the right form.
func TestCacheIsNotTrusted(t *testing.T) {
	img, err := kimage.Open(oracle.Image(t, "oracle"), nil)
	require.NoError(t, err)
	dir := t.TempDir()
	t.Setenv(CacheVariable, dir)
	want, err := Measured(img)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "measured", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	good, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, want, readCache(files[0]))

	many, err := json.Marshal(kept{Version, make([]kimage.Answer, bounded.Answers+1)})
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"empty":         {},
		"truncated":     good[:len(good)/2],
		"other_version": bytes.Replace(good, fmt.Appendf(nil, `"version":%d`, Version), fmt.Appendf(nil, `"version":%d`, Version+1), 1),
		"other_json":    []byte("[1,2,3]"),
		"control_codes": bytes.Replace(good, []byte("Decoder.EVEX"), []byte(`\u001b[31m`), 1),
		"large":         append(good, strings.Repeat(" ", bounded.AnswersFile)...),
		"too_many":      many,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(files[0], content, 0o600))
			require.Empty(t, readCache(files[0]))
			got, err := Measured(img)
			require.NoError(t, err)
			require.Equal(t, want, got)
			now, err := os.ReadFile(files[0])
			require.NoError(t, err)
			require.Equal(t, good, now, "the file is written anew")
		})
	}
	t.Run("a_folder", func(t *testing.T) {
		require.NoError(t, os.Remove(files[0]))
		require.NoError(t, os.MkdirAll(filepath.Join(files[0], "x"), 0o700))
		got, err := Measured(img)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	t.Run("not_writable", func(t *testing.T) {
		t.Setenv(CacheVariable, "/dev/null/nowhere")
		got, err := Measured(img)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// TestMeasuredBoostTable: the table that a recorded kernel answers decides as the
// rule that was compared with that kernel, for every opcode, with and without
// prefixes.
func TestMeasuredBoostTable(t *testing.T) {
	t.Setenv(CacheVariable, "off")
	for name, of := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(oracle.Image(t, name), nil)
			require.NoError(t, err)
			answers, err := Measured(img)
			require.NoError(t, err)
			ruled, _ := profile.Named(of)
			tabled, _ := profile.Named(of)
			require.NoError(t, tabled.SetField("Slot.BoostTable", said(t, answers)["Slot.BoostTable"]))
			require.True(t, tabled.Slot.BoostTable.Known)
			n := 0
			for _, prefix := range []string{"", "\x2e", "\x66", "\x67", "\xf3", "\x48", "\x67\x48", "\x2e\x0f", "\x0f", "\x67\x0f", "\x0f\x38", "\xc5\xf8", "\xc4\xe2\x79"} {
				for op := range 256 {
					for reg := range 8 {
						code := append([]byte(prefix), byte(op), 0xc0|byte(reg)<<3, 1, 2, 3, 4, 5, 6, 7, 8)
						k, err := decoder.DecodeKernel(code, &ruled.Decoder)
						if err != nil {
							continue
						}
						n++
						require.Equal(t, slot.Boostable(img, &k, 0, ruled), slot.Boostable(img, &k, 0, tabled), "% x", code)
					}
				}
			}
			require.Greater(t, n, 10000)
		})
	}
}
