package stap

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"kprobelab/errno"
	"kprobelab/internal/script"
	"kprobelab/x86"
)

type (
	numberFn = func(s System, t *script.Thread, a *script.Args) int64
	textFn   = func(s System, t *script.Thread, a *script.Args, dst []byte) []byte
)

func num(signature, doc string, fn numberFn, otherwise ...script.Expr) {
	define(long, signature, doc, builtin{number: fn, otherwise: otherwise})
}

func textual(signature, doc string, fn textFn, otherwise ...script.Expr) {
	define(str, signature, doc, builtin{text: fn, otherwise: otherwise})
}

func word(name, doc string, what TaskWord) {
	num(name+"()", doc, func(s System, _ *script.Thread, _ *script.Args) int64 { return s.Task(what) })
}

func scaled(name, doc string, by uint64, wall bool) {
	num(name+"()", doc, func(s System, _ *script.Thread, _ *script.Args) int64 {
		if wall {
			return int64(s.Wall() / by)
		}
		return int64(s.Now() / by)
	})
}

var _ = func() bool {
	tasks()
	times()
	places()
	strs()
	memory()
	symbols()
	outside()
	writes()
	numbersAndNames()
	lists()
	floats()
	return true
}()

func tasks() {
	textual("execname()", "the name of the task that runs", func(s System, _ *script.Thread, _ *script.Args, dst []byte) []byte { return s.Comm(dst) })
	word("pid", "its process (tgid)", PID)
	word("tid", "its thread (pid in the kernel's words)", TID)
	word("ppid", "its parent's process", PPID)
	word("uid", "its user", UID)
	word("euid", "its effective user", EUID)
	word("gid", "its group", GID)
	word("egid", "its effective group", EGID)
	define(long, "task_current()", "the address of its task_struct", builtin{points: "task_struct", number: func(s System, _ *script.Thread, _ *script.Args) int64 { return s.Task(TaskStruct) }})
	num("cpu()", "the number of the CPU", func(s System, _ *script.Thread, _ *script.Args) int64 { return int64(s.CPU()) })
	num("target()", "the process of -c", func(s System, _ *script.Thread, _ *script.Args) int64 { return s.Target() })
	num("stp_pid()", "always 0: no program of SystemTap runs", func(System, *script.Thread, *script.Args) int64 { return 0 })
	num("is_myproc()", "always 1", func(System, *script.Thread, *script.Args) int64 { return 1 })
}

func times() {
	for _, u := range []struct {
		name string
		by   uint64
	}{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}} {
		scaled("gettimeofday_"+u.name, "the time since 1970 in "+u.name+"; virtual", u.by, true)
		scaled("local_clock_"+u.name, "the virtual time since boot in "+u.name, u.by, false)
		scaled("ktime_get_"+u.name, "the virtual time since boot in "+u.name, u.by, false)
		num("cpu_clock_"+u.name+"(long)", "the virtual time since boot in "+u.name, func(s System, _ *script.Thread, _ *script.Args) int64 { return int64(s.Now() / u.by) })
	}
	scaled("get_cycles", "the virtual time since boot in ns: a cycle is one", 1, false)
	num("jiffies()", "the kernel's ticks since boot", func(s System, _ *script.Thread, _ *script.Args) int64 { return int64(s.Now() / uint64(1e9/s.HZ())) })
	num("HZ()", "ticks in a second", func(s System, _ *script.Thread, _ *script.Args) int64 { return s.HZ() })
	textual("ctime(long)", "a time since 1970 in seconds as text, in UTC", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		if a.Int[0] > math.MaxInt32 {
			t.Fail(a.Near, "Time too far in the future to be converted")
		} else if a.Int[0] < math.MinInt32 {
			t.Fail(a.Near, "Time too far in the past to be converted")
		}
		return time.Unix(a.Int[0], 0).UTC().AppendFormat(dst, "Mon Jan _2 15:04:05 2006")
	})
	num("randint(long)", "a number below N, the same in every run", func(s System, _ *script.Thread, a *script.Args) int64 {
		if a.Int[0] <= 0 {
			return 0
		}
		x := s.Now()*0x9e3779b97f4a7c15 + 1
		x ^= x >> 29
		return int64(x*0xbf58476d1ce4e5b9>>1) % a.Int[0]
	})
}

