package page_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab"
	"kprobelab/internal/bounded"
	"kprobelab/internal/page"
)

// watched is a machine as the page drives it.
type watched struct {
	t        require.TestingT
	p        *page.Page
	scenario map[string]any
	page.View
}

func watch(t require.TestingT, scenario map[string]any) *watched {
	w := &watched{t: t, p: &page.Page{}, scenario: scenario}
	w.View.Sub = -1
	w.ask(nil)
	return w
}

func (w *watched) ask(move map[string]any) {
	q := map[string]any{"do": "watch", "schedule": w.Schedule, "sub": w.Sub}
	maps.Copy(q, w.scenario)
	maps.Copy(q, move)
	w.View = page.View{}
	ask(w.t, w.p, q, nil, &w.View)
}

func (w *watched) forward(who, by string) {
	w.ask(map[string]any{"move": "forward", "who": who, "by": by})
}

func (w *watched) back(by string) { w.ask(map[string]any{"move": "back", "by": by}) }

// event is the one that is shown.
func (w *watched) event() string {
	if w.Sub < 0 {
		return ""
	}
	return w.Events[w.Sub].Text
}

// code is a part of the code, by its kind.
func (w *watched) code(kind string) *page.Code {
	for i := range w.Code {
		if w.Code[i].Kind == kind {
			return &w.Code[i]
		}
	}
	return nil
}

func one(probes, calls string) map[string]any {
	return map[string]any{"probes": probes, "calls": calls}
}

// The events of a hit equal the lines that --steps prints.
func TestAHitByTheProtocolsSteps(t *testing.T) {
	w := watch(t, one("kprobe strlen+0x5 post", `strlen("hello")`))
	require.Equal(t, "register", w.Module)
	w.forward("m", "protocol")
	var texts []string
	for w.forward("a", "protocol"); w.Sub >= 0; w.forward("a", "protocol") {
		texts = append(texts, w.event())
	}
	require.Equal(t, []string{
		"int3 at the probed address; ip is one past it", "pre handler", "resume at the copy in the slot, interrupts off",
		"int3 after the copy: move ip back to the original code", "post handler; ip is at the next instruction", "resume the probed code",
	}, texts)
	require.Equal(t, "has returned 5", w.CPUs[0].State)
	require.Equal(t, 1, w.Probes[0].Hits)
	require.False(t, w.CPUs[0].Can)

	w.back("protocol")
	require.Equal(t, "resume the probed code", w.event())
	w.back("protocol")
	require.Equal(t, "post handler; ip is at the next instruction", w.event())
}

// Changes are marked, forwards and backwards alike.
func TestChangedBytesAndRegistersAreMarked(t *testing.T) {
	w := watch(t, one("kprobe strlen+0x5", `strlen("hello")`))
	w.forward("m", "instruction")
	cell := func() page.Cell { return w.code("function").Rows[1].Bytes[0] }
	for _, row := range w.code("function").Rows {
		if row.Probe {
			require.Equal(t, page.Cell{Value: "cc", Poked: true, Changed: true}, row.Bytes[0])
			require.Equal(t, "int3", row.Text)
			require.NotEmpty(t, row.Was)
		}
	}
	w.forward("a", "instruction")
	require.False(t, cell().Changed)
	w.forward("a", "instruction")
	var changed []string
	for _, r := range w.CPUs[0].Regs {
		if r.Changed {
			changed = append(changed, r.Name)
		}
	}
	require.Contains(t, changed, "ip")
	forwards := w.View
	w.forward("a", "instruction")
	w.back("instruction")
	forwards.Events, w.View.Events = nil, nil
	require.Equal(t, forwards, w.View)
}

