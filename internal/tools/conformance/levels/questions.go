//go:build unicorn && cgo && linux && amd64

package levels

import (
	"strings"

	"kprobelab/internal/tools/conformance/asked"
)

// field is a field that booted kernels are asked about, and the values it can have.
type field struct {
	name   string
	values []string
}

var yesNo = []string{"false", "true"}

// fields lists the fields whose values the uses of files can show.
var fields = []field{
	{"Tracing.ErrorLog", yesNo},
	{"Tracing.ErrorCommandMax", []string{"0", "256"}},
	{"Tracing.Misspelled", yesNo},
	{"Tracing.DynamicEvents", yesNo},
	{"Tracing.Append", yesNo},
	{"Tracing.MatchCut", yesNo},
	{"Tracing.RawCommand", yesNo},
	{"Tracing.AutoNames", yesNo},
	{"Tracing.GroupHyphen", yesNo},
	{"Tracing.LongEventName", yesNo},
	{"Tracing.MaxActive", yesNo},
	{"Tracing.ReturnSuffix", yesNo},
	{"Tracing.UniqueSymbols", yesNo},
	{"Tracing.UniqueFirst", yesNo},
	{"Tracing.RefuseOpenEnd", yesNo},
	{"Tracing.FilterFunctions", yesNo},
	{"Tracing.FilterCPUSets", yesNo},
	{"Tracing.FilterStack", yesNo},
	{"Tracing.Types", []string{"Types44", "Types49", "Types58", "Types61", "Types612"}},
	{"Tracing.CommFetch", yesNo},
	{"Tracing.ArgFetch", yesNo},
	{"Tracing.CommUpper", yesNo},
	{"Tracing.LoneQuote", yesNo},
	{"Tracing.RefusesNotrace", yesNo},
	{"Tracing.BoundaryEINVAL", yesNo},
	{"Tracing.UnknownSymbolZero", yesNo},
	{"Tracing.BTFArgs", yesNo},
	{"Tracing.ExitArgs", yesNo},
	{"Tracing.StarRefused", yesNo},
	{"Tracing.ArgZero", yesNo},
	{"Tracing.CountArgs", yesNo},
	{"Tracing.CountArgsLogged", yesNo},
	{"Tracing.MaxArgText", []string{"63", "255"}},
	{"Tracing.LongArgE2BIG", yesNo},
	{"Tracing.NoTypeLogged", yesNo},
	{"Tracing.StringTypeLogged", yesNo},
	{"Tracing.MaxRecord", []string{"0", "3072"}},
	{"Tracing.EventCasts", yesNo},
	{"Tracing.Typecasts", yesNo},
	{"Tracing.BareArrays", yesNo},
	{"Tracing.BootClock", yesNo},
	{"Tracing.TAIClock", yesNo},
	{"Tracing.SanitizeStar", yesNo},
}

// nested is a fetch expression longer than what a name is compared with.
const nested = "abcdefghijklmnopqrstuvwxyz345=+8(+8(+8(+8(+8(+8(+8(+8(%di)))))))):u64"

