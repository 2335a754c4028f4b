package frontdoor

import (
	"cmp"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kimage/evidence"
	"kprobelab/profile"
)

var update = flag.Bool("update", false, "rewrite testdata/sides.txt from the images that are here")

// sidesFile has, for each field of the profile, what each image answers and who decided.
const sidesFile = "testdata/sides.txt"

// unshown gives, for a reason, the fields that have a date between two of the images and that no image
// shows on both sides of it.
var unshown = map[string][]string{
	"what shows the later value shows nothing by being absent": {"Resolve.RefuseAmbiguous", "Tracing.UniqueSymbols", "Kret.FrameCheck", "Tracing.Types"},
	"the files of tracefs of a booted kernel show it (make conformance-levels)": {
		"Tracing.ErrorCommandMax", "Tracing.FirstEventID", "Tracing.MatchCut", "Tracing.GroupHyphen", "Tracing.LongEventName", "Tracing.VmlinuxHidesModules",
		"Tracing.RefuseOpenEnd", "Tracing.FilterStack", "Tracing.LoneQuote", "Tracing.ArgZero", "Tracing.CountArgs", "Tracing.LongArgE2BIG", "Tracing.SanitizeStar",
	},
	"a program that runs on a booted kernel shows it": {"Tracing.FileOffsetTwice", "Tracing.UserNoSymbols", "Tracing.EmptyUserFaults", "Tracing.LazyResched", "Tracing.TriggerCounted"},
	"an order of steps, which modules, a failing tracer or several probes show": {
		"Check.ModuleGoingFirst", "Check.ReregistrationWarns", "Ftrace.KilledFails", "Optimize.FirstProbeEndsSearch", "FtraceArmForgiven",
	},
	"none of the images is built so that it shows": {"Kret.DefaultMaxActive", "Kret.LostReturn", "Built.StubEOPNOTSUPP", "Check.CFITraps"},
	"it is in a module that no image has":          {"Sample.Style"},
	"BPF's verifier shows it to a program":         {"BPF.StructArgs", "BPF.UnionArgs", "BPF.SyscallsListed", "BPF.Words"},
}

// side has the answers about a field of images that follow each other in the order of their releases.
type side struct {
	who, value string
	from, to   profile.Version
}

// said has one image's answer for each field.
type said map[string]side

// image is a file and its release.
type image struct {
	path    string
	version profile.Version
}

// images are Debian's kernels that scripts have fetched, in order of their releases.
func images(t *testing.T) (list []image) {
	files, err := filepath.Glob("../../../.cache/kernel/*/vmlinuz-*")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, f := range files {
		if name := filepath.Base(f); !seen[name] && strings.HasSuffix(name, "-cloud-amd64") {
			seen[name] = true
			list = append(list, image{path: f})
		}
	}
	return list
}

// ask opens an image and returns the facts found in it; an image about which evidence disagrees
// fails the test.
func (i *image) ask(t *testing.T) said {
	img, err := kprobelab.OpenImage(i.path, nil)
	require.NoError(t, err, i.path)
	v, ok := img.Version()
	require.True(t, ok, i.path)
	i.version = v
	row, m := profile.ForRelease(v), said{}
	for _, f := range img.Behaviour() {
		require.Empty(t, f.Against, "%s of %s is disputed", f.Name, v)
		value := f.Value
		switch {
		case f.Name == "Slot.BoostTable": // no row has one
			value = fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(value)))
		case strings.HasPrefix(f.Name, "Built.") && f.Value == "false": // a configuration does without it
		default:
			assert.Equal(t, row.Field(f.Name), f.Value, "%s of %s: the image says so (%s), its row otherwise", f.Name, v, f.Evidence)
		}
		m[f.Name] = side{who: string(f.From), value: profile.WriteValue(value), from: v, to: v}
	}
	return m
}

// readSides reads lines of FIELD WHO VALUE FROM TO, and the releases of the images.
func readSides(t *testing.T) (sides map[string][]side, asked []profile.Version) {
	text, err := os.ReadFile(sidesFile)
	require.NoError(t, err)
	sides = map[string][]side{}
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(strings.ReplaceAll(line, "no symbol", "no_symbol"))
		switch {
		case len(w) == 0 || w[0] == "#":
		case w[0] == "asked":
			for _, r := range w[1:] {
				v, ok := profile.ParseVersion(r)
				require.True(t, ok, r)
				asked = append(asked, v)
			}
		default:
			require.Len(t, w, 5, line)
			from, ok := profile.ParseVersion(w[3])
			to, ok2 := profile.ParseVersion(w[4])
			require.True(t, ok && ok2, line)
			sides[w[0]] = append(sides[w[0]], side{strings.ReplaceAll(w[1], "_", " "), w[2], from, to})
		}
	}
	return sides, asked
}

// order compares releases.
func order(a, b profile.Version) int {
	return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Patch, b.Patch))
}