// probeTypes are the kinds of probes by stap's names.
var probeTypes = map[ProbeKind]string{
	Begin: "begin_end", End: "begin_end", Error: "begin_end", Never: "begin_end", Timer: "hrtimer", Call: "kprobe", Return: "kretprobe",
	Trace: "kernel_tracepoint", Data: "hardware_data_breakpoint", User: "uprobe",
}

func places() {
	point := func(fn func(p *Probe) string) textFn {
		return func(s System, _ *script.Thread, _ *script.Args, dst []byte) []byte {
			if p := s.Probe(); p != nil {
				return append(dst, fn(p)...)
			}
			return dst
		}
	}
	textual("pp()", "the probe point, resolved", point(func(p *Probe) string { return p.Point }))
	textual("pn()", "the probe point as the script has it", point(func(p *Probe) string { return p.Written }))
	textual("ppfunc()", "the function of the probe point", point(func(p *Probe) string { return p.Function }))
	textual("probemod()", "the module that is probed", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
		p := s.Probe()
		switch {
		case p == nil || p.Kind != Call && p.Kind != Return:
			t.Fail(a.Near, "Cannot determine kernel module name")
		case p.Module == "":
			return append(dst, "kernel"...)
		}
		return append(dst, p.Module...)
	})
	textual("probe_type()", "what kind of probe runs", point(func(p *Probe) string {
		switch {
		case p.Profile:
			return "profile_timer"
		case returns(p) && p.Kind == User:
			return "uretprobe"
		case p.Kind == Timer && strings.HasPrefix(p.Point, "timer.jiffies"):
			return "timer"
		}
		return probeTypes[p.Kind]
	}))
	num("is_return()", "1 in a probe of a return", func(s System, _ *script.Thread, _ *script.Args) int64 { return truth(returns(s.Probe())) })
	num("addr()", "where the probe was hit; of a return, where the function returns to", func(s System, _ *script.Thread, _ *script.Args) int64 { return int64(hitAt(s)) })
	num("user_mode()", "1 where the program itself was interrupted", func(s System, _ *script.Thread, _ *script.Args) int64 { return truth(s.User()) })
	num("registers_valid()", "1 where there are registers", func(s System, _ *script.Thread, _ *script.Args) int64 { return truth(s.Address() != 0) })
	register := func(name, doc string, signed bool) {
		num(name+"(string)", doc, func(s System, t *script.Thread, a *script.Args) int64 {
			n, from, bits, ok := registerOf(string(a.Text[0]))
			if !inCode(s) {
				t.Fail(a.Near, "cannot access CPU registers in this context")
			}
			if !ok {
				t.Failf(a.Near, "Unknown register: %s", a.Text[0])
			}
			v := int64(s.Register(n) << (64 - from - bits))
			if signed {
				return v >> (64 - bits)
			}
			return int64(uint64(v) >> (64 - bits))
		})
	}
	register("register", "a register of the hit, or a part of one, by its name", true)
	register("u_register", "the same without a sign", false)
	for _, r := range []struct {
		name string
		cut  func(uint64) int64
	}{
		{"int_arg", func(v uint64) int64 { return int64(int32(v)) }}, {"uint_arg", func(v uint64) int64 { return int64(uint32(v)) }},
		{"long_arg", func(v uint64) int64 { return int64(v) }}, {"ulong_arg", func(v uint64) int64 { return int64(v) }},
		{"longlong_arg", func(v uint64) int64 { return int64(v) }}, {"ulonglong_arg", func(v uint64) int64 { return int64(v) }},
		{"pointer_arg", func(v uint64) int64 { return int64(v) }},
		{"s32_arg", func(v uint64) int64 { return int64(int32(v)) }}, {"u32_arg", func(v uint64) int64 { return int64(uint32(v)) }},
		{"s64_arg", func(v uint64) int64 { return int64(v) }}, {"u64_arg", func(v uint64) int64 { return int64(v) }},
	} {
		num(r.name+"(long)", "a parameter by its number, from 1 to 6", func(s System, t *script.Thread, a *script.Args) int64 {
			n := a.Int[0]
			if !inCode(s) {
				t.Fail(a.Near, "cannot access function args in this context")
			}
			if n < 1 || n > int64(len(script.Params)) {
				t.Failf(a.Near, "cannot access arg(%d)", n)
			}
			return r.cut(s.Register(script.Params[n-1]))
		})
	}
	num("returnval()", "what the function returns", func(s System, _ *script.Thread, _ *script.Args) int64 { return int64(s.Register(0)) })
	num("__syscall_arg(long)", "a parameter of a system call", syscallArg)
	textual("__open_flags(long)", "the flags of open(2)", openFlagsText)
	textual("__access_mode(long)", "what access(2) asks", accessModeText)
	for name, text := range flagFunctions() {
		textual(name+"(long)", "the names of a system call's flags", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
			return text(dst, a.Int[0])
		})
	}
	textual("_sock_protocol_str(long, long)", "the name of a socket's protocol, of that family", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return protocolText(dst, a.Int[0], a.Int[1])
	})
	textual("_struct_sockaddr_u(long, long)", "an address of a socket in a program's memory, of that length", socketAddressText)
	for signature, of := range structures {
		several := strings.Contains(signature, ",")
		textual(signature, "what a program's memory has there", func(s System, _ *script.Thread, a *script.Args, dst []byte) []byte {
			n := int64(1)
			if several {
				n = a.Int[1]
			}
			return structureText(s, of.size, n, a, dst, of.text)
		})
	}
	textual("_stp_xattr_val_str(long, long)", "the value of an extended attribute in a program's memory, of that length", attributeText)
	textual("__signal_name(long)", "the name of a signal without SIG", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return append(dst, signalName(a.Int[0])...)
	})
	textual("__irq_flags(long)", "the flags of an interrupt's handler", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return flagsText(dst, irqFlags, a.Int[0])
	})
	textual("syscall_name(long)", "the name of a system call by its number", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return append(dst, syscallName(a.Int[0])...)
	})
	num("syscall_num(string)", "the number of a system call by its name, -1 where there is none", func(_ System, _ *script.Thread, a *script.Args) int64 {
		return syscallNumber(string(a.Text[0]))
	})
	textual("return_str(long, long)", "a result of a system call, with the error's name", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return returnText(dst, a.Int[0], a.Int[1])
	})
	textual("returnstr(long)", "what the function returns: 1 decimal, 2 hexadecimal", func(s System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return returnText(dst, a.Int[0], int64(s.Register(0)))
	})
	num("errno_p(long)", "an error's number without its sign, 0 where no error has it", func(_ System, _ *script.Thread, a *script.Args) int64 {
		n := a.Int[0]
		if n < 0 {
			n = -n
		}
		if n > 4095 || errorName(n) == "" {
			return 0
		}
		return n
	})
	textual("errno_str(long)", "the name of an error's number", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return append(dst, errorName(a.Int[0])...)
	})
}

