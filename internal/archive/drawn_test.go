package archive_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// drawer draws lines that check reads.
type drawer struct {
	*rand.Rand
	img  *kimage.Image
	syms []kimage.Symbol
	text []kimage.Symbol
	// hazards are points at which probes do harm, and refused points of that kind.
	hazards []report.HazardPoint
}

func newDrawer(img *kimage.Image, seed uint64) *drawer {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 1)), img: img, syms: img.Symbols()}
	for _, s := range d.syms {
		if img.InText(s.Addr) {
			d.text = append(d.text, s)
		}
	}
	d.hazards, _ = report.HazardPoints(img, nil)
	return d
}

func (d *drawer) one(list ...string) string { return list[d.IntN(len(list))] }

// place is a symbol with an offset or not, an address, or something wrong.
func (d *drawer) place() string {
	s := d.text[d.IntN(len(d.text))]
	if d.IntN(8) == 0 {
		s = d.syms[d.IntN(len(d.syms))]
	}
	off := d.Uint64N(s.Size + 2)
	switch d.IntN(14) {
	case 12, 13:
		if len(d.hazards) > 0 {
			p := &d.hazards[d.IntN(len(d.hazards))]
			return d.one(p.Addr.String(), fmt.Sprintf("%s+%d", p.Symbol, p.Offset), fmt.Sprintf("%s+%d", p.Symbol, p.Offset+1))
		}
	case 0:
		return fmt.Sprintf("%v", s.Addr.Add(int64(off)))
	case 1:
		return d.one("no_such_"+s.Name, "vmlinux:"+s.Name, "nomod:"+s.Name, strings.ToUpper(s.Name), s.Name[:len(s.Name)/2])
	case 2, 3, 4:
		return fmt.Sprintf("%s+%d", s.Name, off)
	case 5:
		return fmt.Sprintf("%s+%#x", s.Name, d.one("4", "5")[0]-'0')
	}
	return s.Name
}

func (d *drawer) args() string {
	var list []string
	for range d.IntN(3) {
		s := d.syms[d.IntN(len(d.syms))]
		field := "count"
		if p, ok := d.img.Proto(d.text[d.IntN(len(d.text))].Name); ok && len(p.Params) > 0 {
			field = p.Params[d.IntN(len(p.Params))].Name
		}
		list = append(list, d.one("$arg1", "$arg*", "$retval", "$stack0", "$comm", "%di", "%ax:u8", "+8(%di):x64", "a=%zz", field, field+":u32", "b="+field+"->"+d.one("flags", "next", "name", "nosuch"),
			"@"+s.Name, "@"+s.Name+"+8:s32", "@no_such", "+0(+8(%si)):string", "1", "\\1", "x=$arg2:ustring", "%di:u7", "_="+field))
	}
	return strings.Join(list, " ")
}

func (d *drawer) line() string {
	switch d.IntN(6) {
	case 0:
		return d.place()
	case 1:
		return d.place() + "%return"
	case 2, 3:
		return strings.TrimSpace(d.one("p", "p:x", "p:g/x", "p:1x") + " " + d.place() + " " + d.args())
	}
	return strings.TrimSpace(d.one("r", "r8:x", "r:g/x", "p:x") + " " + d.place() + d.one("", "", "%return") + " " + d.args())
}

func (d *drawer) lines(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(d.line() + "\n")
	}
	return b.String()
}

// drawn is the number of definitions that are drawn for each kernel.
const drawn = 2000

// Rule: check gives the same answers for a file as for the image, cell by cell: how a
// probe runs, every errno, every rule and every word, and the hazards.
func TestDrawnDefinitionsAreAnsweredAlike(t *testing.T) {
	images := map[string]func() *kimage.Image{"guest": func() *kimage.Image { return guest(t) }}
	if !testing.Short() {
		for _, name := range kernels(t) {
			images[filepath.Base(name)] = func() *kimage.Image {
				img, err := kprobelab.OpenImage(name, nil)
				require.NoError(t, err)
				return img
			}
		}
	}
	for name, open := range images {
		t.Run(name, func(t *testing.T) {
			img := open()
			k := archived(t, img)
			lines := newDrawer(img, 12).lines(drawn)
			want, got := cells(t, report.OfImage(img), lines), cells(t, k, lines)
			for i := range got {
				// Only a file that make archive has made knows modules.
				if got[i].Cells[0].Found == report.FoundPackage {
					require.Equal(t, report.FoundAbsent, want[i].Cells[0].Found)
					got[i] = want[i]
				}
			}
			sameCells(t, want, got)
			require.NoError(t, k.Err())
			attach, harm := 0, 0
			for i := range want {
				if want[i].Cells[0].Attaches {
					attach++
					harm += len(want[i].Cells[0].Hazards)
				}
			}
			t.Logf("%d of %d attach, %d have a hazard", attach, drawn, harm)
			require.Greater(t, harm, drawn/50)
			require.Greater(t, attach, drawn/20)
			require.Less(t, attach, drawn*19/20)
		})
	}
}

// archived is an image's file in the folder that ARCHIVE names; without that it is made.
func archived(t *testing.T, img *kimage.Image) *archive.Kernel {
	if dir := os.Getenv("ARCHIVE"); dir != "" && img.BuildID() != "" {
		files, err := archive.List(dir)
		require.NoError(t, err)
		for _, name := range files {
			h, err := archive.ReadHeader(name)
			require.NoError(t, err)
			if h.BuildID == img.BuildID() {
				k, err := archive.Open(name)
				require.NoError(t, err)
				return k
			}
		}
	}
	k, _ := packed(t, img)
	return k
}

// kernels are the images that KERNELS names, by a pattern of files.
func kernels(t *testing.T) []string {
	list, err := filepath.Glob(os.Getenv("KERNELS"))
	require.NoError(t, err)
	return list
}
