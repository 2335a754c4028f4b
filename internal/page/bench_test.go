package page_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page"
)

// A step of a machine on the page, from the question to its answer, at the machine's
// beginning and after many steps.
func BenchmarkStep(b *testing.B) {
	for _, after := range []int{20, 1000, 4900} {
		start := fmt.Sprintf("mwa%db%d", (after-2)/2, (after-2)/2)
		for _, move := range []string{"forward", "back"} {
			b.Run(fmt.Sprintf("%s/after=%d", move, after), func(b *testing.B) {
				p := &page.Page{}
				var at struct {
					Schedule string
					Error    string
				}
				ask := func(move string) {
					q, err := json.Marshal(map[string]any{
						"do": "watch", "probes": "kprobe gcd+0x5\nkretprobe fib:2", "calls": "gcd(1071,462); fib(15)\nfib(15)",
						"schedule": at.Schedule, "sub": -1, "move": move, "who": "b", "by": "instruction",
					})
					require.NoError(b, err)
					require.NoError(b, json.Unmarshal([]byte(p.Answer(string(q), nil)), &at))
					require.Empty(b, at.Error)
				}
				for i := range b.N {
					if i%10 == 0 {
						b.StopTimer()
						at.Schedule = start
						ask("")
						b.StartTimer()
					}
					ask(move)
				}
			})
		}
	}
}
