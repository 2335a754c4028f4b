package stap

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// bodies holds the bodies of the system calls whose argstr depends on their arguments.
var bodies = map[string]string{
	"pipe": `fildes_uaddr = __syscall_arg(1)
 flags = 0
 flag_str = "0x0"
 pipe0 = 0
 pipe1 = 0
 if (fildes_uaddr) { pipe0 = user_int(fildes_uaddr); pipe1 = user_int(fildes_uaddr + 4); argstr = sprintf("[%d, %d]", pipe0, pipe1) } else argstr = "NULL"
`,
	"pipe2": `fildes_uaddr = __syscall_arg(1)
 pipe0 = 0
 pipe1 = 0
 flags = (__syscall_arg(2) << 32) >> 32
 flag_str = _sys_pipe2_flag_str(flags)
 if (fildes_uaddr) { pipe0 = user_int(fildes_uaddr); pipe1 = user_int(fildes_uaddr + 4); argstr = sprintf("[%d, %d], %s", pipe0, pipe1, flag_str) } else argstr = "NULL"
`,
	"rt_sigaction": `sig = (__syscall_arg(1) << 32) >> 32
 sig_str = _signal_name(sig)
 act_uaddr = __syscall_arg(2)
 act_str = _struct_sigaction_u(act_uaddr)
 oact_uaddr = __syscall_arg(3)
 sigsetsize = __syscall_arg(4)
 argstr = sprintf("%s, {%s}, %p, %d", sig_str, act_str, oact_uaddr, sigsetsize)
`,
	"mq_open": `name_uaddr = __syscall_arg(1)
 filename = user_string_quoted(name_uaddr)
 filename_unquoted = user_string2(name_uaddr, "")
 oflag = (__syscall_arg(2) << 32) >> 32
 oflag_str = __open_flags(oflag)
 mode = __syscall_arg(3) & 0xffff
 u_attr_uaddr = __syscall_arg(4)
 argstr = sprintf("%s, %s", filename, oflag_str)
 if (oflag & 0100) argstr .= sprintf(", %#o, %p", mode, u_attr_uaddr)
`,
	"signalfd": `flags = 0
 argstr = sprintf("%d, %p, %d", (__syscall_arg(1) << 32) >> 32, __syscall_arg(2), __syscall_arg(3))
`,
	"signalfd4": `flags = (__syscall_arg(4) << 32) >> 32
 argstr = sprintf("%d, %p, %d", (__syscall_arg(1) << 32) >> 32, __syscall_arg(2), __syscall_arg(3))
 if (flags) argstr .= ", " . _signalfd4_flags_str(flags)
`,
	"inotify_init1": `flags = (__syscall_arg(1) << 32) >> 32
 argstr = _inotify_init1_flag_str(flags)
`,
	"epoll_create1": `size = 0
 flags = (__syscall_arg(1) << 32) >> 32
 argstr = flags ? _epoll_create1_flag_str(flags) : "0"
`,
	"utime": `filename_uaddr = __syscall_arg(1)
 filename = user_string_quoted(filename_uaddr)
 filename_unquoted = user_string2(filename_uaddr, "")
 buf_uaddr = __syscall_arg(2)
 if (buf_uaddr) { actime = user_long(buf_uaddr); modtime = user_long(buf_uaddr + 8) }
 argstr = sprintf("%s, [%s, %s]", filename, ctime(actime), ctime(modtime))
`,
	"futex": `futex_uaddr = __syscall_arg(1)
 op = (__syscall_arg(2) << 32) >> 32
 val = (__syscall_arg(3) << 32) >> 32
 utime_uaddr = __syscall_arg(4)
 uaddr2_uaddr = __syscall_arg(5)
 val3 = (__syscall_arg(6) << 32) >> 32
 argstr = sprintf("%p, %s, %d", futex_uaddr, _futex_op_str(op), val)
 if (op == 10) argstr .= sprintf(", %#x", val3)
 else if (op == 0) argstr .= ", " . _struct_timespec_u(utime_uaddr, 1)
 else if (op == 9) argstr .= sprintf(", %s, %#x", _struct_timespec_u(utime_uaddr, 1), val3)
 else if (op == 3) argstr .= sprintf(", %d, %p", utime_uaddr, uaddr2_uaddr)
 else if (op == 4 || op == 12) argstr .= sprintf(", %u, %p, %d", utime_uaddr, uaddr2_uaddr, val3)
 else if (op == 5) argstr .= sprintf(", %u, %p, %s", utime_uaddr, uaddr2_uaddr, _futex_wake_op_str(val3))
 else if (op == 11) argstr .= sprintf(", %s, %p", _struct_timespec_u(utime_uaddr, 1), uaddr2_uaddr)
`,
}

