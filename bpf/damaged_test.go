package bpf_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/internal/integration/dumps/runs"
)

// TestDamagedObjects: an object with changed bytes has an answer for each program, or is none by a sentence of one line.
func TestDamagedObjects(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 4
	}
	if os.Getenv("KPROBELAB_SOAK") != "" {
		rounds = 2000
	}
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	whole := fieldsObject()
	o := options(t)
	l, err := kprobelab.Open(runs.File(t, "6.1"), &o.Lab)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	k, err := l.Booted()
	require.NoError(t, err)
	for n := range rounds {
		damaged := append([]byte(nil), whole...)
		for range 1 + r.IntN(4) {
			at := 16 + r.IntN(len(damaged)-20)
			switch r.IntN(3) {
			case 0:
				damaged[at] ^= 1 << r.IntN(8)
			case 1:
				damaged[at] = byte(r.Uint32())
			default:
				binary.LittleEndian.PutUint32(damaged[at:], []uint32{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1}[r.IntN(5)])
			}
		}
		got, err := bpf.Load(k, damaged, o)
		if errors.Is(err, bpf.ErrObject) {
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "goroutine")
			continue
		}
		require.NoError(t, err, "seed %d, round %d", seed, n)
		for _, p := range got.Programs {
			require.True(t, p.Loads || p.Error != "", "%+v", p)
		}
	}
}

// TestObjectsOfBadWill: what an object can ask for that no kernel has, each with a sentence.
func TestObjectsOfBadWill(t *testing.T) {
	dump := runs.File(t, "6.1")
	find := func(context.Context, string) (string, error) { return dump, nil }
	far := asking("read", []uint32{8}, record{0, 3, "0:77", fieldOffset})
	deep := asking("read", []uint32{8}, record{0, 3, "0" + strings.Repeat(":0", 1000), fieldOffset})
	untyped := asking("read", []uint32{8}, record{0, 1 << 20, "0:1", fieldOffset})
	odd := asking("read", []uint32{8}, record{0, 3, "0:1", 99})
	long := fine("read", "kprobe/vfs_read")
	long.code = slices.Repeat([][8]byte{returnZero}, 1_000_100)
	long.code[len(long.code)-1] = exit
	for name, c := range map[string]struct {
		object []byte
		none   bool
		want   string
	}{
		"big_endian": {compiledFor(t, "bpfeb", `SEC("kprobe/vfs_read") int read(void *ctx) { return 0; }`), true, "big-endian"},
		"map_without_end": {compiled(t, `struct { __uint(type, HASH); __uint(max_entries, 0xffffffff); __type(key, u32); __type(value, u64); } huge SEC(".maps");
			SEC("kprobe/vfs_read") int read(void *ctx) { u32 k = 0; return lookup(&huge, &k) != 0; }`), false, "huge.*(E2BIG|ENOMEM|EINVAL)"},
		"accessor_out_of_range":  {object{[]program{far}}.build(), false, ""},
		"accessor_without_end":   {object{[]program{deep}}.build(), false, ""},
		"type_out_of_range":      {object{[]program{untyped}}.build(), true, ".BTF.ext is damaged"},
		"record_of_no_kind":      {object{[]program{odd}}.build(), false, ""},
		"a_million_instructions": {object{[]program{long}}.build(), false, "it has 1000100 instructions.*E2BIG"},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := bpf.Ask(t.Context(), "x.o", c.object, []string{"6.1"}, find, options(t))
			if c.none {
				require.ErrorIs(t, err, bpf.ErrObject)
				require.NotContains(t, err.Error(), "\n")
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			p := table.Columns[0].Programs[0]
			require.False(t, p.Loads)
			require.NotEmpty(t, p.Error)
			require.NotContains(t, p.Error, "\n")
			require.Regexp(t, c.want, p.Error+p.Errno)
		})
	}
}
