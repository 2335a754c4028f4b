package run

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/uprobes"
)

// A warning is about harm, or has the kernel's words about a refusal; of anything else nothing is said.
func TestWarnings(t *testing.T) {
	hazard := uprobes.LostIP
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"harmful":        {Harmful{Probe: "kprobe f", Hazard: "h", Effect: "e", Says: "it breaks"}, "! kprobe f: h (e): it breaks\n"},
		"uprobe":         {Planted{Probe: Probe{Definition: "p /a:1\nr /a:1", Hazard: hazard}}, "! p /a:1; r /a:1: " + string(hazard) + ": " + hazard.Means() + "\n"},
		"harmless":       {Planted{Probe: Probe{Definition: "p f"}}, ""},
		"kernel_says":    {RefusedProbe{Log: "kprobes: no"}, "kprobes: no\n"},
		"kernel_is_mute": {RefusedProbe{}, ""},
		"other":          {Called{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			Warn(&b, c.event, "!")
			require.Equal(t, c.want, b.String())
		})
	}
}

// A program gets the signals of this process as long as it takes them.
func TestSignalsForAProgram(t *testing.T) {
	p := &HostProgram{}
	stop := p.TakeSignals()
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGTERM))
	select {
	case s := <-p.Signals:
		require.Equal(t, syscall.SIGTERM, s)
	case <-time.After(time.Minute):
		t.Fatal("the signal did not come")
	}
	require.NoError(t, p.Context.Err())
	stop()
}
