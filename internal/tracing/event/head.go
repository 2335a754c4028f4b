package event

import "kprobelab/profile"

// The heads of the columns in the file trace (docs/spec 9.10).
const (
	head61 = `#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
`
	head510 = `#                                _-----=> irqs-off
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| /     delay
#           TASK-PID     CPU#  ||||   TIMESTAMP  FUNCTION
#              | |         |   ||||      |         |
`
	// HeadPlain is with the option irq-info off.
	HeadPlain = `#           TASK-PID     CPU#     TIMESTAMP  FUNCTION
#              | |         |         |         |
`
)

// Head is the head of the columns where each line has its context's flags.
func Head(c *profile.Tracing) string {
	if c.MigrateDisable {
		return head61
	}
	return head510
}
