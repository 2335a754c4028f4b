package bpftools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const opens = `PID    COMM              FD ERR PATH
79     sh                 3   0 /dev/null
1438   busybox            3   0 /etc/hostname
79     sh                 3   0 /tmp/w/f0`

const states = `SKADDR           PID     COMM       LPORT RPORT OLDSTATE    -> NEWSTATE    MS
ffff888004aff500 1918    busybox    4000  0     CLOSE       -> LISTEN      0.000
ffff88801fd16c00 1921    busybox    43960 4000  SYN_SENT    -> ESTABLISHED 1.529`

const spread = `     usecs               : count    distribution
         0 -> 1          : 0        |                                        |
         2 -> 3          : 112      |****************************************|
     32768 -> 65535      : 1        |                                        |`

// TestDifferencesThatRulesGive: the rules that are named are the fewest that make two outputs the same, and nothing else passes.
func TestDifferencesThatRulesGive(t *testing.T) {
	for name, c := range map[string]struct {
		tool, theirs, ours string
		rules              []string
		differ             bool
	}{
		"nothing differs":                 {"opensnoop", opens, opens, nil, false},
		"processes have other numbers":    {"opensnoop", opens, strings.NewReplacer("79 ", "81 ", "1438", "1440").Replace(opens), []string{"process numbers"}, false},
		"another process opened the file": {"opensnoop", opens, strings.Replace(opens, "1438", "79  ", 1), nil, true},
		"another file":                    {"opensnoop", opens, strings.Replace(opens, "/tmp/w/f0", "/tmp/w/f1", 1), nil, true},
		"another error":                   {"opensnoop", opens, strings.Replace(opens, "0 /etc/hostname", "2 /etc/hostname", 1), nil, true},
		"a line is missing":               {"opensnoop", opens, opens[:strings.LastIndex(opens, "\n")], nil, true},
		"lines in another order":          {"opensnoop", "PATH\na\nb", "PATH\nb\na", nil, true},
		"times, ports, addresses": {"tcpstates", states, strings.NewReplacer("43960", "58594", "ffff88801fd16c00", "ffff88801fd17300", "1.529", "0.2").Replace(states),
			[]string{"local ports", "addresses of objects", "durations"}, false},
		"another state":                {"tcpstates", states, strings.Replace(states, "LISTEN", "CLOSE_WAIT", 1), nil, true},
		"the server's port":            {"tcpstates", states, strings.Replace(states, "4000", "4001", 1), nil, true},
		"a histogram of times":         {"runqlat", spread, strings.Replace(spread, "112", "41", 1), []string{"how durations are distributed"}, false},
		"a histogram of other units":   {"runqlat", spread, strings.Replace(spread, "usecs", "msecs", 1), nil, true},
		"counts":                       {"softirqs", "SOFTIRQ COUNT\ntimer 222", "SOFTIRQ COUNT\ntimer 69", []string{"counts in an interval"}, false},
		"counts of another tool":       {"sigsnoop", "SIG COUNT\ntimer 222", "SIG COUNT\ntimer 69", nil, true},
		"another vector":               {"softirqs", "SOFTIRQ COUNT\ntimer 222", "SOFTIRQ COUNT\nblock 222", nil, true},
		"stacks":                       {"wakeuptime", "head\n  schedule\n  93", "head\n  io_schedule\n  7", []string{"what a sample meets: only the head is compared"}, false},
		"equal counts of a map":        {"wildcard", "@[a]: 7\n@[b]: 7", "@[b]: 7\n@[a]: 7", []string{"the order of lines"}, false},
		"another count of a map":       {"wildcard", "@[a]: 7\n@[b]: 7", "@[b]: 7\n@[a]: 6", nil, true},
		"processes side by side":       {"execsnoop", "PCOMM PID PPID RET ARGS\na 8 7 0 x\na 9 7 0 y", "PCOMM PID PPID RET ARGS\na 11 9 0 y\na 10 9 0 x", []string{"process numbers", "the order of lines"}, false},
		"another child":                {"execsnoop", "PCOMM PID PPID RET ARGS\na 8 7 0 x\na 9 7 0 y", "PCOMM PID PPID RET ARGS\na 9 7 0 y\na 8 9 0 x", nil, true},
		"ends of a connection":         {"tcplife", "PID COMM LPORT\n7 nc 4000\n7 nc 40000", "PID COMM LPORT\n9 nc 40000\n8 nc 4000", []string{"which end of a connection runs", "the order of lines"}, false},
		"one process more asks":        {"capable", "PID COMM NAME\n7 sh A\n8 sh A", "PID COMM NAME\n7 sh A\n8 sh A\n9 sh A", []string{"which of the script's processes asks", "the order of lines"}, false},
		"another capability":           {"capable", "PID COMM NAME\n7 sh A", "PID COMM NAME\n7 sh A\n7 sh B", nil, true},
		"another program's end":        {"tcplife", "PID COMM LPORT\n7 nc 4000\n7 nc 40000", "PID COMM LPORT\n7 sh 4000\n7 nc 40000", nil, true},
		"a folder that /proc had once": {"statsnoop", "PID COMM RET PATH\n7 rm 0 /tmp/w/\n7 rm 0 /tmp/w/f", "PID COMM RET PATH\n7 rm 0 \n7 rm 0 f", []string{"folders of processes that may have ended"}, false},
		"another name in a folder":     {"statsnoop", "PID COMM RET PATH\n7 rm 0 /tmp/w/f", "PID COMM RET PATH\n7 rm 0 /tmp/w/g", nil, true},
		"folders of another tool":      {"opensnoop", "PID COMM RET PATH\n7 rm 0 /tmp/w/f", "PID COMM RET PATH\n7 rm 0 /tmp/v/f", nil, true},
		"a packet that waited":         {"tcppktlat", "PID COMM MS", "PID COMM MS\n7 nc 0.06", []string{"whether a packet waits for its reader: only the head is compared"}, false},
		"stacks without room":          {"memleak", "head\na", "WARNING: 1 stack traces could not be displayed due to memory shortage, including 1 caused by hash collisions.\nhead\nb", []string{"what a sample meets: only the head is compared"}, false},
		"another head":                 {"wakeuptime", "head\n  schedule", "failed\n  schedule", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			rules, same := compare(c.tool, &answer{out: strings.Split(c.theirs, "\n")}, &answer{out: strings.Split(c.ours, "\n")})
			assert.Equal(t, !c.differ, same)
			assert.Equal(t, c.rules, rules)
		})
	}
	_, same := compare("opensnoop", &answer{code: 1}, &answer{code: 0})
	assert.False(t, same, "another exit code")
	_, same = compare("opensnoop", &answer{err: []string{"failed to attach"}}, &answer{})
	assert.False(t, same, "another standard error")
}

