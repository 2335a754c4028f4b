package report

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kimage/evidence"
)

func guest(t testing.TB) *kimage.Image {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	return img
}

func TestSymbolsMatchThePattern(t *testing.T) {
	img := guest(t)
	all, err := Symbols(img, "")
	require.NoError(t, err)
	require.Len(t, all, len(img.Symbols()))
	list, err := Symbols(img, "vfs_[rw][er]*")
	require.NoError(t, err)
	require.Equal(t, []string{"vfs_read", "vfs_write"}, names(list))
	none, err := Symbols(img, "no_such_*")
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = Symbols(img, "[")
	require.ErrorIs(t, err, path.ErrBadPattern)
}

func names(list []Symbol) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.Name)
	}
	return out
}

func TestSymbolWriters(t *testing.T) {
	list := []Symbol{
		{Addr: known(0xffffffff81000000), Size: 16, Type: "T", Name: "_stext"},
		{Addr: known(0x0000000000001000), Size: 8, Type: "t", Name: "demo_run", Module: "demo"},
	}
	for name, c := range map[string]struct {
		write func(*bytes.Buffer) error
		want  string
	}{
		"text": {
			func(b *bytes.Buffer) error { return WriteSymbols(b, list) },
			"ffffffff81000000 T _stext\n0000000000001000 t demo_run\t[demo]\n",
		},
		"tsv": {
			func(b *bytes.Buffer) error { return WriteSymbolsTSV(b, list) },
			"addr\tsize\ttype\tname\tmodule\n0xffffffff81000000\t16\tT\t_stext\t\n0x0000000000001000\t8\tt\tdemo_run\tdemo\n",
		},
		"json": {
			func(b *bytes.Buffer) error { return WriteSymbolsJSON(b, list) },
			`{"addr":"0xffffffff81000000","size":16,"type":"T","name":"_stext","module":""}` + "\n" +
				`{"addr":"0x0000000000001000","size":8,"type":"t","name":"demo_run","module":"demo"}` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, c.write(&b))
			require.Equal(t, c.want, b.String())
		})
	}
}

func TestDescribeImage(t *testing.T) {
	img := guest(t)
	r := DescribeImage(img)
	require.Equal(t, "guest", r.Name)
	require.Equal(t, "kernel", r.Kind)
	require.Equal(t, img.Profile().Name, r.Profile)
	require.NotEmpty(t, r.Facts)
	require.Contains(t, r.Tables, Table{"symbols", len(img.Symbols())})
	require.Contains(t, r.Tables, Table{"ftrace sites", len(img.Sites(kimage.SiteFtrace))})
	require.Equal(t, ".text", r.Sections[0].Name)
	require.Equal(t, "r-x", r.Sections[0].Flags)

	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	var back Image
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, *r, back)
}

func TestWriteTextKeepsItsOrder(t *testing.T) {
	r := &Image{
		Name: "x", Kind: "kernel", Profile: "6.1", Standing: "modelled, measured", Describes: "a kernel",
		Facts: []Fact{{Name: "release", Value: "6.1.0", Evidence: "linux_banner"}},
		Behaviour: []Behaviour{
			{Fact{Name: "HZ", Value: "250", Evidence: "CONFIG_HZ in config", From: evidence.Configured}},
			{Fact{Name: "Jprobes", Value: "false", Evidence: "profile 6.1", From: evidence.Dated}},
		},
		Tables:   []Table{{"symbols", 2}},
		Sections: []Section{{Name: ".text", Addr: known(0xffffffff81000000), Size: 16, Flags: "r-x", Module: "demo"}},
	}
	var b bytes.Buffer
	require.NoError(t, r.WriteText(&b))
	require.Equal(t, strings.Join([]string{
		"x: kernel, profile 6.1 (modelled, measured): a kernel",
		"",
		"facts",
		"  release  6.1.0  linux_banner",
		"",
		"behaviour",
		"  HZ  250  configuration  CONFIG_HZ in config",
		"",
		"behaviour that nothing in the image confirms: 1 of 2 fields, those of the release (profile 6.1)",
		"  Jprobes  false",
		"",
		"tables",
		"  symbols  2",
		"",
		"sections",
		"  .text [demo]  0xffffffff81000000  0x10  r-x",
		"",
	}, "\n"), b.String())
}

// Every kind of patch site has a name, or a new one would show without.
func TestEverySiteKindHasAName(t *testing.T) {
	for kind, name := range siteNames {
		require.NotEmpty(t, name, "kind %d", kind)
	}
}

// Rule: no line about an image ends where a value should stand, whatever was measured of
// it: a field that had no value, one that has none now, one that keeps its own.
func TestNoSentenceWithoutItsValue(t *testing.T) {
	table := strings.Repeat("f", 512) + " " + strings.Repeat("0", 65)
	for name, answers := range map[string][]kimage.Answer{
		"had_none":    {{Field: "Slot.BoostTable", Value: table, Evidence: "can_boost of every opcode"}},
		"has_none":    {{Field: "Log.Prefix", Value: "", Evidence: "the log"}, {Field: "Kret.LostReturn", Value: "", Evidence: "the log"}},
		"has_another": {{Field: "HZ", Value: "100", Evidence: "the tick"}, {Field: "FramePointer", Value: "true", Evidence: "the code"}},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{
				Measure: func(*kimage.Image) ([]kimage.Answer, error) { return answers, nil },
			})
			require.NoError(t, err)
			var b bytes.Buffer
			require.NoError(t, DescribeImage(img).WriteText(&b))
			for line := range strings.Lines(b.String()) {
				require.NotRegexp(t, ` (for|of|by|in|from|to|is|was|and)\s*$`, line)
				if strings.HasPrefix(line, "  ") {
					require.Greater(t, len(strings.Fields(line)), 1, "%q has a name alone", line)
				}
			}
		})
	}
}

// TestSitesOfWhichTheImageSaysNothing: info counts them, and explain says so of a point whose region
// has one, and of no other. The guest kernel has no table of no-operations; a real one has.
func TestSitesOfWhichTheImageSaysNothing(t *testing.T) {
	const count, says = "patched sites of which the image says nothing", "nothing in the image says how"
	entries := func(img *kimage.Image) (n int) {
		for _, e := range DescribeImage(img).Tables {
			if e.Name == count {
				n = e.Entries
			}
		}
		return n
	}
	explained := func(img *kimage.Image, point string) string {
		e, err := NewScan(img).Explain(point)
		require.NoError(t, err)
		return strings.Join(e.Notes, "\n")
	}
	guest, err := kimage.Open("../../testdata/guest.elf", nil)
	require.NoError(t, err)
	require.Greater(t, entries(guest), len(guest.Sites(kimage.SiteFtrace)))
	require.Contains(t, explained(guest, "vfs_read"), says)
	require.NotContains(t, explained(guest, "strlen+0x5"), says)

	t.Run("a_real_kernel", func(t *testing.T) {
		whole, err := kimage.Open(oracle.Image(t, "oracle"), nil)
		require.NoError(t, err)
		require.Zero(t, entries(whole))
		require.NotContains(t, explained(whole, "vfs_read"), says)
	})
}