// inCode reports a probe of code, at which there are registers.
func inCode(s System) bool {
	p := s.Probe()
	return p != nil && (p.Kind == Call || p.Kind == Return || p.Kind == Data || p.Kind == User)
}

// hitAt returns the address of the hit; for a return probe it is the address to which the function returns.
func hitAt(s System) uint64 {
	if p := s.Probe(); p != nil && p.Kind == Return {
		if frames, _ := s.Stack(); len(frames) > 0 {
			return frames[0]
		}
	}
	return s.Address()
}

// errorName returns the name of an errno of either sign, "" if stap's library has none.
func errorName(n int64) string {
	if n < 0 {
		n = -n
	}
	if n < 0 || n > lastError || !errno.Errno(n).Known() {
		return ""
	}
	return errno.Errno(n).Name()
}

// lastError is the last number that stap's library has a name for.
const lastError = 131

func returnText(dst []byte, format, v int64) []byte {
	if v < 0 && v >= -4095 {
		if name := errorName(v); name != "" {
			return append(append(append(strconv.AppendInt(dst, v, 10), " ("...), name...), ')')
		}
	}
	switch format {
	case 2:
		return hexText(dst, uint64(v))
	case 3:
		return strconv.AppendUint(append(dst, '0'), uint64(v), 8)
	}
	return strconv.AppendInt(dst, v, 10)
}

// registerOf is a register's DWARF number by its name, and which bits of it are meant.
func registerOf(name string) (n, from, bits int, ok bool) {
	for i, r := range x86.DWARF {
		switch name {
		case "r" + r, r:
			if i < 8 && name == r {
				return i, 0, 16, true
			}
			return i, 0, 64, true
		case "e" + r:
			return i, 0, 32, i < 8 || i == 16
		case r[:1] + "l", r[:1] + "h":
			if i < 4 {
				return i, 8 * strings.IndexByte("lh", name[1]), 8, true
			}
		}
	}
	if name == "rflags" || name == "flags" {
		return 17, 0, 64, true
	}
	return 0, 0, 0, false
}