// returnBodies holds the statements that set, at the return of some calls, more variables than
// the result: arguments of the entry.
var returnBodies = map[string]string{
	"epoll_create":  " flags = 0\n",
	"epoll_create1": " flags = (@entry(__syscall_arg(1)) << 32) >> 32\n",
	"signalfd":      " flags = 0\n",
	"signalfd4":     " flags = (@entry(__syscall_arg(4)) << 32) >> 32\n",
	"pipe":          pipeReturn,
	"pipe2":         pipeReturn,
}

// pipeReturn sets what a call of pipe has left in memory.
const pipeReturn = ` fildes_uaddr = @entry(__syscall_arg(1))
 pipe0 = fildes_uaddr ? user_int(fildes_uaddr) : 0
 pipe1 = fildes_uaddr ? user_int(fildes_uaddr + 4) : 0
`

// nofault is the text at a pointer without quotes, empty where it cannot be read.
const nofault = "user_string2(%s, \"\")"

// parameter is a word of the table: the variable of its number, of its text and of its
// text without quotes, "" for none; how it is printed; where it comes from.
type parameter struct {
	name, text, unquoted, how, get string
}

// readParameter reads a word of the table; n counts from 1.
func readParameter(word string, n int) parameter {
	p := parameter{get: fmt.Sprintf("__syscall_arg(%d)", n)}
	names, how, _ := strings.Cut(word, ":")
	p.how = how
	var given bool
	p.name, p.text, given = strings.Cut(names, "=")
	if p.how == "s" && !given {
		p.name, p.text = "", p.name
	}
	p.text, p.unquoted, _ = strings.Cut(p.text, ",")
	switch {
	case p.text == "-" || p.unquoted == "-":
		p.text, p.unquoted = strings.TrimPrefix(p.text, "-"), ""
	case p.unquoted == "" && p.text != "" && (p.how == "s" || strings.HasPrefix(p.how, "user_string")):
		p.unquoted = p.text + "_unquoted"
	}
	if !given && p.text == "" {
		p.text = strings.TrimSuffix(p.name, "_uaddr") + "_str"
	}
	if p.how == "b" && !given {
		p.text = "buf_str"
	}
	if p.how == "L" {
		p.name, p.text = "", map[string]string{"argv_uaddr": "args", "envp_uaddr": "env_str"}[p.name]
	}
	return p
}

// syscallBody sets the variables of the parameters, and argstr.
func syscallBody(table string) string {
	var b strings.Builder
	var formats, args []string
	n := 0
	for _, word := range strings.Fields(table) {
		if raw, ok := strings.CutPrefix(word, "+"); ok {
			fmt.Fprintf(&b, " %s\n", raw)
			continue
		}
		n++
		p := readParameter(word, n)
		set, format, value := p.statements()
		b.WriteString(set)
		if format != "" {
			formats, args = append(formats, format), append(args, value)
		}
	}
	if len(formats) == 0 {
		b.WriteString(" argstr = \"\"\n")
		return b.String()
	}
	format := strings.Join(formats, ", ")
	if strings.Contains(table, ":O ") {
		// The mode of open counts where a file is made.
		fmt.Fprintf(&b, " if (flags & 0100) argstr = sprintf(%q, %s)\n", format, strings.Join(args, ", "))
		formats, args = formats[:len(formats)-1], args[:len(args)-1]
		fmt.Fprintf(&b, " else argstr = sprintf(%q, %s)\n", strings.Join(formats, ", "), strings.Join(args, ", "))
		return b.String()
	}
	fmt.Fprintf(&b, " argstr = sprintf(%q, %s)\n", format, strings.Join(args, ", "))
	return b.String()
}