// definitions are written one by one, each to a kprobe_events that is empty.
var definitions = []string{
	"p:k/a vfs_read $nosuch", "p:k/a vfs_read $arg0", "p:k/a vfs_read $arg00", "r:k/a vfs_read $arg0", "p:k/a vfs_read a=$arg0", "p:k/a vfs_read a=$arg0:u8", "p:k/a vfs_read +0($arg0)", "p:k/a vfs_read a=$arg0->f_pos", "p:k/a vfs_read+5 $arg0", "p:k/a exc_int3 $arg0", "p:k/a vfs_read $arg129", "p:k/a vfs_read $arg5", "p:k/a vfs_read $arg4", "p:k/a vfs_read $argx", "p:k/a vfs_read $arg1x", "p:k/a vfs_read $arg-1", "p:k/a vfs_read $arg0x", "r:k/a exc_int3 $arg0", "p:k/a vfs_read a=$arg1",
	"p:a-b/c vfs_read", "p:a.b/c vfs_read", "p:k/ vfs_read", "p:k. vfs_read", "p:k/" + strings.Repeat("y", 63) + " vfs_read", "p:k/" + strings.Repeat("y", 64) + " vfs_read",
	"r10:k/a vfs_read", "r4097:k/a vfs_read", "p:k/a vfs_read%return", "p:k/a vfs_read+0%return", "p:k/a vfs_read+99999%return",
	"p:k/a name_show", "r:k/a name_show", "r:k/a name_show+1", "p:k/a nosuch_sym", "r:k/a nosuch_sym", "r:k/a nosuch_sym+4", "p:k/a nosuch_mod:vfs_read", "r:k/a nosuch_mod:vfs_read $arg*",
	"p:k/a exc_int3", "p:k/a vfs_read+1", "p:k/a vfs_read+99999",
	"p:k/a vfs_read a=%di:x32", "p:k/a vfs_read a=%di:symbol", "p:k/a vfs_read a=%di:symstr", "p:k/a vfs_read a=%di:char", "p:k/a vfs_read a=%di:ustring",
	"p:k/a vfs_read a=$comm", "p:k/a vfs_read a=$COMM", "p:k/a vfs_read a=$comm:u8", "p:k/a vfs_read a=$comm:string[4]",
	`p:k/a vfs_read a=\"`, `p:k/a vfs_read a=\""`, `p:k/a vfs_read a=\1`, `p:k/a vfs_read a=\"open`,
	"p:k/a vfs_read a=@nosuch_sym", "p:k/a vfs_read a=@jiffies", "p:k/a vfs_read count", "p:k/a vfs_read a=count b=buf", "p:k/a vfs_read a=nosuch",
	"r:k/a vfs_read count", "r:k/a vfs_read $arg*", "p:k/a vfs_read $arg*", "p:k/a vfs_read+5 $arg*", "p:k/a exc_int3 $arg*", "p:k/a name_show $arg*",
	"p:k/a vfs_read" + strings.Repeat(" %di", 128), "p:k/a vfs_read" + strings.Repeat(" %di", 129), "p:k/a vfs_read" + strings.Repeat(" +0(%di):u64[64]", 8),
	"p:k/a vfs_read" + strings.Repeat(" +0(%di):u64[64]", 5), "p:k/a vfs_read" + strings.Repeat(" +0(%di):u64[64]", 6), "p:k/a vfs_read a=%di" + strings.Repeat(" %ax", 60) + " b=$nosuch",
	"p:k/a vfs_read a=" + strings.Repeat("+8(", 20) + "%di" + strings.Repeat(")", 20), "p:k/a vfs_read a=" + strings.Repeat("+8(", 9) + "%di" + strings.Repeat(")", 9),
	"p:k/a vfs_read a=\\\"" + strings.Repeat("t", 70) + "\"", "p:k/a vfs_read a=@" + strings.Repeat("n", 70),
	"p:k/a vfs_read a=$current", "p:k/a vfs_read a=(file)file->f_pos", "p:k/a vfs_read a=this_cpu_read(jiffies)", "p:k/a vfs_read a=(struct file)%di",
	"p:k/a vfs_read a=+0(%di):u8[4] b=%di:b3@2/8", "p:k/a vfs_read a=+u0(%si):string", "p:k/a ip_rcv skb->ip_summed skb->pkt_type skb->cloned skb->len", "p:k/a wake_up_new_task p->in_execve p->sched_migrated p->pid", "p:k/a wake_up_new_task a=p->sched_reset_on_fork:u8 b=p->in_iowait:b1@0/8 c=p->exit_code", "p:k/a tcp_ack a=sk->sk_userlocks b=sk->sk_type", "p:k/a tcp_ack a=sk->sk_no_check_tx b=sk->sk_protocol c=sk->sk_err", "p:k/a vfs_read a=file->f_mode b=file->f_flags c=ret d=pos", "p:k/a wake_up_new_task a=p->comm b=p->comm:string c=p->mm d=p->__state e=p->prio",
	"p vfs_read*", "p:k/a vfs_r*", "p vfs_read", " p:k/a vfs_read", "-:nosuch", " -:nosuch", "-:nosuch/", "x:k/a vfs_read", "f:k/a vfs_*", "f vfs_rea*",
}

