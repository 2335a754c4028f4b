package shard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/internal/bounded"
)

func TestPartsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "x", "1", "/", "0/3", "4/3", "1/0", "-1/3", "1/-3", "+1/3", "01/3", "1/3/4", "1/3 ", "1.0/3", "1/99999999999999999999", fmt.Sprintf("1/%d", bounded.Shards+1)} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "--shard takes I/N, such as 2/3", text)
	}
	p, err := Parse(fmt.Sprintf("3/%d", bounded.Shards))
	require.NoError(t, err)
	require.Equal(t, Part{3, bounded.Shards}, p)
}

// Rule: each item is in one shard and no more, in the order of the list, and the sizes differ by one at most.
func TestEachItemIsInOneShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]int, rapid.IntRange(0, 300).Draw(t, "items"))
		for i := range list {
			list[i] = i
		}
		n := rapid.IntRange(1, 40).Draw(t, "n")
		var all []int
		for i := 1; i <= n; i++ {
			p, err := Parse(fmt.Sprintf("%d/%d", i, n))
			require.NoError(t, err)
			mine := Of(p, list)
			require.True(t, slices.IsSorted(mine))
			require.Len(t, mine, p.count(len(list)))
			require.InDelta(t, len(list)/n, len(mine), 1)
			all = append(all, mine...)
		}
		slices.Sort(all)
		require.Equal(t, list, append([]int{}, all...))
	})
}

type results struct {
	A Text
	N int
}

// written writes the output of a shard of items.
func written(t require.TestingT, part string, words []string, items []string, form any) []byte {
	p, err := Parse(part)
	require.NoError(t, err)
	var b bytes.Buffer
	w, err := Begin(&b, "v1", words, p, items, form)
	require.NoError(t, err)
	var mine []results
	for i, name := range Of(p, items) {
		mine = append(mine, results{Text(name), i})
	}
	require.NoError(t, All(w, mine))
	return b.Bytes()
}

var (
	words = []string{"check", "--shard", "9/9", "a b", "it's"}
	items = []string{"one", "two\n<&>", "thr\xffee", "", "five"}
)

func files(t testing.TB, contents ...[]byte) (names []string) {
	dir := t.TempDir()
	for i, b := range contents {
		name := filepath.Join(dir, fmt.Sprintf("%c.shard", 'a'+i))
		require.NoError(t, os.WriteFile(name, b, 0o600))
		names = append(names, name)
	}
	return names
}

// Rule: the results are those of one run, in its order, with any number of shards in any order of the files.
func TestShardsAreOneRun(t *testing.T) {
	for n := 1; n <= 7; n++ {
		var outputs [][]byte
		for i := n; i >= 1; i-- {
			outputs = append(outputs, written(t, fmt.Sprintf("%d/%d", i, n), words, items, map[string]int{"x": 1}))
		}
		r, err := Open("v1", files(t, outputs...))
		require.NoError(t, err)
		require.Equal(t, "check", r.Command)
		require.Equal(t, []string{"check", "a b", "it's"}, r.Arguments)
		form, list, err := Collect[map[string]int, results](r)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"x": 1}, form)
		var names []string
		for _, one := range list {
			names = append(names, string(one.A))
		}
		require.Equal(t, items, names)
		r.Close()
	}
}