// TestImagesShowTheFields: each image shows for each field the value of the table for its release,
// by the same kind of evidence, and the value of its release's row. A field that changed between
// two of the images is shown by images on both sides, or is in unshown with a reason.
func TestImagesShowTheFields(t *testing.T) {
	list := images(t)
	if *update {
		writeSides(t, list)
	}
	sides, asked := readSides(t)
	here := map[profile.Version]bool{}
	series := map[[2]int]bool{}
	for _, i := range list {
		// One of each series is opened, and all with KPROBELAB_SOAK=1.
		name, _ := profile.ParseVersion(strings.TrimPrefix(filepath.Base(i.path), "vmlinuz-"))
		of := [2]int{name.Major, name.Minor}
		if !*update && os.Getenv("KPROBELAB_SOAK") == "" && series[of] {
			continue
		}
		series[of] = true
		m := i.ask(t)
		here[i.version] = true
		if !slices.Contains(asked, i.version) {
			t.Logf("%s is not in the table; its rows were compared", i.version)
			continue
		}
		for field, s := range m {
			at := slices.IndexFunc(sides[field], func(e side) bool { return order(e.from, i.version) <= 0 && order(i.version, e.to) <= 0 })
			require.GreaterOrEqual(t, at, 0, "testdata/sides.txt has no line of %s for %s: %s %s %s FIRST LAST", field, i.version, field, s.who, s.value)
			want := sides[field][at]
			require.Equal(t, want.who+" "+want.value, s.who+" "+s.value, "%s of %s", field, i.version)
		}
	}
	for _, v := range asked {
		if !here[v] {
			t.Run(v.String(), func(t *testing.T) {
				t.Skip("its image is not in .cache/kernel (make conformance-levels), or KPROBELAB_SOAK=1 asks it")
			})
		}
	}
}

// TestEveryFieldIsShownOnBothSides: the table has a line for each field; where a date of a field lies
// between two of its images, they differ by what they show, or unshown has the reason.
func TestEveryFieldIsShownOnBothSides(t *testing.T) {
	sides, asked := readSides(t)
	require.Greater(t, len(asked), 40)
	first, last := asked[0], asked[len(asked)-1]
	c := profile.ForRelease(last)
	var bare []string
	for _, f := range c.Fields() {
		require.NotEmpty(t, sides[f.Name], "testdata/sides.txt has no line of %s: %s %s %v %s %s, where no image shows it, a line for each value; go test -run TestImagesShowTheFields -update with all images writes the file", f.Name, f.Name, evidence.Dated, f.Value, first, last)
		values := map[string]bool{}
		all := map[string]bool{}
		for _, s := range sides[f.Name] {
			all[s.value] = true
			if s.who != string(evidence.Dated) {
				values[s.value] = true
			}
		}
		if len(all) > 1 && len(values) < len(all) {
			bare = append(bare, f.Name)
		}
	}
	for _, ch := range profile.Changes() {
		for _, d := range ch.Dates() {
			if order(first, d) < 0 && order(d, last) <= 0 {
				require.NotEmpty(t, sides[ch.Field], "%s has a date, %s, and no line", ch.Field, d)
			}
		}
	}
	var reasons []string
	for _, fields := range unshown {
		reasons = append(reasons, fields...)
	}
	require.ElementsMatch(t, reasons, bare, "unshown, in this file, names the fields that changed between the images and that not all of them show, each with its reason")
}

// writeSides opens every image.
func writeSides(t *testing.T, list []image) {
	var all []said
	var versions []profile.Version
	by := map[profile.Version]said{}
	for i := range list {
		m := list[i].ask(t)
		v := list[i].version
		if before, ok := by[v]; ok {
			require.Equal(t, before, m, "two images of %s", v)
			continue
		}
		by[v] = m
		versions = append(versions, v)
	}
	slices.SortFunc(versions, order)
	b := "# What Debian's cloud images say of each field of the profile: FIELD WHO VALUE FROM TO.\n#\n" +
		"# WHO is who decided: measured (the image's own functions), code, symbol, configuration, or the row of its release,\n" +
		"# which decides where nothing in the image does. FROM and TO are the first and the last image of a run.\nasked"
	for _, v := range versions {
		all = append(all, by[v])
		b += " " + v.String()
	}
	b += "\n"
	c := profile.ForRelease(versions[0])
	for _, f := range c.Fields() {
		run := all[0][f.Name]
		line := func() { b += fmt.Sprintln(f.Name, strings.ReplaceAll(run.who, " ", "_"), run.value, run.from, run.to) }
		for _, m := range all[1:] {
			s := m[f.Name]
			if s.who != run.who || s.value != run.value {
				line()
				run = s
			}
			run.to = s.to
		}
		line()
	}
	require.NoError(t, os.WriteFile(sidesFile, []byte(b), 0o600))
}

// What an image that is no whole kernel has not, shows nothing: the guest kernel has neither tracing nor the return's functions.
func TestWhatASmallImageLacksShowsNothing(t *testing.T) {
	img, err := kprobelab.OpenImage("", nil)
	require.NoError(t, err)
	absent := []string{"Kret.HandlerIPIsTrampoline", "Kret.HandlerIRQsOff", "Optimize.RetriesHeldBack", "Poke.SharedArray", "Tracing.TAIClock", "Tracing.RawCommand", "Uprobes.ReturnCall"}
	for _, f := range img.Facts() {
		require.NotContains(t, absent, f.Name, f.Evidence)
	}
	require.False(t, img.Profile().Kret.HandlerIPIsTrampoline)
}
