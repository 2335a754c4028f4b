package page

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step back that was shown is answered without a run, as a fresh machine answers it; so are the next steps back of a place
// that was sent.
func TestAStepBackIsAnsweredAsAFreshMachineAnswersIt(t *testing.T) {
	for _, by := range []string{byProtocol, byInstruction} {
		s := Scenario{Probes: "kprobe gcd+0x5\nkretprobe fib:2", Calls: "gcd(1071,462); fib(4)\nfib(5)", Release: "6.1"}
		answer := func(p *Page, schedule string, sub int, move, who string) (v View, text string) {
			q, err := json.Marshal(map[string]any{
				"do": "watch", "probes": s.Probes, "calls": s.Calls, "release": s.Release,
				"schedule": schedule, "sub": sub, "move": move, "who": who, "by": by, "known": 3,
			})
			require.NoError(t, err)
			text = p.Answer(string(q), nil)
			require.NoError(t, json.Unmarshal([]byte(text), &v))
			require.NotEmpty(t, v.Hash, text)
			return v, text
		}
		random := rand.New(rand.NewPCG(37, 7))
		p, at := &Page{}, View{Sub: -1}
		for range 60 {
			at, _ = answer(p, at.Schedule, at.Sub, "forward", string("mababw"[random.IntN(6)]))
		}
		ran, back, all := p.run, 0, 0
		for at.Schedule != "" || at.Sub >= 0 {
			var text string
			at, text = answer(p, at.Schedule, at.Sub, "back", "")
			_, fresh := answer(&Page{}, at.Schedule, at.Sub, "", "")
			require.JSONEq(t, fresh, text, at.Schedule)
			if all++; p.run == ran {
				back++
			}
			ran = p.run
		}
		require.Greater(t, back, all*3/4, "%s: %d steps back", by, all)

		// A place that was sent: one replay for several steps back.
		p = &Page{}
		at, _ = answer(p, "ma30b40w3a", -1, "", "")
		runs := map[*run]bool{}
		for range 2 * backwards {
			at, _ = answer(p, at.Schedule, at.Sub, "back", "")
			runs[p.run] = true
		}
		require.LessOrEqual(t, len(runs), 4, by)
	}
}