// Rule: a shard that died is named with the command line that runs it again; its new output takes the place of the old one.
func TestAShardThatDiedIsNamed(t *testing.T) {
	whole := func(part string) []byte { return written(t, part, words, items, nil) }
	first, last, died := whole("1/3"), whole("3/3"), whole("2/3")
	again := `; run again: kprobelab check --shard 2/3 'a b' 'it'\''s'`
	lines := bytes.SplitAfter(died, []byte("\n"))
	for name, c := range map[string]struct {
		output []byte
		says   string
	}{
		"cut_in_a_result":  {died[:len(lines[0])+5], "shard 2/3 died: FILE ends after 0 of 2 results"},
		"cut_after_one":    {bytes.Join(lines[:2], nil), "shard 2/3 died: FILE ends after 1 of 2 results"},
		"cut_before_end":   {bytes.Join(lines[:3], nil), "shard 2/3 died: FILE ends after 2 of 2 results"},
		"cut_in_the_end":   {died[:len(died)-1], "shard 2/3 died: FILE ends after 2 of 2 results"},
		"result_left_out":  {slices.Concat(lines[0], lines[2], lines[3]), "shard 2/3 died: FILE is damaged after 0 of 2 results"},
		"end_too_early":    {slices.Concat(lines[0], lines[1], []byte(`{"end":1}`+"\n")), "shard 2/3 died: FILE is damaged after 1 of 2 results"},
		"end_of_more":      {slices.Concat(lines[0], lines[1], lines[2], []byte(`{"end":3}`+"\n")), "shard 2/3 died: FILE is damaged after 2 of 2 results"},
		"damaged":          {bytes.Replace(died, []byte(`"item":4`), []byte(`"item":!`), 1), "shard 2/3 died: FILE is damaged after 1 of 2 results"},
		"two_in_one_file":  {slices.Concat(died, died), "shard 2/3 died: FILE goes on after its end"},
		"cut_in_the_first": {died[:30], "shard 2/3 is missing; FILE is cut off in its first line"},
		"empty":            {nil, "shard 2/3 is missing; FILE is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			names := files(t, first, c.output, last, died)
			_, err := Open("v1", names[:3])
			require.ErrorIs(t, err, ErrShards)
			require.EqualError(t, err, ErrShards.Error()+": "+strings.ReplaceAll(c.says, "FILE", names[1])+again)
			r, err := Open("v1", names) // the one run again beside the one that died
			require.NoError(t, err)
			r.Close()
		})
	}
	_, err := Open("v1", files(t, first))
	require.EqualError(t, err, ErrShards.Error()+": shard 2/3 is missing; shard 3/3 is missing"+again+`; kprobelab check --shard 3/3 'a b' 'it'\''s'`)
	names := files(t, nil, first[:20])
	_, err = Open("v1", names)
	require.EqualError(t, err, ErrShards.Error()+": "+names[0]+" is empty; "+names[1]+" is cut off in its first line; no file says which shard it is")
}