// statements set the parameter's variables; format and value are its part of argstr, "" for
// none.
func (p *parameter) statements() (set, format, value string) {
	if number, format, ok := p.number(); ok {
		return fmt.Sprintf(" %s = %s\n", p.name, number), format, p.name
	}
	get := p.get
	if p.name != "" {
		set = fmt.Sprintf(" %s = %s\n", p.name, get)
	}
	text := ""
	switch p.how {
	case "-":
		return "", "", ""
	case "s":
		text = fmt.Sprintf("user_string_quoted(%s)", get)
	case "D":
		set = fmt.Sprintf(" %s = (%s << 32) >> 32\n", p.name, get)
		text = fmt.Sprintf("%s == -100 ? \"AT_FDCWD\" : sprint(%s)", p.name, p.name)
	case "b":
		next := strings.Replace(get, "(", "(1 + ", 1)
		text = fmt.Sprintf("user_buffer_quoted(%s, %s, 64)", get, next)
	case "O":
		set = fmt.Sprintf(" %s = (%s << 32) >> 32\n", p.name, get)
		text = fmt.Sprintf("__open_flags(%s)", p.name)
	case "a":
		set = fmt.Sprintf(" %s = (%s << 32) >> 32\n", p.name, get)
		text = fmt.Sprintf("__access_mode(%s)", p.name)
	case "t":
		text = fmt.Sprintf("_struct_timespec_u(%s, 1)", p.name)
	case "N":
		text = fmt.Sprintf("%s ? sprintf(\"%%p\", %s) : \"NULL\"", p.name, p.name)
	case "L":
		text = fmt.Sprintf("__strings_of(%s, 0)", get)
	default:
		set, text = p.named(set)
	}
	if p.text == "" {
		return set, "%s", "(" + text + ")"
	}
	set += fmt.Sprintf(" %s = %s\n", p.text, text)
	if p.unquoted != "" {
		set += fmt.Sprintf(" %s = "+nofault+"\n", p.unquoted, get)
	}
	return set, "%s", p.text
}

// number is the value and the format of a parameter that is printed as a number.
func (p *parameter) number() (value, format string, ok bool) {
	switch p.how {
	case "d":
		return fmt.Sprintf("(%s << 32) >> 32", p.get), "%d", true
	case "o":
		return p.get + " & 0xffffffff", "%#o", true
	case "u":
		return p.get, "%u", true
	case "w":
		return p.get + " & 0xffffffff", "%u", true
	case "i":
		return fmt.Sprintf("(%s << 32) >> 32", p.get), "%u", true
	case "l":
		return p.get, "%d", true
	case "p", "x":
		return p.get, "%#x", true
	case "U":
		return p.get + " & 0xffffffff", "%#x", true
	}
	return "", "", false
}

// named returns the statement that sets a parameter's number, and the call of the function that prints the parameter.
// set is the statement for a parameter of 64 bits.
func (p *parameter) named(set string) (_, text string) {
	call, width, _ := strings.Cut(p.how, "/")
	fn, with, _ := strings.Cut(strings.TrimSuffix(call, ")"), "(")
	value := p.name
	switch {
	case p.name == "":
		value = p.get
	case strings.HasSuffix(p.name, "_uaddr") || width == "l":
	case width == "w":
		set = fmt.Sprintf(" %s = %s & 0xffffffff\n", p.name, p.get)
	default:
		set = fmt.Sprintf(" %s = (%s << 32) >> 32\n", p.name, p.get)
	}
	with = otherParameter.ReplaceAllString(strings.ReplaceAll(cmp.Or(with, "."), ".", value), "(__syscall_arg($1) << 32) >> 32")
	return set, fmt.Sprintf("%s(%s)", fn, with)
}

var otherParameter = regexp.MustCompile(`\$(\d)`)
