package losses

import (
	"kprobelab/kimage/btf"
	"kprobelab/x86"
)

// layout holds the offsets of members that a watch reads, by "structure.member".
type layout map[string]x86.Addr

// members are all that are read. Kernels lack some of them.
var members = [][]string{
	{"kprobe", "addr", "flags", "nmissed"},
	{"kretprobe", "kp", "nmissed", "maxactive"},
	{"kretprobe_instance", "rp", "rph", "node", "task"},
	{"kretprobe_holder", "rp"},
	{"rethook_node", "rethook"},
	{"rethook", "data"},
	{"optimized_kprobe", "kp"},
	{"pt_regs", "ip", "sp"},
	{"perf_event", "tp_event", "rb"},
	{"trace_event_call", "event", "name"},
	{"trace_event", "funcs"},
	{"tracepoint", "name"},
	{"trace_probe_event", "call", "probes"},
	{"trace_probe", "list"},
	{"trace_kprobe", "tp", "rp"},
	{"bpf_prog", "aux", "bpf_func", "jited_len", "expected_attach_type"},
	{"bpf_prog_aux", "id", "name", "linfo", "jited_linfo", "nr_linfo", "linfo_idx", "btf", "func_idx", "attach_func_name"},
	{"bpf_trampoline", "func"},
	{"bpf_tramp_link", "link"},
	{"bpf_tramp_node", "link"},
	{"bpf_link", "prog"},
	{"bpf_raw_tp_link", "link"},
	{"bpf_kprobe_multi_link", "fp", "link"},
	{"fprobe", "entry_handler", "exit_handler"},
	{"bpf_ringbuf_map", "rb"},
	{"bpf_ringbuf", "consumer_pos", "producer_pos", "mask", "data", "overwrite_mode"},
	{"bpf_dynptr_kern", "data"},
	{"perf_buffer", "head", "user_page", "overwrite", "lost"},
	{"perf_event_mmap_page", "data_tail"},
	{"btf", "data", "hdr", "strings", "data_size"},
	{"bpf_prog_stats", "misses"},
}

func layoutOf(types *btf.Types) layout {
	l := layout{}
	for _, m := range members {
		t, ok := types.Struct(m[0])
		if !ok {
			continue
		}
		for _, name := range m[1:] {
			if member, ok := t.Member(name); ok {
				l[m[0]+"."+name] = x86.Addr(member.Offset / 8)
			}
		}
	}
	if t, ok := types.Struct("bpf_trampoline"); ok {
		if f, ok := t.Member("func"); ok {
			if addr, ok := f.Type.Member("addr"); ok {
				l["bpf_trampoline.func.addr"] = x86.Addr(f.Offset/8 + addr.Offset/8)
			}
		}
	}
	return l
}

// has reports whether the kernel has all members.
func (l layout) has(names ...string) bool {
	for _, n := range names {
		if _, ok := l[n]; !ok {
			return false
		}
	}
	return true
}
