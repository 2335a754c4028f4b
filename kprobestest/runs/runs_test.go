package runs

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/explore"
	"kprobelab/profile"
)

var update = flag.Bool("update", false, "write runs.json")

// kernels are the profiles that there are cases for: with PREEMPTION, and
// without, where copies are boosted.
var kernels = []string{"6.1", "5.10"}

// made returns a case of a scenario and kernel: the run of a random walk.
func made(t *testing.T, name, kernel string, seed uint64) Case {
	p, err := explore.FromLibrary(name)
	require.NoError(t, err)
	k, ok := profile.Named(kernel)
	require.True(t, ok)
	s, err := p.Sample(k, seed)
	require.NoError(t, err)
	code, at := p.Code()
	sc := p.Scenario()
	c := Case{
		Name: name, Profile: kernel, Code: hex.EncodeToString(code), Functions: at,
		End: End{string(s.Verdict), hex.EncodeToString(s.End.Text), s.End.Hits, s.End.Missed},
	}
	for _, p := range sc.Probes {
		c.Probes = append(c.Probes, Probe{p.Name, p.Func, p.Off, p.Post, p.Disabled})
	}
	for _, d := range sc.Sites {
		c.Sites = append(c.Sites, Site{d.Name, d.Func, d.Off, d.To})
	}
	for _, a := range sc.Setup {
		c.Setup = append(c.Setup, a.String())
	}
	for _, col := range sc.Columns {
		out := Column{Name: col.Name}
		for _, a := range col.Actions {
			out.Actions = append(out.Actions, a.String())
		}
		c.Columns = append(c.Columns, out)
	}
	for _, l := range s.Lines {
		c.Steps = append(c.Steps, Step{l.Lane, l.Kind, l.Place, hex.EncodeToString(l.Bytes)})
	}
	return c
}

// The file equals the explorer's output, case by case.
func TestRunsAreWhatTheExplorerMakes(t *testing.T) {
	var list []Case
	for _, k := range kernels {
		for i, name := range explore.Library() {
			list = append(list, made(t, name, k, uint64(i+1)))
		}
	}
	var out bytes.Buffer
	out.WriteString("[\n")
	for i := range list {
		b, err := json.Marshal(&list[i])
		require.NoError(t, err)
		out.Write(b)
		if i < len(list)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	if *update {
		require.NoError(t, os.WriteFile("runs.json", out.Bytes(), 0o644))
		return
	}
	require.Equal(t, string(data), out.String(), "go test ./kprobestest/runs -update writes it")
}

// explorer is the adapter for this project's own implementation: it takes the steps
// by the names of their lanes.
type explorer struct{}

func (explorer) Run(c *Case) (End, error) {
	p, err := explore.FromLibrary(c.Name)
	if err != nil {
		return End{}, err
	}
	k, _ := profile.Named(c.Profile)
	var decisions []string
	for _, s := range c.Steps {
		switch s.Kind {
		case "acknowledge":
			decisions = append(decisions, "ack "+s.Lane)
		case "fetch":
			decisions = append(decisions, s.Lane+" sees "+s.Bytes)
		default:
			decisions = append(decisions, s.Lane)
		}
	}
	s, err := p.Replay(k, decisions)
	if err != nil {
		return End{}, err
	}
	return End{string(s.Verdict), hex.EncodeToString(s.End.Text), s.End.Hits, s.End.Missed}, nil
}

func TestOwnImplementation(t *testing.T) {
	bad, err := Check(explorer{})
	require.NoError(t, err)
	for i := range bad {
		t.Error(bad[i].Error())
	}
}

// lazy is an implementation that does nothing.
type lazy struct{ err error }

func (l lazy) Run(c *Case) (End, error) { return End{Verdict: "ok", Code: c.Code}, l.err }

// A wrong implementation gets a difference, for each case.
func TestWrongImplementations(t *testing.T) {
	list, err := Cases()
	require.NoError(t, err)
	bad, err := Check(lazy{})
	require.NoError(t, err)
	require.Len(t, bad, len(list))
	require.ErrorContains(t, &bad[0], "ends with")
	no := errors.New("no such step")
	bad, err = Check(lazy{no})
	require.NoError(t, err)
	require.ErrorContains(t, &bad[0], "no such step")
	verdicts := map[string]int{}
	stale, stores := 0, 0
	for _, c := range list {
		verdicts[c.End.Verdict]++
		for _, s := range c.Steps {
			switch s.Kind {
			case "store":
				stores++
			case "fetch":
				stale++
			}
		}
	}
	require.Greater(t, stores, 100)
	require.Greater(t, stale, 100)
	require.Greater(t, verdicts["ok"], 100)
	require.Greater(t, len(verdicts), 1)
}
