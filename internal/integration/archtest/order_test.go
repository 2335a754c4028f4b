package archtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// order is the import order: a package may import, directly or through others,
// only packages of the lines above its own. RATIONALE.md says why.
var order = [][]string{
	{"x86", "errno"},
	{"profile", "watch/registers"},
	{"kprobes/rule"},
	{"decoder"},
	{"decoder/compare", "decoder/view"},
	{"kimage/vmcore", "kimage/btf", "kimage/evidence", "kimage/internal/opened"},
	{"kimage/internal/infer", "kimage/internal/patch", "kimage/internal/processor", "kimage/internal/structures"},
	{"kimage"},
	{"kprobes/pool", "kprobes/slot", "kprobes/textpoke", "uprobes", "watch"},
	{"optimizer"},
	{"kprobes/probepoint"},
	{"internal/tracing/definition"},
	{"internal/tracing/definition/ofimage"},
	{"kprobes/hazard"},
	{"internal/report", "kprobes"},
	{"internal/script/attach", "internal/debuginfo"},
	{"internal/tracing/event", "internal/tracing/ring", "internal/archive"},
	{"internal/tracing/fetch"},
	{"internal/tracing/filter"},
	{"internal/tracing/trigger"},
	{"tracing"},
	{"booted"},
	{"bpf/losses"},
	{"kprobelab", "kernels"},
	{"kernels/bisect"},
	{"bpf"},
	{"internal/session", "internal/perfetto", "internal/film"},
	{"script", "boot", "internal/explore"},
	{"run"},
	{"internal/mount", "run/matrix"},
	{"kprobestest", "internal/bench", "internal/page", "doctor", "shard/merge"},
	{"internal/offers"},
	{"cmd/kprobelab"},
}

// alone are the packages beside the order, with all of the project that each may reach.
var alone = map[string][]string{
	"machine": {"x86", "errno", "profile", "decoder", "kimage", "internal/cpumodel"},
	"emu":     {"x86", "errno", "profile", "decoder", "kimage", "machine", "internal/pcmpstr", "internal/cpumodel", "internal/board", "internal/fromdump"},
	"interp":  {"x86", "errno", "profile", "decoder", "kimage", "machine", "internal/pcmpstr", "internal/cpumodel", "internal/board", "internal/fromdump"},
	// The machine around a booted kernel's processors, and what its dump says of it, on both engines.
	"internal/board":    {"x86"},
	"internal/fromdump": {"x86", "errno", "profile", "decoder", "kimage", "machine", "internal/cpumodel", "internal/board"},
	// An instruction that both engines compute by the same rules.
	"internal/pcmpstr": {},
	// What both engines and the machine agree on.
	"internal/contract": {"x86"},
	// The processors that both engines can be.
	"internal/cpumodel": {"x86", "errno", "profile", "decoder"},
	// Decisions as data are for implementations that know nothing of this one.
	"kprobestest/suite": {},
	"kprobestest/runs":  {},
	"internal/own":      {"x86", "errno", "profile", "decoder", "kimage", "machine", "emu", "interp", "internal/pcmpstr", "internal/cpumodel", "internal/board", "internal/fromdump"},
	// What the source says, and in what notation, is read from files alone.
	"internal/source/formula": {},
	"internal/ctype":          {},
	"internal/place":          {"x86", "errno"},
	"internal/bounded":        {},
	// The loader of BPF programs runs in a guest: it knows the answers, and nothing of ours beside.
	"bpf/answer":         {"internal/printable"},
	"bpf/contract":       {},
	"internal/bpfloader": {"bpf/answer", "bpf/contract", "internal/bounded", "internal/printable", "internal/sdt"},
	"internal/sdt":       {"internal/bounded"},
	// Shards divide lists of whatever a command has.
	"shard": {"errno", "x86"},
	// A command line and a terminal do not know kernels and probes.
	"internal/cmdline":      {},
	"internal/terminal":     {},
	"internal/tracing/word": {},
	// What a program needs is read of files alone.
	"hostfiles": {},
	// What packages have is read without a word of kernels.
	"internal/xz":          {},
	"internal/container":   {},
	"internal/unpack":      {},
	"internal/debian":      {},
	"internal/rpm":         {},
	"internal/download":    {},
	"internal/tinyarchive": {},
	"internal/source":      {"internal/source/formula", "internal/systemcall", "x86"},
	"internal/perfprobe":   {"x86", "errno", "profile"},
	// The core of script languages knows no kernel.
	"internal/script": {"x86"},
	// An instruction's text is bytes for every kernel.
	"internal/assemble": {"x86", "errno", "profile", "decoder"},
	// What languages share knows no machine.
	"internal/script/host": {"errno", "x86"},
	// SystemTap's language knows what the source says, and no machine.
	"internal/script/stap": {"errno", "x86"},
	// And so does bpftrace's.
	"internal/script/bpftrace": {"errno", "x86"},
}

func rank(name string) int {
	return slices.IndexFunc(order, func(line []string) bool { return slices.Contains(line, name) })
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range goList(t, "1") {
		mine := rank(p.ours())
		if mine < 0 {
			continue
		}
		for _, dep := range p.Deps {
			name := strings.TrimPrefix(dep, module+"/")
			if theirs := rank(name); name != dep && theirs >= mine {
				t.Errorf("%s reaches %s, which stands beside or after it in the import order", p.ours(), name)
			}
		}
	}
}

func TestPackagesBesideTheOrder(t *testing.T) {
	for _, p := range goList(t, "1") {
		may, ok := alone[p.ours()]
		if !ok {
			continue
		}
		for _, dep := range p.Deps {
			name, ours := strings.CutPrefix(dep, module+"/")
			if strings.HasPrefix(name, "kimage/") { // kimage imports it
				name = "kimage"
			}
			if ours && !strings.HasPrefix(name, "internal/") && !slices.Contains(may, name) {
				t.Errorf("%s reaches %s; it may reach only %v", p.ours(), name, may)
			}
		}
	}
}

// An engine can be chosen as long as no other package imports it.
func TestOnlyOnePackageImportsEngines(t *testing.T) {
	for _, p := range goList(t, "1") {
		if p.ours() == "" || p.ours() == "internal/engine" {
			continue
		}
		for _, e := range []string{"emu", "interp"} {
			if slices.Contains(p.Imports, module+"/"+e) {
				t.Errorf("%s imports %s; only internal/engine may", p.ours(), e)
			}
		}
	}
}

func TestEveryPackageHasAPlace(t *testing.T) {
	for _, p := range goList(t, "1") {
		name := p.ours()
		if name == "" || strings.HasPrefix(name, "internal/") {
			continue
		}
		_, beside := alone[name]
		require.True(t, beside || rank(name) >= 0, "%s has no place in the import order; give it one in order_test.go", name)
	}
}
