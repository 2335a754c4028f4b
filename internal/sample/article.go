package sample

import "fmt"

// The lines of the article of 2007 on kprobes in Linux 2.6.18, whose three
// modules count schedule(), and watch sys_open's arguments and results (docs/spec
// 13.4).
const (
	ArticleKprobeRegistered      = "kprobe registered"
	ArticleKprobeUnregistered    = "kprobe unregistered"
	ArticleJprobeRegistered      = "Registered a jprobe."
	ArticleJprobeUnregistered    = "jprobe unregistered"
	ArticleKretprobeRegistered   = "Registered a return probe."
	ArticleKretprobeUnregistered = "kretprobe unregistered"
)

// ArticleBefore is the line before schedule()'s first instruction: the CPU's
// number, current->comm, preempt_count().
func ArticleBefore(cpu int, comm string, preempt uint32) string {
	return articleTask(cpu, comm, "before", preempt)
}

// ArticleAfter is the line after that instruction: nothing has been scheduled
// yet.
func ArticleAfter(cpu int, comm string, preempt uint32) string {
	return articleTask(cpu, comm, "after", preempt)
}

func articleTask(cpu int, comm, when string, preempt uint32) string {
	return fmt.Sprintf("current task on CPU#%d: %s (%s scheduling), preempt_count = %d", cpu, comm, when, preempt)
}

// ArticleTimes is the line with the number of calls of schedule() in so many milliseconds.
func ArticleTimes(n uint64, ms int64) string {
	return fmt.Sprintf("Scheduling times is %d during of %d milliseconds.", n, ms)
}

// ArticleOpenReturns is a negative result of sys_open.
func ArticleOpenReturns(value int32) string { return fmt.Sprintf("sys_open returns %d", value) }

// ArticleMissed is the line with the number of times that no instance was free.
func ArticleMissed(n uint64) string { return fmt.Sprintf("Missed %d sys_open probe instances.", n) }

// ArticleFailed is the line when the function register_... has failed; ret is
// the negative errno.
func ArticleFailed(register string, ret int) string {
	return fmt.Sprintf("%s failed, returned %d", register, ret)
}