// filters are written to the filters of an event and of a return probe's.
var filters = []string{
	"n > 7", "n > 7 &&", "n > 7 ||", "n > 7 && !", "!", "n > 7 && (", "COMM == init", "comm == init", "n", "n == ", "s ~ \"a*\"", "!(n > 7)", "n == 07", "n & -1",
	"__probe_ip.function == vfs_read", "__probe_ip.function != vfs_read", "__probe_ip.function == \"vfs_read\"", "__probe_ip.function == 'vfs_read'",
	"__probe_ip.function == vfs_read+1", "__probe_ip.function == vfs_read+0x1", "__probe_ip.function == nosuch_sym", "__probe_ip.function > vfs_read",
	"__probe_ip.function & vfs_read", "__probe_ip.function ~ vfs_read", "__probe_ip.function == 0xffffffff81000000", "__probe_ip.function == 1", "__probe_ip.function == 0x",
	"__probe_ip.function", "__probe_ip.function ==", "__probe_ip.func == vfs_read", "__probe_ip.functio == vfs_read", "__probe_ip.functions == vfs_read", "__probe_ip . function == vfs_read",
	"__probe_ip.function==vfs_read&&n>7", "__probe_ip.function == vfs_read || n > 7", "__probe_ip.function == vfs_read.isra.0", "__probe_ip.function == jiffies",
	"n.function == vfs_read", "s.function == vfs_read", "common_pid.function == vfs_read", "CPU.function == vfs_read", "COMM.function == vfs_read", "nosuch.function == vfs_read",
	"h.function == vfs_read", "h.ustring == \"a\"", "h.ustring == a", "h.ustring == 1", "n.ustring == \"a\"", "n.ustring == 1", "s.ustring == \"a\"", "s.ustring ~ \"a*\"", "s.ustrin == \"a\"",
	"b == 1", "b > 1", "b & 1", "t == 1", "t < 0",
	"CPU & CPUS{0}", "cpu & CPUS{0}", "cpu == CPUS{0}", "cpu != CPUS{0}", "cpu > CPUS{0}", "cpu ~ CPUS{0}", "common_cpu & CPUS{0}", "CPU & CPUS{0,2-3}", "CPU & CPUS{}", "CPU & CPUS{x}", "CPU & CPUS{0",
	"CPU & CPUS{0} && n > 7", "CPU & CPUS{ 0 }", "CPU & CPUS {0}", "CPU & cpus{0}", "CPU & CPUS{99999}", "CPU & CPUS{1-0}", "CPU & CPUS{0-1:1/2}", "CPU & CPUS{all}", "CPU & CPUS{N}", "CPU&CPUS{0}||!(CPU&CPUS{1})", "CPU & {0}", "CPU & CPUS", "!CPU & CPUS{0}",
	"n & CPUS{0}", "n == CPUS{0}", "n < CPUS{0}", "h & CPUS{0}", "s & CPUS{0}", "COMM & CPUS{0}", "common_pid & CPUS{0}", "stacktrace & CPUS{0}", "t & CPUS{0}", "b & CPUS{0}", "arr & CPUS{0}",
	"stacktrace == 1", "stacktrace > 1", "stacktrace ~ \"a\"", "stacktrace", "common_stacktrace == 1", "common_stacktrace ~ \"a\"", "STACKTRACE == 1", "stacktrace == \"a\"", "!stacktrace == 1", "common_cpu == 1", "CPU == 1", "cpu == 1",
	"arr == 1", "arr ~ \"a\"", "common_flags == 1", "common_preempt_count == 0", "common_type > 0", "common_nosuch == 1", "common_timestamp == 1",
	"n == 1.5", "n == 1e3", "n == 0b1", "n == \"1\"", "n == 'a'", "n = 1", "n => 1", "n >= 1", "n <> 1", "n ! 1", "n == +1", "n == --1", "n == 18446744073709551615", "n == 4294967296", "h == 18446744073709551616",
	"s == a*", "s == \"a*\"", "s != \"*a\"", "s ~ a", "s > \"a\"", "s & \"a\"", "s == \"a\\\"b\"", "s == \"a", "COMM ~ \"*a*\"", "COMM > a", "n ~ 1", "n ~ \"1\"",
	"((n == 1))", "(n == 1", "n == 1)", "() n == 1", "n == 1 & n == 2", "n == 1 | n == 2", "n == 1 n == 2", "n == 1 && && n == 2", "n == 1 && || n == 2", "!!(n == 1)", "! n == 1", "", " ", "0", "1", "n == 1;", "n == 1 # c",
	"none", "m == 1",
}

