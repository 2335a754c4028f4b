package kimage

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// Rule: the model is the one that sched_init chooses by default, whatever code surrounds it.
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

// TestPreemptionModelIsDecidedAsAllElse: the code counts before the configuration, whose contrary
// value is kept; a configuration that the user gives counts first; without evidence it is a guess.
func TestPreemptionModelIsDecidedAsAllElse(t *testing.T) {
	const voluntary = "833df90f0000ff" + "750abf01000000" + "e8ed000000" // sched_init of a voluntary kernel
	for name, c := range map[string]struct {
		code, option string
		given        bool
		want         string
		from         Source
		against      int
	}{
		"code_alone":          {voluntary, "", false, preemptVoluntary, Coded, 0},
		"both_agree":          {voluntary, "CONFIG_PREEMPT_VOLUNTARY", false, preemptVoluntary, Coded, 0},
		"both_disagree":       {voluntary, "CONFIG_PREEMPT_LAZY", false, preemptVoluntary, Coded, 1},
		"a_given_one":         {voluntary, "CONFIG_PREEMPT_NONE", true, preemptNone, Configured, 1},
		"configuration_alone": {"90", "CONFIG_PREEMPT", false, preemptFull, Configured, 0},
		"neither":             {"90", "", false, preemptVoluntary, Dated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := bytes.Repeat([]byte{0x90}, 0x400)
			copy(text, fromHex(t, c.code))
			img := tableImage(t, text, testSection{name: ".data", data: make([]byte, 8)})
			img.index.setImage([]Symbol{
				{Name: "sched_init", Addr: testText, Type: 't'}, {Name: "__sched_dynamic_update", Addr: testText + 0x100, Type: 't'},
			}, func(x86.Addr) x86.Addr { return testText + 0x200 })
			e := &evidence{img: img, config: map[string]string{c.option: "y"}, configFrom: "config"}
			if c.given {
				img.opts.Config = "config"
			}
			e.preemptModel()
			require.Equal(t, c.want, img.preemptModel())
			f := img.Fact(factPreemptModel)
			require.Equal(t, c.from, f.From)
			require.Len(t, f.Against, c.against)
		})
	}
}