// Back restores the whole state, and what is counted.
func TestStepsBackRestoreTheState(t *testing.T) {
	scenarios := []map[string]any{
		one("kprobe gcd+0x5\nkprobe gcd post", "gcd(12, 18)\ngcd(7, 21)"),
		one("kretprobe fib:2\nkprobe leaf goto leaf2", "fib(5)\nleaf(1); outer(2)"),
		one("kprobe racy_inc\nkretprobe locked_inc", "racy_inc(3)\nlocked_inc(2); racy_inc(1)\nslow_call(1, 50)"),
	}
	rapid.Check(t, func(t *rapid.T) {
		w := watch(t, rapid.SampledFrom(scenarios).Draw(t, "scenario"))
		var hashes []string
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			who := rapid.SampledFrom([]string{"m", "w", "a", "b", "a", "b"}).Draw(t, "who")
			hash := w.Hash
			if w.forward(who, "instruction"); w.Moved {
				hashes = append(hashes, hash)
			}
		}
		for len(hashes) > 0 {
			w.back("instruction")
			require.True(t, w.Moved)
			require.Equal(t, hashes[len(hashes)-1], w.Hash)
			hashes = hashes[:len(hashes)-1]
		}
		require.Empty(t, w.Schedule)
	})
}

// The same address is the same machine, in another page.
func TestAnAddressIsAState(t *testing.T) {
	scenario := one("kprobe gcd+0x5", "gcd(12, 18)\ngcd(7, 21)")
	w := watch(t, scenario)
	for _, who := range []string{"m", "a", "b", "a", "w", "w", "a", "a", "w", "b"} {
		w.forward(who, "instruction")
	}
	other := &watched{t: t, p: &page.Page{}, scenario: scenario, View: page.View{Schedule: w.Schedule, Sub: w.Sub}}
	other.ask(nil)
	require.Equal(t, w.Hash, other.Hash)
	require.Equal(t, w.CPUs, other.CPUs)
}

// An address whose steps end half-way leaves nothing of itself.
func TestAfterAnAddressThatEndsHalfWay(t *testing.T) {
	const question = `{"do":"watch","calls":"gcd(12, 18)","probes":"kprobe gcd+0x5","sub":-1,"schedule":"`
	other, p := &page.Page{}, &page.Page{}
	want := other.Answer(question+`ma4"}`, nil)
	require.Contains(t, complaint(t, p, question+`ma4m2"}`, nil), "not one that the page has made")
	require.Equal(t, want, p.Answer(question+`ma4"}`, nil))
}

// A machine runs the functions of the image that is open, by its own rules or others.
func TestAMachineOfTheOpenImage(t *testing.T) {
	p := &page.Page{}
	var o page.Opened
	ask(t, p, map[string]any{"do": "open", "name": "mine.elf"}, kprobelab.GuestELF(), &o)
	for _, release := range []string{"", "4.4"} {
		scenario := one("kprobe gcd+0x5", "gcd(12, 18)")
		scenario["image"], scenario["release"] = "mine.elf", release
		w := &watched{t: t, p: p, scenario: scenario, View: page.View{Sub: -1}}
		w.forward("m", "instruction")
		for w.CPUs[0].Can {
			w.forward("a", "protocol")
		}
		require.Equal(t, "has returned 6", w.CPUs[0].State)
		require.Equal(t, 1, w.Probes[0].Hits)
	}
}

// A poke is seen by a CPU when it synchronizes, and the worker waits for tasks.
func TestTheJumpIsWrittenInThreeSteps(t *testing.T) {
	w := watch(t, one("kprobe opt_yes", "opt_yes(1)\nopt_yes(2)"))
	w.forward("m", "protocol")
	original := w.CPUs[0].Fetch[0].Insn
	require.Equal(t, "int3", original)
	seen := map[string]bool{}
	for w.forward("w", "protocol"); w.Moved; w.forward("w", "protocol") {
		for _, c := range w.CPUs {
			if c.Fetch[0].Old {
				seen[w.event()] = true
			}
		}
		if w.event() == "write the tail, A+1 to A+4, after the int3" {
			row := w.code("function").Rows[0]
			require.Equal(t, "cc", row.Bytes[0].Value)
			require.True(t, row.Bytes[1].Changed)
		}
	}
	require.Equal(t, map[string]bool{
		"write the tail, A+1 to A+4, after the int3":                   true,
		"write the first byte over the int3: the instruction is whole": true,
	}, seen)
	require.Equal(t, "a jump to its detour buffer", w.Probes[0].State)
	require.NotNil(t, w.code("detour"))
	for range 200 {
		w.forward("a", "instruction")
	}
	require.Equal(t, "has returned 10", w.CPUs[0].State)
}