// returnFilters are written to the filter of a return probe's event.
var returnFilters = []string{
	"__probe_func.function == vfs_read", "__probe_ret_ip.function == vfs_read", "__probe_ret_ip.function != ksys_read", "__probe_func == 1", "__probe_ip == 1", "__probe_ip.function == vfs_read", "v.function == vfs_read",
}

// questions are the uses of files that all kernels are asked for.
func questions() []asked.Op {
	ops := []asked.Op{{Do: asked.Write, File: "events/enable", Text: "0"}, {Do: asked.Read, File: "trace_clock"}}
	for _, file := range []string{"kprobe_events", "dynamic_events"} {
		for _, d := range definitions {
			ops = append(ops,
				asked.Op{Do: asked.Write, File: "kprobe_events"},
				asked.Op{Do: asked.Write, File: "error_log"},
				asked.Op{Do: asked.Append, File: file, Text: d + "\n"},
				asked.Op{Do: asked.Read, File: "error_log"},
				asked.Op{Do: asked.Read, File: "kprobe_events"})
			if strings.HasPrefix(d, "p:k/a ") {
				ops = append(ops, asked.Op{Do: asked.Read, File: "events/k/a/format"})
			}
		}
	}
	ops = append(ops, asked.Op{Do: asked.Write, File: "kprobe_events"})
	for _, again := range []string{"p:k/d vfs_write", "p:k/d vfs_read a=%si:u32", "-:k/d vfs_read " + nested, "-:k/d vfs_read", "-:k/d vfs_write", "-:k/"} {
		ops = append(ops,
			asked.Op{Do: asked.Write, File: "kprobe_events"},
			asked.Op{Do: asked.Append, File: "kprobe_events", Text: "p:k/d vfs_read " + nested + "\n"},
			asked.Op{Do: asked.Append, File: "kprobe_events", Text: again + "\n"},
			asked.Op{Do: asked.Read, File: "kprobe_events"})
	}
	ops = append(ops, asked.Op{Do: asked.Write, File: "kprobe_events"},
		asked.Op{Do: asked.Append, File: "kprobe_events", Text: "p:k/e vfs_read n=%dx:u32 s=$comm h=%di:u64 t=%dx:s8 b=%dx:b3@2/8 arr=+0(%si):u8[4]\nr:k/f vfs_read v=$retval:u64\n"})
	for event, list := range [][]string{filters, returnFilters} {
		file := "events/k/" + string("ef"[event]) + "/filter"
		for _, f := range list {
			ops = append(ops,
				asked.Op{Do: asked.Write, File: "error_log"},
				asked.Op{Do: asked.Append, File: file, Text: f},
				asked.Op{Do: asked.Read, File: file},
				asked.Op{Do: asked.Read, File: "error_log"})
		}
	}
	ops = append(ops, users()...)
	return append(ops, asked.Op{Do: asked.Append, File: "events/k/e/filter", Text: "0"}, asked.Op{Do: asked.Write, File: "kprobe_events"})
}

// users are definitions of probes in a program, which the kernel's own first process is.
func users() (ops []asked.Op) {
	for _, d := range []string{"a=%di:symbol", "a=%di:symstr", "a=%di:char", "a=@+0:string", "a=@+0x10:x64", "a=$arg1", "a=$comm", "a=$COMM", `a=\"`, "a=@jiffies", "$nosuch", "$arg0", "count", "$arg*", "a=$stack0 b=$retval"} {
		ops = append(ops,
			asked.Op{Do: asked.Write, File: "uprobe_events"},
			asked.Op{Do: asked.Write, File: "error_log"},
			asked.Op{Do: asked.Append, File: "uprobe_events", Text: "p:u/a /init:0x1000 " + d + "\n"},
			asked.Op{Do: asked.Read, File: "error_log"},
			asked.Op{Do: asked.Read, File: "uprobe_events"})
	}
	return append(ops, asked.Op{Do: asked.Write, File: "uprobe_events"})
}
