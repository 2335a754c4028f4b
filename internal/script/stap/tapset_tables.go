package stap

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"kprobelab/internal/script"
)

// named are lists of names by their numbers. "" is a number without a name.
var named = map[string][]string{
	"fam": {
		"UNSPEC", "LOCAL", "INET", "AX25", "IPX", "APPLETALK", "NETROM", "BRIDGE", "ATMPVC", "X25", "INET6", "ROSE", "DECNET", "NETBEUI", "SECURITY", "KEY", "NETLINK",
		"PACKET", "ASH", "ECONET", "ATMSVC", "", "SNA", "IRDA", "PPPOX", "WANPIPE", "LLC", "", "", "", "TIPC", "BLUETOOTH", "IUCV", "RXRPC",
	},
	"state": {"FREE", "UNCONNECTED", "CONNECTING", "CONNECTED", "DISCONNECTING"},
	"type":  {"", "STREAM", "DGRAM", "RAW", "RDM", "SEQPACKET", "DCCP", "", "", "", "PACKET"},
}

// tcpStates are the states of a TCP socket (include/net/tcp_states.h).
var tcpStates = []string{
	"", "TCP_ESTABLISHED", "TCP_SYN_SENT", "TCP_SYN_RECV", "TCP_FIN_WAIT1", "TCP_FIN_WAIT2", "TCP_TIME_WAIT", "TCP_CLOSE", "TCP_CLOSE_WAIT", "TCP_LAST_ACK", "TCP_LISTEN", "TCP_CLOSING",
}

// limits are the limits of a process (RLIMIT_…), by their numbers.
var limits = []string{
	"CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS", "LOCKS", "SIGPENDING", "MSGQUEUE", "NICE", "RTPRIO", "RTTIME",
}

func nameOf(list []string, n int64, otherwise string) string {
	if n < 0 || n >= int64(len(list)) || list[n] == "" {
		return otherwise
	}
	return list[n]
}

func numberOf(list []string, name string) int64 {
	if name == "" {
		return -1
	}
	return int64(slices.Index(list, name))
}

// numbersAndNames enters the functions that are tables.
func numbersAndNames() {
	for kind, list := range named {
		textual("sock_"+kind+"_num2str(long)", "the name of a number of sockets", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
			return append(dst, nameOf(list, a.Int[0], "UNDEF")...)
		})
		num("sock_"+kind+"_str2num(string)", "the number that has a name; -1 if none has it", func(_ System, _ *script.Thread, a *script.Args) int64 {
			return numberOf(list, string(a.Text[0]))
		})
	}
	textual("tcp_sockstate_str(long)", "the name of a TCP socket's state", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		return append(dst, nameOf(tcpStates, a.Int[0], "UNDEF")...)
	})
	num("rlimit_from_str(string)", "the number of a limit (RLIMIT_NOFILE); -1 if none has the name", func(_ System, _ *script.Thread, a *script.Args) int64 {
		name := string(a.Text[0])
		if len(name) < len("RLIMIT_") || name[:len("RLIMIT_")] != "RLIMIT_" {
			return -1
		}
		return numberOf(limits, name[len("RLIMIT_"):])
	})
	textual("sigset_mask_str(long)", "the signals of a set, by their numbers", func(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
		from := len(dst)
		for i := range 63 {
			if a.Int[0]>>i&1 == 0 {
				continue
			}
			if len(dst) > from {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(i+1), 10)
		}
		return dst
	})
	textual("modname(long)", "the module that has an address", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
		_, module, _, _, ok := s.Symbol(uint64(a.Int[0]))
		if !ok {
			t.Fail(a.Near, "Cannot determine kernel module name")
		}
		if module == "" {
			module = "kernel"
		}
		return append(dst, module...)
	})
}