func strs() {
	num("strlen(string)", "a string's length", func(_ System, _ *script.Thread, a *script.Args) int64 { return int64(len(a.Text[0])) })
	num("isinstr(string, string)", "1 where the first has the second in it", func(_ System, _ *script.Thread, a *script.Args) int64 {
		return truth(bytes.Contains(a.Text[0], a.Text[1]))
	})
	num("strpos(string, string)", "where the first has the second in it, -1 where it has not", func(_ System, _ *script.Thread, a *script.Args) int64 {
		return int64(bytes.Index(a.Text[0], a.Text[1]))
	})
	num("isdigit(string)", "1 where the first character is a digit", func(_ System, _ *script.Thread, a *script.Args) int64 {
		return truth(len(a.Text[0]) > 0 && isDigit(a.Text[0][0]))
	})
	num("stringat(string, long)", "a character's number", func(_ System, t *script.Thread, a *script.Args) int64 {
		i := a.Int[1]
		if i < 0 || i >= int64(len(a.Text[0])) {
			t.Fail(a.Near, "Position out of bounds")
		}
		return int64(int8(a.Text[0][i]))
	})
	num("strtol(string, long)", "a number in text, of a base", func(_ System, _ *script.Thread, a *script.Args) int64 { return strtol(string(a.Text[0]), a.Int[1]) })
	textual("substr(string, long, long)", "a part of a string: from where, how long", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		s, from, n := a.Text[0], a.Int[1], a.Int[2]
		if from < 0 || from >= int64(len(s)) || n < 1 {
			return dst
		}
		return append(dst, s[from:min(from+min(n, 1<<20), int64(len(s)))]...)
	})
	textual("str_replace(string, string, string)", "the first with each of the second replaced by the third", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		s, room := a.Text[0], t.StringSize()-1
		if len(a.Text[1]) == 0 {
			return append(dst, s...)
		}
		from := len(dst)
		for len(dst)-from < room {
			i := bytes.Index(s, a.Text[1])
			if i < 0 {
				return append(dst, s[:min(len(s), room-(len(dst)-from))]...)
			}
			dst = append(dst, s[:min(i, room-(len(dst)-from))]...)
			dst = append(dst, a.Text[2][:min(len(a.Text[2]), room-(len(dst)-from))]...)
			s = s[i+len(a.Text[1]):]
		}
		return dst
	})
	textual("tokenize(string, string)", "the next word of a string, whose words the second's characters separate; of \"\" the one after", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		kept := t.Kept("tokenize")
		rest := *kept
		if len(a.Text[0]) > 0 {
			rest = append(rest[:0], a.Text[0]...)
		}
		is := func(c byte) bool { return bytes.IndexByte(a.Text[1], c) >= 0 }
		for len(rest) > 0 && is(rest[0]) {
			rest = rest[1:]
		}
		n := 0
		for n < len(rest) && !is(rest[n]) {
			n++
		}
		dst = append(dst, rest[:n]...)
		*kept = rest[min(n+1, len(rest)):]
		return dst
	})
	textual("text_str(string)", "a string with what does not print as escapes", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		return (&printing{size: t.StringSize()}).text(dst, a.Text[0])
	})
	textual("text_strn(string, long, long)", "the same of so many characters, with quotes if the third says so", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		return (&printing{size: t.StringSize(), out: a.Int[1], quoted: a.Int[2] != 0}).text(dst, a.Text[0])
	})
	textual("string_quoted(string)", "a string in quotes", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		return (&printing{size: t.StringSize(), quoted: true}).text(dst, a.Text[0])
	})
	matched := func(t *script.Thread, near string, n int64, dst []byte) []byte {
		b, groups := t.Matched(int(min(max(n, 0), 1<<20)))
		if groups == 0 {
			t.Failf(near, "Attempted to get subexpression %d from failed match", n)
		}
		if n < 0 || n >= int64(groups) {
			t.Failf(near, "Attempted to get nonexistent subexpression %d", n)
		}
		return append(dst, b...)
	}
	textual("matched(long)", "a group of the last =~ that held", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		return matched(t, a.Near, a.Int[0], dst)
	})
	textual("matched_str()", "what the last =~ that held has found", func(_ System, t *script.Thread, a *script.Args, dst []byte) []byte {
		return matched(t, a.Near, 0, dst)
	})
	num("ngroups()", "how many groups the last =~ had", func(_ System, t *script.Thread, a *script.Args) int64 {
		_, n := t.Matched(0)
		if n == 0 {
			t.Fail(a.Near, "Attempted to get subexpression count from failed match")
		}
		return int64(n)
	})
}

