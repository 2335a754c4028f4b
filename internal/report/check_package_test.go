package report_test

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// packaged is a kernel whose package has modules that are not loaded, each with a tracepoint.
type packaged struct {
	*report.ImageKernel
	points []kimage.Tracepoint
}

func (k *packaged) Package(symbol string) []string {
	if symbol == kimage.TracepointPrefix+"mod_event" {
		return []string{"mod"}
	}
	return nil
}

func (k *packaged) With(module string) (report.Kernel, error) {
	return &packaged{k.ImageKernel, append(k.points, kimage.Tracepoint{System: module, Name: "mod_event", Raw: true, Module: module})}, nil
}

func (k *packaged) Tracepoints() []kimage.Tracepoint { return k.points }

// Rule: a tracepoint that only a module of the package has attaches once that is loaded.
func TestTracepointsOfThePackage(t *testing.T) {
	kernel := &packaged{report.OfImage(guestImage(t)), []kimage.Tracepoint{{System: "sched", Name: "sched_switch", Raw: true}}}
	for section, found := range map[string]report.Found{
		"tp/mod/mod_event": report.FoundPackage, "raw_tp/mod_event": report.FoundPackage, "tp_btf/mod_event": report.FoundPackage,
		"tp/other/mod_event": report.FoundAbsent, "raw_tp/nosuch": report.FoundAbsent, "raw_tp/sched_switch": report.FoundUnique,
	} {
		probes, err := report.ReadProbes(bytes.NewReader(bpfObject(elf.EM_BPF, section)))
		require.NoError(t, err)
		var c report.Check
		c.Add(kernel, probes)
		cell := c.Probes[0].Cells[0]
		require.Equal(t, found, cell.Found, section)
		require.Equal(t, found != report.FoundAbsent, cell.Attaches, section)
		var text bytes.Buffer
		require.NoError(t, c.WriteText(&text))
		require.Equal(t, found == report.FoundPackage, bytes.Contains(text.Bytes(), []byte("tracepoint once mod is loaded")), section)
	}
}
