package perfprobe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Probe{
		"vfs_read":               {Where: source.Where{Function: "vfs_read"}},
		"vfs_read+0x10":          {Where: source.Where{Function: "vfs_read", Offset: 16}},
		"vfs_read@fs/read.c":     {Where: source.Where{Function: "vfs_read", File: "fs/read.c"}},
		"vfs_read@read.c:3":      {Event: "vfs_read_L3", Where: source.Where{Function: "vfs_read", File: "read.c", Line: 3}},
		"fs/read.c:12":           {Where: source.Where{File: "fs/read.c", Line: 12}},
		"vfs_read:12":            {Event: "vfs_read_L12", Where: source.Where{Function: "vfs_read", Line: 12}},
		"vfs_read%return":        {Where: source.Where{Function: "vfs_read", Return: true}},
		"mine=vfs_*":             {Event: "mine", Where: source.Where{Function: "vfs_*"}},
		"grp:mine=vfs_read:0":    {Group: "grp", Event: "mine", Where: source.Where{Function: "vfs_read"}},
		"f a":                    {Where: source.Where{Function: "f"}, Args: []Arg{{Var: "a"}}},
		"f x=a:u8":               {Where: source.Where{Function: "f"}, Args: []Arg{{Name: "x", Var: "a", Type: "u8"}}},
		"f a:string@user":        {Where: source.Where{Function: "f"}, Args: []Arg{{Var: "a", Type: "string", User: true}}},
		"f a->b.c[2]":            {Where: source.Where{Function: "f"}, Args: []Arg{{Name: "c", Var: "a", Fields: []Field{{Name: "b", Arrow: true}, {Name: "c"}, {Name: "[2]", Arrow: true, Element: true, Index: 2}}}}},
		"f $vars %di @sym+8":     {Where: source.Where{Function: "f"}, Args: []Arg{{Var: "$vars"}, {Var: "%di"}, {Var: "@sym+8"}}},
		"f%return ret=$retval":   {Where: source.Where{Function: "f", Return: true}, Args: []Arg{{Name: "ret", Var: "$retval"}}},
		"0xffffffff81000000 %ax": {Where: source.Where{Function: "0xffffffff81000000"}, Address: 0xffffffff81000000, Absolute: true, Args: []Arg{{Var: "%ax"}}},
	} {
		p, err := Parse(definition.ReadLine(text))
		require.NoError(t, err, text)
		p.text = ""
		require.Equal(t, want, *p, text)
	}
}

func TestWhatIsNoProbe(t *testing.T) {
	for text, why := range map[string]string{
		"":              "no probe is given",
		"+3":            "+3 names no function and no file",
		"f:3+4":         "f:3+4: an offset and a line exclude each other",
		"f%return+4":    "f%return+4: a return probe is at the whole function, without offset or line",
		"f%return a":    "a: a return probe sees no local variables, but $retval",
		"f%entry":       "%entry is not known; %return is",
		"f:x":           `"x" is no line number`,
		"f+x":           `"x" is no offset`,
		"a.c@b.c:3@c.c": "two files are named",
		"9=f":           "9 is no name for an event: letters, digits and _, no digit first",
		"f a-b":         "a-b: a single - is no operator here",
		"f a[x]":        "a[x]: an index is a number",
		"f a[1":         "a[1: a ] is missing",
		"f a[1]b":       `a[1]b: "b" follows an index`,
		"f a->":         "a->: a member's name is missing",
		"f x=":          `"x=" is no argument`,
		"f;return*":     "patterns of source lines (;) are not known here",
		"0xzz":          "0xzz is no address",
	} {
		_, err := Parse(definition.ReadLine(text))
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.EqualError(t, err, why, text)
	}
}

func TestParseLines(t *testing.T) {
	for text, want := range map[string]Range{
		"f":         {Where: source.Where{Function: "f"}, To: -1},
		"f:3":       {Where: source.Where{Function: "f"}, From: 3, To: -1},
		"f:3-5":     {Where: source.Where{Function: "f"}, From: 3, To: 5},
		"f:3+5":     {Where: source.Where{Function: "f"}, From: 3, To: 7},
		"f@a.c:1-1": {Where: source.Where{Function: "f", File: "a.c"}, From: 1, To: 1},
		"fs/a.c":    {Where: source.Where{File: "fs/a.c"}, To: -1},
	} {
		r, err := ParseLines(text)
		require.NoError(t, err, text)
		require.Equal(t, want, r, text)
	}
	for _, text := range []string{"f:", "f:x", "f:5-3", "f:1-", "9f", ""} {
		_, err := ParseLines(text)
		require.Error(t, err, text)
	}
}

func TestFeaturesOfAReadme(t *testing.T) {
	require.Equal(t, Features{}, ReadFeatures(""))
	require.Equal(t, Features{Hex: true, Immediate: true, Several: true, User: true}, ReadFeatures(
		"  dynamic_events\t\t- Create/append/remove/show the generic dynamic events\n"+
			"\t           +|-[u]<offset>(<fetcharg>), \\imm-value, \\\"imm-string\"\n"+
			"\t     type: s8/16/32/64, u8/16/32/64, x8/16/32/64, char, string, symbol,\n"))
	require.Equal(t, Features{}, ReadFeatures("\t     type: s8/16/32/64, u8/16/32/64, string,\n"))
}

// symbols is a file of symbols alone.
func symbols(t *testing.T) *source.File {
	f, err := source.OfBTF(nil, nil, []source.Symbol{
		{Name: "f", Start: 16, End: 32, Func: true}, {Name: "g.isra.0", Start: 32, End: 48, Func: true}, {Name: "f", Start: 48, End: 64, Func: true},
	})
	require.NoError(t, err)
	return f
}

// Rule: events of one list have different names, unless the kernel takes several places
// under one.
func TestNamesOfEvents(t *testing.T) {
	for several, want := range map[bool][]string{
		false: {"p:probe/f f+0", "p:probe/f_1 f+0", "p:probe/g g.isra.0+0", "r:probe/f__return f+0 $retval", "r:probe/f_2 f+0 $retval"},
		true:  {"p:probe/f f+0", "p:probe/f f+0", "p:probe/g g.isra.0+0", "r:probe/f__return f+0 $retval", "r:probe/f__return f+0 $retval"},
	} {
		w := Writer{File: symbols(t), Features: Features{Several: several}}
		var got []string
		for _, text := range []string{"f", "g.isra.0", "f%return $retval"} {
			p, err := Parse(definition.ReadLine(text))
			require.NoError(t, err)
			list, err := w.Define(p)
			require.NoError(t, err)
			for _, d := range list {
				require.Equal(t, definition.ReadLine(d.Line().Text), d.Line(), "the text has the words of the tree")
				got = append(got, d.Line().Text)
			}
		}
		require.Equal(t, want, got)
	}
}

func TestConstantsAsPerfReadsThem(t *testing.T) {
	for v, want := range map[int64]int64{0: 0, 127: 127, 128: -128, 255: -1, 256: 256, 32767: 32767, 32768: -32768, 65536: 65536, 1 << 31: -1 << 31, 1 << 32: 1 << 32, -5: -5} {
		require.Equal(t, want, asSigned(v), v)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"vfs_read count file->f_pos:u8", "a=f@x.c:3 b[1].c@user", "f%return $retval", "0x12+3 %di"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := Parse(definition.ReadLine(text)); err == nil {
			w := Writer{File: symbols(t)}
			_, _ = w.Define(p)
		}
		_, _ = ParseLines(text)
	})
}
