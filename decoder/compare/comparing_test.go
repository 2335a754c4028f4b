package compare

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ending is a decoder that ends with an error.
type ending struct {
	Decoder
	err error
}

func (e ending) Close() error { return e.err }

// ours is this program's decoder under another name, with a fault or without.
func ours(name string, wrong func(b []byte) bool) Decoder {
	return FromFunc(name, func(b []byte) Answer {
		var a [1]Answer
		Ours([][]byte{b}, a[:])
		if wrong(b) {
			a[0].Length = 1
		}
		return a[0]
	})
}

func never([]byte) bool { return false }

// A comparison's verdict is a sentence about the worst that it has found.
func TestVerdicts(t *testing.T) {
	right, call := never, func(b []byte) bool { return b[0] == 0xE8 }
	for name, c := range map[string]struct {
		by   Comparing
		want string
	}{
		"all_agree":           {&Among{Others: []Decoder{ours("good", right)}}, ""},
		"one_differs":         {&Among{Others: []Decoder{ours("good", right), ours("bad", call)}}, "1 kinds of differences without a known cause"},
		"tells_nothing":       {&Among{Others: []Decoder{FromFunc("nothing", func([]byte) Answer { return Answer{} })}}, "nothing refuses all"},
		"no_version_is_worse": {&Versions{Old: ours("old", call), New: ours("new", right)}, ""},
		"new_is_worse":        {&Versions{Old: ours("old", right), New: ours("new", call)}, "1 kinds of answers are worse than those of old"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, code := range []string{"\xe8\x01\x02\x03\x04", "\x90", "\xc3"} {
				require.NoError(t, c.by.Walk([]byte(code), 0x1000, seen, nil))
			}
			if name == "tells_nothing" {
				cover, err := c.by.Fuzz(1, 5000, nil)
				require.NoError(t, err)
				require.NotNil(t, cover)
			}
			var out strings.Builder
			err := c.by.Verdict(&out, nil)
			if c.want == "" {
				require.NoError(t, err, out.String())
			} else {
				var d *DiffersError
				require.ErrorAs(t, err, &d)
				require.Contains(t, err.Error(), c.want)
			}
			require.NotEmpty(t, out.String())
			require.NoError(t, c.by.Close())
		})
	}
}

// The first decoder that does not end well is the error, and all are ended.
func TestClosingAComparison(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	a, b, c := ending{nil, nil}, ending{nil, first}, ending{nil, second}
	require.Equal(t, first, (&Among{Others: []Decoder{a, b, c}}).Close())
	require.Equal(t, second, (&Versions{Old: a, New: c}).Close())
}

// The corpus has its columns once, and its notice in both forms.
func TestEntriesAreWritten(t *testing.T) {
	for name, c := range map[string]struct {
		json, shipped bool
		lines         int
		begin         string
	}{
		"columns": {false, false, 2, "bytes\t"}, "notice": {false, true, 7, "# The corpus"},
		"json": {true, false, 1, "{"}, "json_notice": {true, true, 2, `{"notice":"The corpus`},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			w := &EntryWriter{W: &b, JSON: c.json}
			require.NoError(t, w.Head(c.shipped))
			e := NewEntry([]byte{0x90}, nil)
			require.NoError(t, w.Write(&e))
			require.Equal(t, c.lines, strings.Count(b.String(), "\n"), b.String())
			require.True(t, strings.HasPrefix(b.String(), c.begin), b.String())
		})
	}
}
