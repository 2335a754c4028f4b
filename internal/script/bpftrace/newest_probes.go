package bpftrace

import (
	"fmt"

	"kprobelab/internal/script/host"
)

// The software events that pass with time: their counts are nanoseconds.
var clocks = map[string]bool{"cpu-clock": true, "cpu": true, "task-clock": true}

// defaultClock is the count of a software clock that the script does not give.
const defaultClock = 1e6

// clock adds the probe of a software event that passes with time.
func (c *checker) clock(pt *point) {
	every := pt.freq
	if every == 0 {
		every = defaultClock
	}
	pt.add(&host.Probe{Kind: host.Timer, Every: max(every, 1000), Profile: true, Point: fmt.Sprintf("software:%s:%d", pt.target, every)}, "")
}