// At an ftrace site the no-operation becomes a call, at an instruction's beginning; only a jump
// covers the next instructions.
func TestACallIsNotTheInsideOfAJump(t *testing.T) {
	w := watch(t, one("kretprobe sys_open:1", `sys_open("/etc/passwd", 0, 0)`))
	w.forward("m", "instruction")
	row := w.code("function").Rows[0]
	require.True(t, row.Probe)
	require.Equal(t, "e8", row.Bytes[0].Value)
	require.True(t, strings.HasPrefix(row.Text, "call"), row.Text)

	w = watch(t, one("kprobe opt_yes", "opt_yes(1)"))
	w.forward("m", "instruction")
	for w.Worker {
		w.forward("w", "instruction")
	}
	rows := w.code("function").Rows
	require.True(t, strings.HasPrefix(rows[0].Text, "jmp"), rows[0].Text)
	require.Equal(t, "(inside of the jump)", rows[1].Text)
}

// register_kprobe queues the probe; the worker comes later.
func TestTheModuleDoesWhatRegistrationDoes(t *testing.T) {
	w := watch(t, one("kprobe opt_yes", "opt_yes(1)"))
	doers := func() (list []string) {
		for _, e := range w.Events {
			list = append(list, e.Who)
		}
		return list
	}
	w.forward("m", "protocol")
	require.Equal(t, []string{"module", "module"}, doers())
	w.forward("w", "protocol")
	require.Equal(t, []string{"worker"}, doers())
}

// Between two events of CPU 0's step, CPU 1 is stepped.
func TestWhoIsAskedToStepSteps(t *testing.T) {
	w := watch(t, one("kprobe gcd+0x5", "gcd(12, 18)\ngcd(7, 21)"))
	w.forward("m", "instruction")
	w.forward("a", "protocol")
	require.Greater(t, len(w.Events), 1)
	require.Equal(t, 0, w.Sub)
	w.forward("b", "protocol")
	require.Equal(t, "ma2b2", w.Schedule)
	require.Equal(t, "CPU 1", w.Events[w.Sub].Who)
}

// The order in which everybody steps in turn depends on the steps taken alone, so that a demonstration
// can be given twice.
func TestEverybodyInTurnIsTheSameEachTime(t *testing.T) {
	w := watch(t, one("kprobe gcd+0x5", "gcd(12, 18)\ngcd(7, 21)"))
	play := func() string {
		w.Schedule, w.Sub = "", -1
		w.ask(nil)
		for w.Next != "" {
			w.forward("", "protocol")
			require.True(t, w.Moved)
		}
		return w.Schedule
	}
	first := play()
	require.Equal(t, first, play())
	require.Equal(t, "has returned 6", w.CPUs[0].State)
	require.Equal(t, "has returned 7", w.CPUs[1].State)
	w.forward("", "protocol")
	require.False(t, w.Moved, "nobody can step")
	// The lead comes first, an instruction where it says one.
	w.scenario["lead"], w.Schedule, w.Sub = "ab2m", "", -1
	for range 5 {
		w.forward("", "protocol")
	}
	require.True(t, strings.HasPrefix(w.Schedule, "ab2m"), w.Schedule)
}

