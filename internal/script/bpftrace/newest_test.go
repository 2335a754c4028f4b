package bpftrace

import (
	"errors"
	"math/rand"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// Scripts that are changed at random are refused in words, or become a program that compiles.
func TestChangedScriptsOf027NeverPanic(t *testing.T) {
	b, err := os.ReadFile("testdata/newest/features.txt")
	require.NoError(t, err)
	var seeds []string
	for _, one := range strings.Split(string(b), "## ")[1:] {
		_, text, _ := strings.Cut(one, "\n")
		seeds = append(seeds, strings.TrimSpace(text))
	}
	re := regexp.MustCompile(`[A-Za-z0-9_]+|\s+|.`)
	k := &Kernel{Kernel: host.Kernel{Functions: func(string) []host.Function { return []host.Function{{Name: "f", Addr: 0x1000}} }}}
	r := rand.New(rand.NewSource(7))
	var all []string
	for _, s := range seeds {
		all = append(all, re.FindAllString(s, -1)...)
	}
	for range 3000 {
		w := re.FindAllString(seeds[r.Intn(len(seeds))], -1)
		for range 1 + r.Intn(3) {
			i := r.Intn(len(w))
			switch r.Intn(4) {
			case 0:
				w = append(w[:i:i], w[i+1:]...)
			case 1:
				w[i] = all[r.Intn(len(all))]
			case 2:
				w = append(w[:i:i], append([]string{all[r.Intn(len(all))]}, w[i:]...)...)
			case 3:
				j := r.Intn(len(w))
				w[i], w[j] = w[j], w[i]
			}
			if len(w) == 0 {
				w = []string{"x"}
			}
		}
		text := strings.Join(w, "")
		func() {
			defer func() {
				if e := recover(); e != nil {
					t.Errorf("%v: %s", e, text)
				}
			}()
			s, err := Analyze("stdin", text, &Options{Language: Language27, Unsafe: r.Intn(2) == 0}, k)
			var p *Problems
			if errors.As(err, &p) {
				if p.Text() == "" {
					t.Errorf("empty: %s", text)
				}
				return
			}
			var large *script.ErrTooLarge
			if _, err := script.Compile(s.Program); err != nil && !errors.As(err, &large) {
				t.Errorf("%v: %s", err, text)
			}
		}()
	}
}
