package infer

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
)

const testText = 0xffffffff81000000

func hexBytes(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// Rule: the model is the one that sched_init chooses by default, whatever code surrounds it.
func TestPreemptionModelByCode(t *testing.T) {
	const cmp = "833df90f0000ff" // cmpl $-1,testTable(%rip), as the first instruction
	for name, c := range map[string]struct{ code, want string }{
		"voluntary":          {cmp + "750abf01000000" + "e8ed000000", PreemptVoluntary},
		"none":               {cmp + "750731ff" + "e8f0000000", PreemptNone},
		"lazy_behind_moves":  {cmp + "66890512340000" + "750abf03000000" + "e8e6000000", PreemptLazy},
		"full_is_written":    {cmp + "7516" + "48c7c743d68e81" + "c705e60f000002000000", PreemptFull},
		"out_of_line":        {cmp + "7402" + "9090" + "bf01000000" + "e8eb000000", PreemptVoluntary},
		"another_function":   {cmp + "750abf01000000" + "e80d000000" + "c3cccccccccccc", ""},
		"no_model":           {cmp + "750abf09000000" + "e8ed000000", ""},
		"another_comparison": {"833df90f000000" + "750abf01000000" + "e8ed000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			for i := range text {
				text[i] = 0x90
			}
			code := hexBytes(t, c.code)
			copy(text, code)
			img := &image{section: opened.Section{Name: ".text", Addr: testText, Data: text, Exec: true}}
			img.symbols = []opened.Symbol{
				{Name: "sched_init", Addr: testText, Type: 't'}, {Name: "other", Addr: testText + 0x20, Type: 't'},
				{Name: "__sched_dynamic_update", Addr: testText + 0x100, Type: 't'},
			}
			got, _ := codedPreemptModel(img)
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
		from         evidence.Source
		against      int
	}{
		"code_alone":          {voluntary, "", false, PreemptVoluntary, evidence.Coded, 0},
		"both_agree":          {voluntary, "CONFIG_PREEMPT_VOLUNTARY", false, PreemptVoluntary, evidence.Coded, 0},
		"both_disagree":       {voluntary, "CONFIG_PREEMPT_LAZY", false, PreemptVoluntary, evidence.Coded, 1},
		"a_given_one":         {voluntary, "CONFIG_PREEMPT_NONE", true, PreemptNone, evidence.Configured, 1},
		"configuration_alone": {"90", "CONFIG_PREEMPT", false, PreemptFull, evidence.Configured, 0},
		"neither":             {"90", "", false, PreemptVoluntary, evidence.Dated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := bytes.Repeat([]byte{0x90}, 0x400)
			copy(text, hexBytes(t, c.code))
			img := &image{section: opened.Section{Name: ".text", Addr: testText, Data: text, Exec: true}}
			img.symbols = []opened.Symbol{
				{Name: "sched_init", Addr: testText, Type: 't'}, {Name: "__sched_dynamic_update", Addr: testText + 0x100, Type: 't'},
			}
			facts := &evidence.Facts{}
			New(img, facts, Configuration{Options: map[string]string{c.option: "y"}, From: "config", Given: c.given}).PreemptModel()
			require.Equal(t, c.want, PreemptModel(img, facts))
			f := facts.Find(FactPreemptModel)
			require.Equal(t, c.from, f.From)
			require.Len(t, f.Against, c.against)
		})
	}
}