func TestAnswersOfAScript(t *testing.T) {
	names, answers, err := parse(strings.NewReader("noise\n=== a 0\nx\n=== y\n=== err\ne\n=== end\n=== b 1\n=== err\n=== end\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, names)
	assert.Equal(t, &answer{0, []string{"x", "=== y"}, []string{"e"}}, answers["a"])
	assert.Equal(t, &answer{code: 1}, answers["b"])
	for text, says := range map[string]string{
		"=== a 0\nx\n": "the last answer, of a, is not whole", "=== a x\n": `line 1: "x" is no exit code`,
		"=== a 0\n=== err\n=== end\n=== a 0\n": "line 4: a has answered twice",
	} {
		_, _, err := parse(strings.NewReader(text))
		assert.EqualError(t, err, says)
	}
}

// TestATallyOfTools: a tool without an answer here, and one that differs, count as different.
func TestATallyOfTools(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	theirs := write("theirs", "=== a 0\nx\n=== err\n=== end\n=== b 0\n10:00:01\n=== err\n=== end\n=== c 0\n=== err\n=== end\n=== d 0\n=== err\n=== end\n")
	ours := write("ours", "=== a 0\nx\n=== err\n=== end\n=== b 0\n10:00:02\n=== err\n=== end\n=== c 1\n=== err\n=== end\n")
	var out strings.Builder
	different, err := compareFiles(&out, theirs, ours)
	require.NoError(t, err)
	assert.True(t, different)
	assert.Contains(t, out.String(), "4 tools: 1 the same, 1 by rules, 2 differ\n    1: times of day\n")
	assert.Contains(t, out.String(), "exit codes 0 and 1")
	different, err = compareFiles(&out, ours, ours)
	require.NoError(t, err)
	assert.False(t, different)
	_, err = compareFiles(&out, write("none", ""), ours)
	assert.ErrorContains(t, err, "has no answers")
}
