package load

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"kprobelab/bpf/answer"
	"kprobelab/bpf/contract"
)

// expected has what an object says of a program of its own, for a user with all rights: tags of the function's declaration (__success, __failure,
// __msg and others of the selftests' bpf_misc.h).
type expected struct {
	fails bool
	// messages are in the verifier's log, each after the one before.
	messages []message
	// level is the level of the log: 0 asks for the log of a refused program only, 2 for each instruction.
	level int
	// flags are the flags of the load, by contract.Flags.
	flags []string
	// skipped says why the program is not asked, "" if it is.
	skipped string
}

// message is a text of the log, or one that is not there before the next.
type message struct {
	text    string
	pattern *regexp.Regexp
	absent  bool
}

// usual are the flags of all programs, by the selftests' own loader.
var usual = []string{"test_rnd_hi32", "test_reg_invariants"}

// expectations reads the tags of an object's functions. Functions without a tag of a verdict have none.
func expectations(object []byte) (map[string]*expected, error) {
	types, err := btf.LoadSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	all := map[string]*expected{}
	for t, err := range types.All() {
		if err != nil {
			return nil, err
		}
		f, ok := t.(*btf.Func)
		if !ok {
			continue
		}
		e, err := expectedOf(f.Tags)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if e != nil {
			all[f.Name] = e
		}
	}
	return all, nil
}

// expectedOf reads the tags of one function; nil if they have no verdict.
func expectedOf(tags []string) (*expected, error) {
	e, verdict, architectures := &expected{flags: slices.Clone(usual)}, false, []string(nil)
	for _, tag := range inOrder(tags) {
		key, value, _ := strings.Cut(tag.text, "=")
		switch key {
		case "test_expect_success", "test_expect_failure":
			e.fails, verdict = key == "test_expect_failure", true
		case "test_expect_msg", "test_expect_not_msg":
			m, err := messageOf(value, key == "test_expect_not_msg")
			if err != nil {
				return nil, err
			}
			e.messages = append(e.messages, m)
		case "test_log_level":
			level, err := strconv.Atoi(value)
			if err != nil {
				return nil, err
			}
			e.level = level & 3
		case "test_prog_flags":
			e.flag(value)
		case "test_arch":
			architectures = append(architectures, value)
		case "test_auxiliary":
			e.skipped = "is loaded beside others only"
		case "test_btf_path", "test_btf_func_path":
			e.skipped = "wants types of a file"
		case "load_mode":
			if value == "no_jited" {
				e.skipped = "is for a kernel without a JIT"
			}
		}
	}
	if len(architectures) > 0 && !slices.Contains(architectures, "X86_64") {
		e.skipped = "is of another architecture"
	}
	if !verdict {
		return nil, nil
	}
	return e, nil
}

// tag is a tag without its number, which makes each tag another one and gives their order.
type tag struct {
	number int
	text   string
}

// A tag is comment:NUMBER:KEY=VALUE in 7.3. In 6.12 only repeated tags have a number: comment:KEY=NUMBER=VALUE.
var (
	newTag = regexp.MustCompile(`(?s)^comment:(\d+):(.*)$`)
	oldTag = regexp.MustCompile(`(?s)^comment:(\w+=)(\d+)=(.*)$`)
)

// inOrder sorts tags by their numbers: a compiler writes them in any order.
func inOrder(texts []string) (sorted []tag) {
	for _, text := range texts {
		t := tag{-1, strings.TrimPrefix(text, "comment:")}
		if m := newTag.FindStringSubmatch(text); m != nil {
			t.number, _ = strconv.Atoi(m[1])
			t.text = m[2]
		} else if m := oldTag.FindStringSubmatch(text); m != nil {
			t.number, _ = strconv.Atoi(m[2])
			t.text = m[1] + m[3]
		}
		sorted = append(sorted, t)
	}
	slices.SortStableFunc(sorted, func(a, b tag) int { return a.number - b.number })
	return sorted
}

