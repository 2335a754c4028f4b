package kprobes

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/errno"
	"kprobelab/x86"
)

// TestIndexAgainstMap: the index answers as a map does, whatever is added and
// removed, with addresses that collide.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x addrIndex
		model := map[x86.Addr]*Kprobe{}
		// Multiples of a big power of two share their home slots.
		addr := rapid.Custom(func(t *rapid.T) x86.Addr {
			return x86.Addr(rapid.Uint64Range(1, 24).Draw(t, "n") << rapid.SampledFrom([]int{0, 40, 58}).Draw(t, "shift"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				a := addr.Draw(t, "addr")
				if a == 0 {
					return
				}
				p := &Kprobe{Addr: a}
				x.set(a, p)
				model[a] = p
			},
			"del": func(t *rapid.T) {
				a := addr.Draw(t, "addr")
				x.del(a)
				delete(model, a)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), x.n)
				for _, a := range slices.Sorted(maps.Keys(model)) { // a failure is the same when it is replayed
					require.Same(t, model[a], x.get(a))
				}
				a := addr.Draw(t, "other")
				require.Equal(t, model[a], x.get(a))
			},
		})
	})
}

// TestTableLinks: the buckets hold the same probes as the index.
func TestTableLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		model := map[x86.Addr]*Kprobe{}
		t.Repeat(map[string]func(*rapid.T){
			"insert_remove_replace": func(t *rapid.T) {
				a := x86.Addr(rapid.Uint64Range(1, 300).Draw(t, "addr"))
				old := model[a]
				switch {
				case old == nil:
					model[a] = &Kprobe{Addr: a}
					tab.insert(model[a])
				case rapid.Bool().Draw(t, "replace"):
					model[a] = &Kprobe{Addr: a}
					tab.replace(old, model[a])
				default:
					tab.remove(old)
					delete(model, a)
				}
			},
			"": func(t *rapid.T) {
				n := 0
				tab.each(func(p *Kprobe) {
					n++
					require.Same(t, model[p.Addr], p)
					require.Same(t, p, tab.lookup(p.Addr))
				})
				require.Equal(t, len(model), n)
			},
		})
	})
}

// pagesOnly is a machine that has executable memory and nothing else.
type pagesOnly struct {
	Machine
	next x86.Addr
	left int
}

func (m *pagesOnly) AllocExec(size int, _ string) (x86.Addr, error) {
	if m.left == 0 {
		return 0, errno.ENOMEM
	}
	m.left--
	m.next += x86.Addr(size)
	return m.next, nil
}

// TestSlotCache: no slot is handed out twice, and none is lost (docs/spec 3.1).
func TestSlotCache(t *testing.T) {
	type slot struct {
		pg *slotPage
		i  int
	}
	rapid.Check(t, func(t *rapid.T) {
		quiet := true
		c := slotCache{m: &pagesOnly{left: 4}, size: slotSize, quiet: func() bool { return quiet }}
		used := map[x86.Addr]slot{}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				for range rapid.IntRange(1, 150).Draw(t, "n") {
					pg, i, err := c.get()
					if err != nil {
						require.Equal(t, 4*slotsPerPage, len(used)+c.garbage)
						require.ErrorIs(t, err, errno.ENOMEM)
						return
					}
					a := pg.slotAddr(i)
					require.NotContains(t, used, a)
					require.LessOrEqual(t, i, slotsPerPage-1)
					used[a] = slot{pg, i}
				}
			},
			"put": func(t *rapid.T) {
				n := rapid.IntRange(1, 150).Draw(t, "n")
				for a, s := range used {
					if n--; n < 0 {
						return
					}
					delete(used, a)
					c.put(s.pg, s.i, rapid.Bool().Draw(t, "boosted"))
				}
			},
			"busy": func(*rapid.T) { quiet = !quiet },
			"": func(t *rapid.T) {
				taken := 0
				for _, pg := range c.pages {
					taken += pg.used
				}
				require.Equal(t, len(used)+c.garbage, taken)
			},
		})
	})
}