// By Forward alone, what a scenario is named for happens.
func TestScenariosShowWhatTheirNamesSay(t *testing.T) {
	var h page.Hello
	ask(t, &page.Page{}, map[string]any{"do": "hello"}, nil, &h)
	happens := map[string]string{
		"an int3 and a step":          "resume at the copy in the slot",
		"two CPUs, one probe":         "CPU 1: pre handler",
		"a return probe":              "the real return address is restored",
		"a jump in place of the int3": "CPU 1: the jump at the probed address led to the detour buffer",
		"a jump, written carelessly":  "This is an oops.",
		"a handler that changes ip":   "the trampoline returns to where it left ip",
	}
	require.Len(t, h.Scenarios, len(happens))
	for _, s := range h.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			w := watch(t, map[string]any{"probes": s.Probes, "calls": s.Calls, "careless": s.Careless, "release": "6.1", "lead": s.Lead})
			var said strings.Builder
			for range 100 {
				if w.forward("", "protocol"); !w.Moved {
					break
				}
				if fmt.Fprintln(&said, w.Did); w.Sub >= 0 {
					fmt.Fprintf(&said, "%s: %s\n", w.Events[w.Sub].Who, w.event())
				}
			}
			require.True(t, strings.HasPrefix(w.Schedule, s.Lead), w.Schedule)
			require.Empty(t, w.Next, "it comes to its end")
			require.NotEmpty(t, happens[s.Name])
			require.Contains(t, said.String(), happens[s.Name])
		})
	}
}

// The call that comes before the registration needs fewer steps: the rest is left out, and named.
func TestAnOrderThatNeedsFewerSteps(t *testing.T) {
	w := watch(t, one("kprobe gcd+0x5", "gcd(12, 18)"))
	w.forward("m", "instruction")
	for w.CPUs[0].Can {
		w.forward("a", "instruction")
	}
	n := w.Steps - 1
	schedule := fmt.Sprintf(`{"do":"watch","probes":"kprobe gcd+0x5","calls":"gcd(12, 18)","sub":-1,"schedule":"a%dm"`, n)
	require.Contains(t, complaint(t, w.p, schedule+`}`, nil), "not one that the page has made")
	w.Schedule = fmt.Sprintf("a%dm", n)
	w.ask(map[string]any{"loose": true})
	require.Equal(t, "has returned 6", w.CPUs[0].State)
	require.Equal(t, "unregister", w.Module)
	require.Len(t, w.Left, 1)
	require.Equal(t, page.Left{At: w.Steps - 1, Who: "a", N: n - (w.Steps - 1)}, w.Left[0], "the rest of CPU 0, before the module")
	at := w.Schedule
	w.ask(nil)
	require.Equal(t, at, w.Schedule)
	require.Empty(t, w.Left)
}

// What a lane says while a handler runs.
func TestLanesDuringAHandler(t *testing.T) {
	w := watch(t, one("kprobe strlen+0x5\nkprobe strlen+0x5 post", `strlen("hello")`))
	w.forward("m", "instruction")
	require.Len(t, w.CPUs[0].Fetch, 1, "one place, once")
	var handlers []string
	for w.forward("a", "protocol"); w.Sub >= 0; w.forward("a", "protocol") {
		if strings.Contains(w.event(), "): ") {
			handlers = append(handlers, w.event())
			require.True(t, w.CPUs[0].Frame)
		}
		if w.CPUs[0].Where == "strlen+0x6" {
			require.Empty(t, w.CPUs[0].Insn, "no instruction begins inside of the probed one")
		}
		if strings.HasPrefix(w.event(), "int3 after the copy") {
			rows := w.code("slot").Rows
			require.Equal(t, []string{"CPU 0 (+1)"}, rows[len(rows)-1].CPUs)
		}
	}
	require.Equal(t, []string{
		"probe 2 (kprobe strlen+0x5 post): pre handler", "probe 1 (kprobe strlen+0x5): pre handler",
		"probe 2 (kprobe strlen+0x5 post): post handler; ip is at the next instruction",
	}, handlers)
}

