// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks as guest code sees them: who runs, giving the CPU away, sleeping,
 * spinning, printing. The scheduler itself is the host's; these are the
 * functions a kernel would pass through on the way to it.
 */

struct task_struct init_task = { .comm = "swapper", .mm = NULL };

/* The first per-CPU variable lies at address 0, as in a kernel. */
__section(".data..percpu..first") char fixed_percpu_data[64];
DEFINE_PER_CPU(struct task_struct *, current_task) = &init_task;
DEFINE_PER_CPU(int, cpu_number) = 0;
DEFINE_PER_CPU(int, __preempt_count) = 1; /* as a kernel begins to boot: not to be preempted */
DEFINE_PER_CPU(u64, this_cpu_off) = 0;
DEFINE_PER_CPU(u64, test_counter) = 0;
DEFINE_PER_CPU(u64, nr_switches) = 0;
DEFINE_PER_CPU(u64, jprobe_saved_sp) = 0;

u64 jiffies = 4294892296; /* five minutes before the low half wraps, at 250 Hz */
u64 shared_counter;

/* Swaps register state in a kernel; here only the account of it. */
noinline notrace struct task_struct *__switch_to(struct task_struct *prev, struct task_struct *next)
{
	this_cpu_inc64(nr_switches);
	barrier();
	return next == prev ? prev : next;
}

static __sched void __schedule(u32 mode)
{
	struct task_struct *prev;

	preempt_disable();
	prev = current;
	prev->state = mode;
	__switch_to(prev, prev);
	preempt_enable();
	hv_yield();
}

__sched void schedule(void)
{
	__schedule(0);
	barrier();
}

__sched int __cond_resched(void)
{
	schedule();
	return 1;
}

__sched void yield(void)
{
	schedule();
	barrier();
}

__sched void io_schedule(void)
{
	schedule();
	barrier();
}

/* Sleeps for ns nanoseconds of the virtual clock. */
noinline void sleep_ns(u64 ns)
{
	hv_sleep(ns);
	barrier();
}

noinline void msleep(u32 ms)
{
	sleep_ns(ms * 1000000ul);
	barrier();
}

noinline u64 ktime_get(void)
{
	return hv_clock();
}

/* Never comes back. */
noinline __noreturn void do_exit(long code)
{
	barrier();
	hv_exit(code);
}

noinline int smp_processor_id_test(void)
{
	return hv_cpu();
}

noinline u64 current_task_number(void)
{
	return hv_task();
}

/* Counts in this CPU's own area; returns the new value. */
noinline u64 this_cpu_inc_test(void)
{
	this_cpu_inc64(test_counter);
	return this_cpu_read(test_counter);
}

/* The count without the bit that says "no need to reschedule", inverted. */
static int preempt_count(void)
{
	return this_cpu_read(__preempt_count) & 0x7fffffff;
}

/* 100 times the count with preemption off, plus the count after it: 100. */
noinline int preempt_count_test(void)
{
	int in;

	preempt_disable();
	in = preempt_count();
	preempt_enable();
	return in * 100 + preempt_count();
}

/* Spins n rounds; returns n. */
noinline u64 spin(u64 n)
{
	u64 i;

	for (i = 0; i < n; i++)
		barrier();
	return i;
}

/* Spins until *flag is not 0; returns how often it looked. */
noinline u64 spin_until(u64 *flag)
{
	u64 n = 0;

	while (!READ_ONCE(*flag)) {
		n++;
		asm volatile("pause");
	}
	return n;
}

/* One unit of work: what a probe for interleavings is planted on. */
noinline u64 work_item(u64 i)
{
	return spin(i & 15) + i;
}

/* n units of work, giving the CPU away after each; returns their sum. */
noinline u64 worker(u64 n)
{
	u64 i, sum = 0;

	for (i = 0; i < n; i++) {
		sum += work_item(i);
		schedule();
	}
	return sum;
}

/* As worker, but the CPU is only lost by force. */
noinline u64 busy_worker(u64 n)
{
	u64 i, sum = 0;

	for (i = 0; i < n; i++)
		sum += work_item(i);
	return sum;
}

/* As worker, sleeping ns after each unit. */
noinline u64 sleepy_worker(u64 n, u64 ns)
{
	u64 i, sum = 0;

	for (i = 0; i < n; i++) {
		sum += work_item(i);
		sleep_ns(ns);
	}
	return sum;
}

/* Sleeps inside itself, so that several tasks are in it at once. */
noinline u64 slow_call(u64 x, u64 ns)
{
	sleep_ns(ns);
	return x + 1;
}

u64 leaf(u64 x);

/* Adds n to shared_counter; another task can come between reading and writing. */
noinline u64 racy_inc(u64 n)
{
	u64 v;

	while (n--) {
		v = READ_ONCE(shared_counter);
		WRITE_ONCE(shared_counter, leaf(v));
	}
	return READ_ONCE(shared_counter);
}

/* The same with a locked addition: nothing is lost. */
noinline u64 atomic_add_test(u64 n)
{
	while (n--)
		asm volatile(LOCK_PREFIX "incq %0" : "+m"(shared_counter)::"memory", "cc");
	return READ_ONCE(shared_counter);
}

/* Swaps in val and gives back what was there. */
noinline u64 xchg_test(u64 *p, u64 val)
{
	asm volatile("xchgq %0, %1" : "+r"(val), "+m"(*p)::"memory");
	return val;
}

/* One work_item with interrupts off, as between local_irq_save and _restore. */
noinline u64 irqs_off_test(u64 x)
{
	u64 flags, r;

	asm volatile("pushfq; pop %0; cli" : "=rm"(flags)::"memory");
	r = work_item(x);
	asm volatile("push %0; popfq" ::"rm"(flags) : "memory", "cc");
	return r;
}

/* Whether the caller's interrupts are on, from the flags themselves. */
noinline int irqs_enabled_test(void)
{
	u64 flags;

	asm volatile("pushfq; pop %0" : "=rm"(flags)::"memory");
	return flags >> 9 & 1;
}

static u32 test_lock;

noinline void spin_lock(u32 *lock)
{
	u32 v = 1;

	for (;;) {
		asm volatile("xchgl %0, %1" : "+r"(v), "+m"(*lock)::"memory");
		if (!v)
			return;
		asm volatile("pause");
	}
}

noinline void spin_unlock(u32 *lock)
{
	WRITE_ONCE(*lock, 0);
}

/* racy_inc under a lock: nothing is lost, however the tasks interleave. */
noinline u64 locked_inc(u64 n)
{
	while (n--) {
		spin_lock(&test_lock);
		racy_inc(1);
		spin_unlock(&test_lock);
	}
	return READ_ONCE(shared_counter);
}

static noinline void console_write(const char *s, size_t n)
{
	while (n--)
		hv_putc(*s++);
}

noinline int vprintk(const char *fmt, __builtin_va_list ap)
{
	char buf[256];
	int n = vsnprintf(buf, sizeof(buf), fmt, ap);

	console_write(buf, n < (int)sizeof(buf) ? n : (int)sizeof(buf) - 1);
	return n;
}

noinline int printk(const char *fmt, ...)
{
	__builtin_va_list ap;
	int n;

	__builtin_va_start(ap, fmt);
	n = vprintk(fmt, ap);
	__builtin_va_end(ap);
	return n;
}
