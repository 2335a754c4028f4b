package structures

import (
	"errors"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Timer is a high-resolution timer that is set.
type Timer struct {
	// At is the address of its struct hrtimer, Function that of the function that it calls.
	At, Function x86.Addr
}

// Timers returns the high-resolution timers that are set in the kernel's memory: the timers of
// nanosleep, alarms, timerfd and of code that waits until a time. bases are the bases of the per-CPU
// variables of each CPU.
func (k *Kernel) Timers(bases []x86.Addr) ([]Timer, error) {
	variable, ok := k.Image.SymbolAddr("hrtimer_bases")
	p, err := k.Places("hrtimer_cpu_base.clock_base", "hrtimer_clock_base.active.rb_root.rb_root.rb_node", "hrtimer.node.node", "hrtimer.function",
		"rb_node.rb_left", "rb_node.rb_right")
	if err != nil {
		return nil, err
	}
	clocks, _ := k.Member("hrtimer_cpu_base.clock_base")
	clock, _ := clocks.Type.Elem()
	if !ok || clock.Size() == 0 {
		return nil, errors.New("there are no hrtimer_bases")
	}
	var timers []Timer
	for _, base := range bases {
		first := base + variable + x86.Addr(p["hrtimer_cpu_base.clock_base"])
		for at := first; at < first+x86.Addr(clocks.Type.Size()); at += x86.Addr(clock.Size()) {
			nodes := []x86.Addr{k.Word(at.Add(int64(p["hrtimer_clock_base.active.rb_root.rb_root.rb_node"])))}
			for n := 0; len(nodes) > 0 && n < bounded.DumpTimers; n++ {
				node := nodes[len(nodes)-1]
				nodes = nodes[:len(nodes)-1]
				if node == 0 {
					continue
				}
				at := node.Add(-int64(p["hrtimer.node.node"]))
				timers = append(timers, Timer{at, k.Word(at.Add(int64(p["hrtimer.function"])))})
				nodes = append(nodes, k.Word(node.Add(int64(p["rb_node.rb_left"]))), k.Word(node.Add(int64(p["rb_node.rb_right"]))))
			}
		}
	}
	return timers, nil
}