// A step without events has a sentence that says what ran and how it ended.
func TestWhatAStepWithoutEventsDid(t *testing.T) {
	w := watch(t, one("kprobe strlen+0x5", `strlen("hello")`))
	require.Empty(t, w.Did)
	w.forward("m", "protocol")
	w.forward("a", "instruction")
	require.Regexp(t, `^CPU 0 executed nopl .* at strlen\.$`, w.Did)
	for w.CPUs[0].Can {
		w.forward("a", "protocol")
	}
	require.Regexp(t, `^CPU 0 ran \d\d instructions and returned 5\.$`, w.Did)

	w = watch(t, map[string]any{"probes": "kprobe opt_yes", "calls": "opt_yes(1)", "careless": true})
	for _, who := range []string{"a", "m", "w", "w"} {
		w.forward(who, "instruction")
	}
	for w.CPUs[0].Can {
		w.forward("a", "instruction")
	}
	require.Regexp(t, `^CPU 0 executed 00 3f at opt_yes.0x3, the inside of the jump.*oops`, w.Did)

	w = watch(t, one("kprobe gcd+0x5\nkprobe gcd+0x6", "gcd(12, 18)"))
	w.forward("m", "instruction")
	require.Equal(t, "the module has registered 1 of 2 probes; kprobe gcd+0x6 is refused, EILSEQ", w.Events[len(w.Events)-1].Text)
}

func TestHitsOfAJprobeAreCounted(t *testing.T) {
	w := watch(t, map[string]any{"probes": "jprobe sys_open jsys_open", "calls": `sys_open("/etc/passwd", 0, 0)`, "release": "4.4"})
	w.forward("m", "protocol")
	for w.CPUs[0].Can {
		w.forward("a", "protocol")
	}
	require.Equal(t, 1, w.Probes[0].Hits)
	w.ask(nil)
	require.Equal(t, 1, w.Probes[0].Hits, "after a replay, too")
}

// Two probes at one address have one slot and one detour buffer: each is shown once.
func TestSharedMadeCodeIsShownOnce(t *testing.T) {
	w := watch(t, one("kprobe gcd+0x5\nkprobe gcd+0x5 post", "gcd(12, 18)"))
	w.forward("m", "instruction")
	require.NotNil(t, w.code("slot"))
	seen := map[string]int{}
	for _, c := range w.Code {
		seen[c.Address]++
	}
	for address, n := range seen {
		require.Equal(t, 1, n, address)
	}
	require.NotEmpty(t, w.Strips[0].Slot)
}

// Code that kprobes makes is marked when it appears: a slot at the registration, a
// detour buffer with it or later; for a return probe, too.
func TestMadeCodeIsShown(t *testing.T) {
	for _, probe := range []string{"kprobe opt_yes", "kretprobe opt_yes"} {
		t.Run(probe, func(t *testing.T) {
			w := watch(t, one(probe, "opt_yes(1)"))
			require.Nil(t, w.code("slot"))
			seen := map[string]bool{}
			for _, who := range strings.Split("m"+strings.Repeat("w", 15), "") {
				w.forward(who, "instruction")
				for _, kind := range []string{"slot", "detour"} {
					c := w.code(kind)
					require.True(t, c != nil || !seen[kind], "%s is gone", kind)
					if c != nil {
						require.Equal(t, !seen[kind], c.Rows[0].Bytes[0].Changed, kind)
						seen[kind] = true
					}
				}
			}
			require.Equal(t, map[string]bool{"slot": true, "detour": true}, seen)
			require.Equal(t, "a jump to its detour buffer", w.Probes[0].State)
		})
	}
}

// Without the wait, a CPU in the middle of the bytes executes a part of the jump.
func TestACarelessJumpBreaksACPU(t *testing.T) {
	run := func(careless bool) page.View {
		w := watch(t, map[string]any{"probes": "kprobe opt_yes", "calls": "opt_yes(1)", "careless": careless})
		w.forward("a", "instruction") // past the first instruction of the region
		w.forward("m", "instruction")
		for range 30 {
			w.forward("w", "instruction")
		}
		for range 200 {
			w.forward("a", "instruction")
		}
		return w.View
	}
	require.Equal(t, "has returned 10", run(false).CPUs[0].State)
	require.NotEqual(t, "has returned 10", run(true).CPUs[0].State)
}