// flag adds a flag by the kernel's name, or takes it away (!BPF_F_...).
func (e *expected) flag(text string) {
	name, off := strings.CutPrefix(text, "!")
	name = strings.ToLower(strings.TrimPrefix(name, "BPF_F_"))
	e.flags = slices.DeleteFunc(e.flags, func(old string) bool { return old == name })
	switch _, known := contract.Flags[name]; {
	case !known:
		e.skipped = "has a flag that no contract has: " + text
	case !off:
		e.flags = append(e.flags, name)
	}
}

// verbose reports whether the log that the tags ask for has each instruction. That of a program that loads is empty else.
func (e *expected) verbose() bool { return e.level == 2 || !e.fails && len(e.messages) > 0 }

// contractOf loads those programs that are asked with that log, each with its flags; nil if there are none.
func contractOf(all map[string]*expected, verbose bool, programs []answer.Program) *contract.Contract {
	c, some := &contract.Contract{Programs: map[string]contract.Program{}}, false
	for i := range programs {
		name := programs[i].Name
		e := all[name]
		load := e != nil && e.skipped == "" && e.verbose() == verbose
		p := contract.Program{Load: &load}
		if load {
			p.Flags, some = e.flags, true
		}
		c.Programs[name] = p
	}
	if !some {
		return nil
	}
	return c
}

// judge compares an answer with what the object says of the program. It returns the difference, "" if there is none, and its cause, "" if the cause is unknown.
// their is libbpf's answer.
func (e *expected) judge(our *answer.Program, their *verdict) (what, cause string) {
	switch {
	case e.skipped != "":
		return "not asked", "it " + e.skipped
	case our == nil:
		return "no answer here", ""
	case our.Unasked:
		return our.Error, "not asked here"
	}
	what = e.differs(our.Loads, our.Log)
	switch {
	case what == "":
	case strings.Contains(our.Error, "bpf_testmod") || their != nil && strings.Contains(their.log, "bpf_testmod"):
		cause = "it wants bpf_testmod"
	case their == nil:
	case our.Loads == e.fails && their.loads == our.Loads:
		cause = "libbpf's verdict is not the object's either"
	case our.Loads != e.fails && e.level != 2 && e.differs(their.loads, their.log) != "":
		cause = "libbpf's log has not the object's message either"
	}
	return what, cause
}

// differs says what of an answer is not as expected; "" if all is.
func (e *expected) differs(loads bool, log string) string {
	if loads == e.fails {
		return fmt.Sprintf("it fails: %t expected, %t here", e.fails, !loads)
	}
	var never []message
	for _, m := range e.messages {
		if m.absent {
			never = append(never, m)
			continue
		}
		at := m.find(log)
		if at == nil {
			return fmt.Sprintf("the log has no %q", m.text)
		}
		for _, n := range never {
			if n.find(log[:at[0]]) != nil {
				return fmt.Sprintf("the log has %q", n.text)
			}
		}
		never, log = nil, log[at[1]:]
	}
	for _, n := range never {
		if n.find(log) != nil {
			return fmt.Sprintf("the log has %q", n.text)
		}
	}
	return ""
}

// messageOf reads a message. What stands between {{ and }} is an expression.
func messageOf(text string, absent bool) (message, error) {
	var b strings.Builder
	b.WriteString("(?m)")
	for rest := text; rest != ""; {
		plain, after, _ := strings.Cut(rest, "{{")
		b.WriteString(regexp.QuoteMeta(plain))
		expression, next, _ := strings.Cut(after, "}}")
		b.WriteString(expression)
		rest = next
	}
	pattern, err := regexp.Compile(b.String())
	if err != nil {
		return message{}, fmt.Errorf("the message %q: %w", text, err)
	}
	pattern.Longest()
	return message{text, pattern, absent}, nil
}

// find is the first place of a message in a log, nil if there is none.
func (m *message) find(log string) []int { return m.pattern.FindStringIndex(log) }
