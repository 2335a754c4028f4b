package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// Rule: the model is what sched_init chooses where nobody has, whatever stands
// around that.
func TestPreemptionModelByCode(t *testing.T) {
	const cmp = "833df90f0000ff" // cmpl $-1,testTable(%rip), as the first instruction
	for name, c := range map[string]struct{ code, want string }{
		"voluntary":          {cmp + "750abf01000000" + "e8ed000000", preemptVoluntary},
		"none":               {cmp + "750731ff" + "e8f0000000", preemptNone},
		"lazy_behind_moves":  {cmp + "66890512340000" + "750abf03000000" + "e8e6000000", preemptLazy},
		"full_is_written":    {cmp + "7516" + "48c7c743d68e81" + "c705e60f000002000000", preemptFull},
		"out_of_line":        {cmp + "7402" + "9090" + "bf01000000" + "e8eb000000", preemptVoluntary},
		"another_function":   {cmp + "750abf01000000" + "e80d000000" + "c3cccccccccccc", ""},
		"no_model":           {cmp + "750abf09000000" + "e8ed000000", ""},
		"another_comparison": {"833df90f000000" + "750abf01000000" + "e8ed000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			for i := range text {
				text[i] = 0x90
			}
			code := fromHex(t, c.code)
			copy(text, code)
			img := tableImage(t, text, testSection{name: ".data", data: make([]byte, 8)})
			img.index.setImage([]Symbol{
				{Name: "sched_init", Addr: testText, Type: 't'}, {Name: "other", Addr: testText + 0x20, Type: 't'},
				{Name: "__sched_dynamic_update", Addr: testText + 0x100, Type: 't'},
			}, func(x86.Addr) x86.Addr { return testText + 0x200 })
			got, _ := img.codedPreemptModel()
			require.Equal(t, c.want, got)
		})
	}
}