// Rule: shards that do not go together are refused, with both files' names.
func TestShardsThatDoNotGoTogether(t *testing.T) {
	one := written(t, "1/2", words, items, 1)
	for name, c := range map[string]struct {
		other []byte
		says  string
	}{
		"twice":          {one, "A and B are both shard 1/2"},
		"other_command":  {written(t, "2/2", []string{"scan", "--shard=2/2", "a b"}, items, 1), `A is of kprobelab check 'a b' 'it'\''s', and B is of kprobelab scan 'a b': the shards of one command line go together`},
		"other_argument": {written(t, "2/2", []string{"check", "a c", "it's"}, items, 1), "B is of kprobelab check 'a c'"},
		"other_number":   {written(t, "2/3", words, items, 1), "A is shard 1/2, and B is shard 2/3: all have to be of the same number"},
		"other_items":    {written(t, "2/2", words, append([]string{"x"}, items[1:]...), 1), "A and B are of one command line, which meant different files or kernels there"},
		"other_form":     {written(t, "2/2", words, items, 2), "which meant different files or kernels there"},
		"other_version":  {bytes.Replace(written(t, "2/2", words, items, 1), []byte(`"v1"`), []byte(`"v2"`), 1), "A is by kprobelab v1, and B is by kprobelab v2: one version has to run all shards"},
		"other_format":   {bytes.Replace(written(t, "2/2", words, items, 1), []byte(`shard":1`), []byte(`shard":2`), 1), "it has format 2 of shards, and 1 is read"},
		"no_shard":       {[]byte("vfs_read: ok\n"), "it is no output of a command with --shard"},
		"other_json":     {[]byte("{}\n"), "it is no output of a command with --shard"},
	} {
		t.Run(name, func(t *testing.T) {
			names := files(t, one, c.other)
			_, err := Open("v1", names)
			require.ErrorIs(t, err, ErrShards)
			require.ErrorContains(t, err, strings.NewReplacer("A ", names[0]+" ", "B ", names[1]+" ").Replace(c.says))
		})
	}
	names := files(t, one, written(t, "2/2", words, items, 1))
	_, err := Open("v2", names)
	require.ErrorContains(t, err, names[0]+" was written by kprobelab v1, and this is v2: merge with the version that ran the shards")
	_, err = Open("v1", []string{names[0], t.TempDir()})
	require.ErrorContains(t, err, "a regular file is wanted")
	_, err = Open("v1", []string{names[0], filepath.Join(t.TempDir(), "nosuch")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTooManyFiles(t *testing.T) {
	_, err := Open("v1", make([]string, bounded.ShardFiles+1))
	require.EqualError(t, err, ErrShards.Error()+": 2001 files are given, and at most 2000 are read")
}

// Rule: what a file says is bounded, and no file makes a panic.
func TestHostileShards(t *testing.T) {
	_, err := Open("v1", files(t, bytes.Repeat([]byte(" "), bounded.ShardHeader+1)))
	require.ErrorIs(t, err, bounded.ErrTooLong)
	many := fmt.Sprintf(`"items":%d`, bounded.ShardItems+1)
	_, err = Open("v1", files(t, bytes.Replace(written(t, "1/1", words, items, 1), []byte(`"items":5`), []byte(many), 1)))
	require.ErrorContains(t, err, "it has 4194305 items, and at most 4194304 are read")

	long := filepath.Join(t.TempDir(), "long")
	head, _, _ := bytes.Cut(written(t, "1/1", words, items, 1), []byte("\n"))
	require.NoError(t, os.WriteFile(long, append(head, '\n'), 0o600))
	require.NoError(t, os.Truncate(long, 2*bounded.ShardLine)) // zeros, on no disk
	_, err = Open("v1", []string{long})
	require.ErrorIs(t, err, bounded.ErrTooLong)

	whole := written(t, "1/1", words, items, 1)
	name := files(t, whole)[0]
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(whole)
		for range rapid.IntRange(1, 5).Draw(t, "edits") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		require.NoError(t, os.WriteFile(name, b[:rapid.IntRange(0, len(b)).Draw(t, "length")], 0o600))
		r, err := Open("v1", []string{name})
		if err != nil {
			return
		}
		defer r.Close()
		_, _, _ = Collect[int, results](r)
	})
}

// Rule: a shard without items has an output, which says so.
func TestShardsWithoutItems(t *testing.T) {
	var b bytes.Buffer
	w, err := Begin(&b, "v1", words, Part{3, 3}, items[:2], nil)
	require.NoError(t, err)
	require.Equal(t, "shard 3/3 has nothing to do (kernels in all: 2)", w.Says("kernels"))
	require.NoError(t, w.End())
	w, err = Begin(&b, "v1", words, Part{1, 3}, items, nil)
	require.NoError(t, err)
	require.Equal(t, "shard 1/3: 2 of 5 kernels", w.Says("kernels"))
	require.ErrorContains(t, w.End(), "BUG: shard 1/3 has 0 results of 2")
	w, err = Begin(&b, "v1", words, Part{}, items, nil)
	require.NoError(t, err)
	require.Nil(t, w)
}

func TestTheFlagIsNoArgument(t *testing.T) {
	for _, c := range [][2]string{
		{"exec --shard 1/2 ./tool --shard 5/6", "exec ./tool --shard 5/6"},
		{"exec --kernel a --shard=1/2 ./tool", "exec --kernel a ./tool"},
		{"exec -shard 1/2 x", "exec x"},
		{"scan --shard", "scan"},
		{"scan shard --sharded", "scan shard --sharded"},
	} {
		require.Equal(t, strings.Fields(c[1]), without(strings.Fields(c[0])))
	}
}