// strtol reads as many digits as there are, as the kernel's simple_strtol does: none after a space or a plus.
func strtol(s string, base int64) int64 {
	digits := strings.TrimPrefix(s, "-")
	hex := len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' && hexDigit(digits[2]) >= 0
	switch {
	case base == 0 && hex:
		base = 16
	case base == 0 && strings.HasPrefix(digits, "0"):
		base = 8
	case base == 0:
		base = 10
	}
	if base == 16 && len(digits) > 1 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	v := int64(0)
	for i := range len(digits) {
		d := int64(hexDigit(digits[i]))
		if d < 0 || d >= base {
			break
		}
		v = v*base + d
	}
	if len(digits) < len(s) && s[0] == '-' {
		return -v
	}
	return v
}

// words are the integers that can be read from memory. users and kernels: the integer can be read only from a
// program's, or only from the kernel's memory.
var words = []struct {
	name                   string
	size                   int
	signed, users, kernels bool
}{
	{name: "char", size: 1, signed: true}, {name: "short", size: 2, signed: true}, {name: "int", size: 4, signed: true},
	{name: "long", size: 8, signed: true}, {name: "pointer", size: 8, kernels: true},
	{name: "int8", size: 1, signed: true, users: true}, {name: "uint8", size: 1, users: true},
	{name: "int16", size: 2, signed: true, users: true}, {name: "uint16", size: 2, users: true}, {name: "ushort", size: 2, users: true},
	{name: "int32", size: 4, signed: true, users: true}, {name: "uint32", size: 4, users: true},
	{name: "int64", size: 8, signed: true, users: true}, {name: "uint64", size: 8, users: true}, {name: "ulong", size: 8, users: true},
}

// manual is the page of stap's manual about memory that cannot be read.
const manual = " [man error::fault]"

// copyFault is said of a string that cannot be read.
func copyFault(addr uint64, user bool) string {
	if user {
		return fmt.Sprintf("user string copy fault -14 at %#x", addr) + manual
	}
	return fmt.Sprintf("kernel string copy fault at %#x", addr) + manual
}

// noDefault stands for an argument that is not given.
var noDefault = []byte("\x00none")

func outside() {
	num("exit()", "ends the script", func(s System, _ *script.Thread, _ *script.Args) int64 { s.Exit(0); return 0 })
	say := func(prefix string) numberFn {
		return func(s System, t *script.Thread, a *script.Args) int64 {
			t.Flush()
			s.Log(prefix + string(a.Text[0]))
			return 0
		}
	}
	num("warn(string)", "prints a warning on standard error", say("WARNING: "))
	num("error(string)", "ends the script with an error", func(_ System, t *script.Thread, a *script.Args) int64 {
		t.Fail("", string(a.Text[0]))
		return 0
	})
	num("abort()", "ends the handler and the script", func(s System, t *script.Thread, _ *script.Args) int64 {
		s.Exit(0)
		t.Fail("", "abort")
		return 0
	})
	num("log(string)", "prints a line", func(_ System, t *script.Thread, a *script.Args) int64 {
		t.Print(append(append([]byte{}, a.Text[0]...), '\n'))
		return 0
	})
	num("printk(long, string)", "prints a line on standard error", func(s System, t *script.Thread, a *script.Args) int64 {
		t.Flush()
		s.Log(string(a.Text[1]))
		return 0
	})
	textual("module_name()", "the name of the script", func(_ System, _ *script.Thread, _ *script.Args, dst []byte) []byte { return append(dst, "stap"...) })
	swap := func(name string, fn func(v uint64) uint64) {
		num(name+"(long)", "a number with its bytes in the other order", func(_ System, _ *script.Thread, a *script.Args) int64 { return int64(fn(uint64(a.Int[0]))) })
	}
	for _, n := range []string{"ntohll", "htonll", "big_endian8"} {
		swap(n, bits.ReverseBytes64)
	}
	for _, n := range []string{"ntohs", "htons", "big_endian2"} {
		swap(n, func(v uint64) uint64 { return v>>8&0xff | v&0xff<<8 })
	}
	for _, n := range []string{"ntohl", "htonl", "big_endian4"} {
		swap(n, func(v uint64) uint64 { return v>>24&0xff | v>>8&0xff00 | v&0xff00<<8 | v&0xff<<24 })
	}
}