func TestWhatCannotBeWatched(t *testing.T) {
	for name, c := range map[string]struct{ question, says string }{
		"no_calls":       {`"probes":"kprobe gcd"`, "nothing is called"},
		"no_probe":       {`"probes":"gcd","calls":"gcd(1,2)"`, "is no probe"},
		"bad_offset":     {`"probes":"kprobe gcd+x","calls":"gcd(1,2)"`, "not a number of 32 bits"},
		"bad_word":       {`"probes":"kprobe gcd pre","calls":"gcd(1,2)"`, "pre is not understood"},
		"goto_nowhere":   {`"probes":"kprobe gcd goto nosuch","calls":"gcd(1,2)"`, "nosuch"},
		"no_symbol":      {`"probes":"kprobe nosuch","calls":"gcd(1,2)"`, "nosuch"},
		"no_function":    {`"calls":"nosuch(1)"`, "nosuch"},
		"no_call":        {`"calls":"gcd("`, "column 5"},
		"many_calls":     {`"calls":"` + strings.Repeat(`gcd(1,2)\n`, 5) + `"`, "at most 4 CPUs"},
		"many_probes":    {`"calls":"gcd(1,2)","probes":"` + strings.Repeat(`kprobe gcd\n`, 9) + `"`, "at most 8"},
		"no_release":     {`"calls":"gcd(1,2)","release":"x"`, `no release "x"`},
		"no_image":       {`"calls":"gcd(1,2)","image":"vmlinuz"`, "not open here"},
		"bad_schedule":   {`"calls":"gcd(1,2)","schedule":"x3"`, "not one that the page has made"},
		"other_cpu":      {`"calls":"gcd(1,2)","schedule":"b"`, "not one that the page has made"},
		"zero_steps":     {`"calls":"gcd(1,2)","schedule":"a0"`, "not one that the page has made"},
		"too_long":       {`"calls":"gcd(1,2)","schedule":"a4000a4000"`, "5000 steps"},
		"past_the_end":   {`"calls":"gcd(1,2)","schedule":"a4000"`, "not one that the page has made"},
		"no_such_moment": {`"calls":"gcd(1,2)","sub":5`, "not one that the page has made"},
		"no_such_move":   {`"calls":"gcd(1,2)","sub":-1,"move":"up"`, "not one that the page has made"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, complaint(t, &page.Page{}, `{"do":"watch",`+c.question+`}`, nil), c.says)
		})
	}
	// Input just within the bounds is accepted.
	watch(t, one("", strings.Repeat("gcd(1,2)\n", bounded.PageCPUs)))
	watch(t, one(strings.Repeat("kprobe gcd\n", bounded.PageProbes), "gcd(1,2)"))
	require.Contains(t, complaint(t, &page.Page{}, fmt.Sprintf(`{"do":"watch","calls":"gcd(1,2)","probes":"%s"}`, strings.Repeat(`kprobe gcd\n`, bounded.PageProbes+1)), nil), "at most 8")
	require.Contains(t, complaint(t, &page.Page{}, fmt.Sprintf(`{"do":"watch","calls":"%s"}`, strings.Repeat(`gcd(1,2)\n`, bounded.PageCPUs+1)), nil), "at most 4 CPUs")
}

// A call that does not end stops at the limit of steps, and says so.
func TestARunawayStops(t *testing.T) {
	w := watch(t, one("", "runaway()"))
	w.forward("a", "protocol")
	require.Equal(t, bounded.PageSteps, w.Steps)
	require.Contains(t, complaint(t, w.p, `{"do":"watch","calls":"runaway()","schedule":"a5000","sub":-1,"move":"forward","who":"a"}`, nil), "5000 steps")
}

func BenchmarkNewMachine(b *testing.B) {
	for b.Loop() {
		watch(b, one("kprobe gcd+0x5", "gcd(12, 18)"))
	}
}