// lists enters the primitives for the lists of the kernel.
func lists() {
	pointer := func(s System, at uint64) (uint64, bool) {
		var b [8]byte
		ok := s.Read(at, b[:], false)
		return littleEndian(b[:]), ok
	}
	// each walks a ring of list_heads from one of them. A ring that memory's change has broken does not keep the walk forever.
	const longest = 1 << 15
	each := func(s System, from uint64, visit func(at uint64) bool) {
		at, ok := pointer(s, from)
		for i := 0; ok && at != from && i < longest && visit(at); i++ {
			at, ok = pointer(s, at)
		}
	}
	num("__thread(long, long, long, long, long, long, long)", "the task that has a number: any task, the number, and where in its structures tasks, signal, thread_head, thread_node and pid are", func(s System, _ *script.Thread, a *script.Args) (found int64) {
		task, tasks, group, head, node, number := uint64(a.Int[0]), uint64(a.Int[2]), uint64(a.Int[3]), uint64(a.Int[4]), uint64(a.Int[5]), uint64(a.Int[6])
		threads := func(leader uint64) bool {
			signal, ok := pointer(s, leader+group)
			if !ok {
				return false
			}
			each(s, signal+head, func(at uint64) bool {
				var b [4]byte
				if s.Read(at-node+number, b[:], false) && int64(int32(littleEndian(b[:]))) == a.Int[1] {
					found = int64(at - node)
				}
				return found == 0
			})
			return found == 0
		}
		// The idle task of a further CPU points into the ring, and is not in it: the ring is walked from the next one.
		if begin, ok := pointer(s, task+tasks); ok && threads(task) && threads(begin-tasks) {
			each(s, begin, func(at uint64) bool { return threads(at - tasks) })
		}
		return found
	})
	num("__count_pointers(long, long)", "how many pointers of an array are not 0", func(s System, t *script.Thread, a *script.Args) (n int64) {
		for i := range min(max(a.Int[1], 0), longest) {
			p, ok := pointer(s, uint64(a.Int[0]+8*i))
			if !ok {
				t.Fail(a.Near, copyFault(uint64(a.Int[0]+8*i), false))
			}
			if p != 0 {
				n++
			}
		}
		return n
	})
}

// floats enters the functions of numbers with 64 bits in IEEE 754's form.
func floats() {
	of := func(v int64) float64 { return math.Float64frombits(uint64(v)) }
	two := func(name, doc string, fn func(x, y float64) float64) {
		num(name+"(long, long)", doc, func(_ System, _ *script.Thread, a *script.Args) int64 {
			return int64(math.Float64bits(fn(of(a.Int[0]), of(a.Int[1]))))
		})
	}
	two("fp_add", "the sum of two floating point numbers", func(x, y float64) float64 { return x + y })
	two("fp_sub", "their difference", func(x, y float64) float64 { return x - y })
	two("fp_mul", "their product", func(x, y float64) float64 { return x * y })
	two("fp_div", "their quotient", func(x, y float64) float64 { return x / y })
	two("fp_rem", "their remainder by IEEE 754", math.Remainder)
	compare := func(name, doc string, fn func(x, y float64) bool) {
		num(name+"(long, long)", doc, func(_ System, _ *script.Thread, a *script.Args) int64 {
			if fn(of(a.Int[0]), of(a.Int[1])) {
				return 1
			}
			return 0
		})
	}
	compare("fp_eq", "whether they are equal", func(x, y float64) bool { return x == y })
	compare("fp_le", "whether the first is not greater", func(x, y float64) bool { return x <= y })
	compare("fp_lt", "whether the first is less", func(x, y float64) bool { return x < y })
	num("fp_sqrt(long)", "the root of a floating point number", func(_ System, _ *script.Thread, a *script.Args) int64 {
		return int64(math.Float64bits(math.Sqrt(of(a.Int[0]))))
	})
	num("long_to_fp(long)", "an integer as a floating point number", func(_ System, _ *script.Thread, a *script.Args) int64 {
		return int64(math.Float64bits(float64(a.Int[0])))
	})
	num("fp32_to_fp64(long)", "a floating point number of 32 bits with 64", func(_ System, _ *script.Thread, a *script.Args) int64 {
		return int64(math.Float64bits(float64(math.Float32frombits(uint32(a.Int[0])))))
	})
	num("fp_to_long(long, long, long)", "a floating point number as an integer: rounded to the nearest even (0), towards 0 (1), down (2), up (3), to the nearest (4)", func(_ System, t *script.Thread, a *script.Args) int64 {
		round := []func(float64) float64{math.RoundToEven, math.Trunc, math.Floor, math.Ceil, math.Round}
		if a.Int[1] < 0 || a.Int[1] >= int64(len(round)) {
			t.Fail(a.Near, fmt.Sprintf("fp_to_long: there is no rounding %d", a.Int[1]))
		}
		v := round[a.Int[1]](of(a.Int[0]))
		switch {
		case v >= -math.MinInt64, math.IsNaN(v):
			return math.MaxInt64
		case v < math.MinInt64:
			return math.MinInt64
		}
		return int64(v)
	})
}
