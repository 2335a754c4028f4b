package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// table is the rows that are drawn from.
func table(t *testing.T) []option {
	list, err := options(optionText)
	require.NoError(t, err)
	return list
}

var releases = []version{{5, 10}, {6, 1}, {6, 12}, {7, 3}}

// TestEachOptionHasItsTurn: over three drawings a model of preemption is not drawn twice while another waits, and what
// can be set is set in one drawing and not set in another.
func TestEachOptionHasItsTurn(t *testing.T) {
	list := table(t)
	for _, v := range releases {
		for seed := range uint64(50) {
			drawn := draw(list, v, 3, seed)
			for i, d := range drawn {
				groups := map[string]int{}
				for _, o := range d.options {
					require.True(t, o.isIn(v), o.name)
					if o.group != "" && d.set[o.name] {
						groups[o.group]++
					}
					for _, name := range o.needs {
						require.True(t, !d.set[o.name] || d.set[name], "%s without %s", o.name, name)
					}
				}
				require.Equal(t, map[string]int{"preemption": 1, "unwinder": 1}, groups, "%v, seed %d, drawing %d", v, seed, i)
			}
			for _, o := range drawn[0].options {
				n := 0
				for _, d := range drawn {
					if d.set[o.name] {
						n++
					}
				}
				switch {
				case len(o.needs) > 0:
					require.Less(t, n, 3, o.name)
				case o.name == "PREEMPT" && v == version{5, 10}:
					require.Equal(t, 1, n, "three drawings, three models")
				case o.group == "":
					require.Contains(t, []int{1, 2}, n, o.name)
				}
			}
		}
	}
}

// TestEveryOptionIsDrawn: what needs another option is set now and then, too.
func TestEveryOptionIsDrawn(t *testing.T) {
	list := table(t)
	set := map[string]bool{}
	for _, v := range releases {
		for seed := range uint64(50) {
			for _, d := range draw(list, v, 3, seed) {
				for name, on := range d.set {
					set[name] = set[name] || on
				}
			}
		}
	}
	for _, o := range list {
		assert.True(t, set[o.name], o.name)
	}
}

func TestReleasesHaveTheirOptions(t *testing.T) {
	list := table(t)
	for _, c := range []struct {
		name string
		in   []version
	}{
		{"PREEMPT_NONE", []version{{5, 10}, {6, 1}, {6, 12}}},
		{"PREEMPT_LAZY", []version{{7, 3}}},
		{"PREEMPT_DYNAMIC", []version{{6, 1}, {6, 12}, {7, 3}}},
		{"X86_KERNEL_IBT", []version{{6, 1}, {6, 12}, {7, 3}}},
		{"CFI_CLANG", []version{{6, 1}, {6, 12}}},
		{"CFI", []version{{7, 3}}},
		{"RETPOLINE", []version{{5, 10}, {6, 1}}},
		{"MITIGATION_RETPOLINE", []version{{6, 12}, {7, 3}}},
		{"MITIGATION_CALL_DEPTH_TRACKING", []version{{6, 12}, {7, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := slices.IndexFunc(list, func(o option) bool { return o.name == c.name })
			require.GreaterOrEqual(t, i, 0)
			got := slices.DeleteFunc(slices.Clone(releases), func(v version) bool { return !list[i].isIn(v) })
			assert.Equal(t, c.in, got)
		})
	}
}

// TestTheSeedDecides: docs/conformance.md names drawings by seed 1.
func TestTheSeedDecides(t *testing.T) {
	list := table(t)
	d := draw(list, version{5, 10}, 3, 1)
	assert.Equal(t, d, draw(list, version{5, 10}, 3, 1))
	assert.NotEqual(t, d, draw(list, version{5, 10}, 3, 2))
	many := draw(list, version{5, 10}, 12, 1)
	assert.Equal(t, d, many[:3], "how many are drawn decides nothing")
	assert.Equal(t, d[:1], draw(list, version{5, 10}, 1, 1))
	assert.NotEqual(t, d, many[3:6])
	on, _, _ := strings.Cut(d[1].words(), ";")
	assert.Equal(t, "PREEMPT UNWINDER_ORC DEBUG_INFO_BTF RETPOLINE CPU_IBRS_ENTRY SLS MITIGATION_RFDS PARAVIRT "+
		"FUNCTION_GRAPH_TRACER STACKPROTECTOR INIT_ON_ALLOC_DEFAULT_ON OPTPROBES", on)
	text := d[1].String()
	assert.Contains(t, text, "CONFIG_DEBUG_INFO_BTF=y\nCONFIG_DEBUG_INFO=y\nCONFIG_DEBUG_INFO_DWARF4=y\n")
	assert.Contains(t, text, "# CONFIG_RETHUNK is not set\n")
}

func TestRowsThatAreWrong(t *testing.T) {
	for _, row := range []string{"PREEMPT\n", "PREEMPT all\n", "PREEMPT 5.10-x\n", "PREEMPT 5-6.1\n", "A 5.10- - B,C - D E\n"} {
		_, err := options(row)
		assert.Error(t, err, row)
	}
}

func TestReleasesAsPackagesNameThem(t *testing.T) {
	for text, want := range map[string]version{"6.12.118-1": {6, 12}, "7.3.4-1~bpo13+1": {7, 3}, "7.3~rc7": {7, 3}, "5.10": {5, 10}} {
		got, err := parseVersion(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "6", "v6.1", "6.", ".6.1", "six.one", "99999999999999999999.1"} {
		_, err := parseVersion(text)
		assert.Error(t, err, text)
	}
}

func TestDrawingsAreWritten(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, run("6.12.118-1", 2, 7, folder))
	for _, name := range []string{"drawn-7-1.config", "drawn-7-2.config"} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		assert.Contains(t, string(b), "CONFIG_")
	}
	assert.Error(t, run("6.12", 0, 1, folder))
	assert.Error(t, run("6.12", 101, 1, folder))
	assert.Error(t, run("six", 1, 1, folder))
	assert.Error(t, run("6.12", 1, 1, filepath.Join(folder, "none")))
}
