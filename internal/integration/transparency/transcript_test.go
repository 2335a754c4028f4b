package transparency

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// measured is a real kernel's result for one form probed in one way.
type measured struct {
	form     string
	way      *way
	refused  bool
	differed bool
	// cx and flags are the input of the first difference; unprobed and probed are its results.
	cx, flags        uint64
	unprobed, probed result
}

// result is the state after a run, as the transcript prints it.
type result struct{ cx, flags, sp, mark uint64 }

var (
	verdictLine = regexp.MustCompile(`^(\w+) (pre|post) (same|DIFF)`)
	refusedLine = regexp.MustCompile(`^(\w+) register -95`)
	inputPart   = regexp.MustCompile(`in cx=(\w+) fl=(\w+)`)
	resultPart  = regexp.MustCompile(`cx=(\w+) dx=\w+ fl=(\w+) sp=(\w+) mark=(\d)`)
)

// readTranscript reads the measurements of a kernel.
func readTranscript(t *testing.T, kernel string) (list []measured) {
	f, err := os.Open(oracle.File(t, kernel, "transcripts", "transparency.txt"))
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if v := refusedLine.FindStringSubmatch(line); v != nil {
			list = append(list, measured{form: v[1], way: &wayPre, refused: true})
		}
		v := verdictLine.FindStringSubmatch(line)
		if v == nil {
			continue
		}
		m := measured{form: v[1], way: &wayPre, differed: v[3] == "DIFF"}
		if v[2] == "post" {
			m.way = &wayPost
		}
		if m.differed {
			m.readDifference(t, line)
		}
		list = append(list, m)
	}
	return list
}

func (m *measured) readDifference(t *testing.T, line string) {
	in := inputPart.FindStringSubmatch(line)
	un, pr, ok := strings.Cut(line, "| pr:")
	require.True(t, ok && in != nil, line)
	hex(t, in[1], &m.cx)
	hex(t, in[2], &m.flags)
	for text, r := range map[string]*result{un: &m.unprobed, pr: &m.probed} {
		part := resultPart.FindStringSubmatch(text)
		require.NotNil(t, part, line)
		hex(t, part[1], &r.cx)
		hex(t, part[2], &r.flags)
		_, err := fmt.Sscan(part[3]+" "+part[4], &r.sp, &r.mark)
		require.NoError(t, err)
	}
}

func hex(t *testing.T, s string, to *uint64) {
	_, err := fmt.Sscanf(s, "%x", to)
	require.NoError(t, err)
}

// What three real kernels did with their instruction forms probed is done
// here: the same refusals, differences in the same forms and ways and in no
// others, and in the same results. The probes are allowed to be queued for
// optimization, as they were there.
func TestMeasuredForms(t *testing.T) {
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			list := readTranscript(t, kernel)
			require.Greater(t, len(list), 150)
			c, _ := profile.Named(name)
			img, err := kprobelab.OpenImage("", &kimage.Options{Profile: c, CPU: cpuModel})
			require.NoError(t, err)
			l, err := kprobelab.New(img, &kprobelab.Options{Budget: budget, Optimize: true})
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			b, err := newBench(l)
			require.NoError(t, err)
			byName := map[string]*function{}
			for _, f := range forms(t, l) {
				byName[strings.TrimPrefix(f.name, "form_")] = &f
			}
			replayed := 0
			for i := range list {
				f := byName[list[i].form]
				if f == nil || f.leftOut() != "" {
					t.Logf("%s is not replayed", list[i].form)
					continue
				}
				replayed++
				list[i].replay(t, b, f)
			}
			t.Logf("%d of %d verdicts replayed", replayed, len(list))
			require.Greater(t, replayed, 150)
		})
	}
}

// replay probes the form and compares the verdict, and the first difference.
func (m *measured) replay(t *testing.T, b *bench, f *function) {
	p, err := b.plant(f.form.insn, m.way)
	if m.refused {
		var e errno.Errno
		require.ErrorAs(t, err, &e, m.form)
		require.Equal(t, errno.EOPNOTSUPP, e, m.form)
		return
	}
	require.NoError(t, err, m.form)
	differed := false
	for _, cx := range []uint64{0, 1, 2, 5, 1 << 32, 1<<32 + 1, 1<<64 - 1} {
		for _, flags := range []uint64{0x002, 0x042, 0x8d7} {
			un, pr := m.runBoth(t, b, f, p, cx, flags)
			differed = differed || un != pr
		}
	}
	require.Equal(t, m.differed, differed, "%s %s", m.form, m.way.name)
	if m.differed {
		un, pr := m.runBoth(t, b, f, p, m.cx, m.flags)
		if m.form == "ret_imm16" { // makes its stack with sub here, which sets flags
			require.Equal(t, un.flags, pr.flags)
			un.flags, pr.flags = m.unprobed.flags, m.probed.flags
		}
		require.Equal(t, m.unprobed, un, "%s %s, unprobed", m.form, m.way.name)
		require.Equal(t, m.probed, pr, "%s %s, probed", m.form, m.way.name)
	}
	p.remove()
}

// runBoth makes a call without the probe and with it.
func (m *measured) runBoth(t *testing.T, b *bench, f *function, p *place, cx, flags uint64) (un, pr result) {
	args := []any{uint64(0x55), cx, uint64(0x77), flags}
	for _, member := range p.members {
		require.NoError(t, b.Kprobes.DisableKprobe(&member.Kprobe))
	}
	un = runForm(t, b, f, args)
	for _, member := range p.members {
		require.NoError(t, b.Kprobes.EnableKprobe(&member.Kprobe))
	}
	return un, runForm(t, b, f, args)
}

// runForm makes a call, and takes the result from form_state.
func runForm(t *testing.T, b *bench, f *function, args []any) result {
	var o outcome
	require.NoError(t, b.run(f, args, &o))
	require.Equal(t, stop{}, o.stopped, f.name)
	at := lookup(t, b.Lab, "form_state")
	word := func(off x86.Addr) uint64 {
		for _, p := range o.pages {
			if i := (at + off).Sub(p.at); i >= 0 && i < int64(len(p.content)) {
				return binary.LittleEndian.Uint64(p.content[i:])
			}
		}
		return 0
	}
	const cx, flags, sp, mark = 0x28, 0x38, 0x40, 0x48
	return result{word(cx), word(flags) & (arithmetic | x86.FlagFixed), word(sp), word(mark)}
}
