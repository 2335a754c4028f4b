//go:build unicorn && cgo && linux && amd64

/* The local APIC and its timer, in virtual time (SDM Vol. 3A, chapter 11), and when
 * the machine has to look again. The timer counts nanoseconds. */

#include "shim_private.h"

enum { ID = 0x20, VERSION = 0x30, TPR = 0x80, PPR = 0xa0, EOI = 0xb0, LDR = 0xd0, DFR = 0xe0, SVR = 0xf0,
       ISR = 0x100, TMR = 0x180, IRR = 0x200, ICR = 0x300, ICR_HIGH = 0x310, LVT_CMCI = 0x2f0, LVT = 0x320,
       LVT_END = 0x380, INITIAL = 0x380, CURRENT = 0x390, DIVIDE = 0x3e0 };
enum { MASKED = 1 << 16, PERIODIC = 1 << 17, DEADLINE = 1 << 18 };

static uint64_t now(kpl_machine *m) { return m->instrs + m->extra; }

static int highest(const uint32_t *bits)
{
	for (int i = 7; i >= 0; i--)
		if (bits[i])
			return i * 32 + 31 - __builtin_clz(bits[i]);
	return -1;
}

/* The vector that would be delivered now, -1 for none. */
int kpl_apic_next(const kpl_apic *a)
{
	int waits = highest(a->irr), serves = highest(a->isr);

	if (waits < 0 || waits >> 4 <= (int)(a->tpr >> 4 & 15) || (serves >= 0 && waits >> 4 <= serves >> 4))
		return -1;
	return waits;
}

void kpl_apic_take(kpl_apic *a, int vector)
{
	a->irr[vector / 32] &= ~(1u << vector % 32);
	a->isr[vector / 32] |= 1u << vector % 32;
}

void kpl_apic_raise(kpl_apic *a, int vector) { a->irr[vector / 32] |= 1u << vector % 32; }

static void end_of_interrupt(kpl_apic *a)
{
	int v = highest(a->isr);
	if (v >= 0)
		a->isr[v / 32] &= ~(1u << v % 32);
}

static uint64_t divisor(const kpl_apic *a)
{
	int d = (a->divide & 3) | (a->divide >> 1 & 4);
	return d == 7 ? 1 : 2u << d;
}

/* What the timers have done up to now. */
static void expire(kpl_machine *m, kpl_apic *a)
{
	if (!a->due || a->due > now(m))
		return;
	if (!(a->lvt[0] & MASKED))
		kpl_apic_raise(a, a->lvt[0] & 0xff);
	/* Ticks that were missed with interrupts off come once. */
	a->due = a->period ? a->due + a->period * ((now(m) - a->due) / a->period + 1) : 0;
}

/* Sets when the machine looks again: at the next event, or at the limit. */
void kpl_aim(kpl_machine *m)
{
	uint64_t at = m->limit, due = m->cur->apic.due;

	if (due) {
		uint64_t instrs = due > m->extra ? due - m->extra : 0;
		at = instrs < at ? instrs : at;
	}
	if (kpl_apic_next(&m->cur->apic) >= 0 || m->cur->nmi || m->turn)
		at = 0;
	__atomic_store_n(&m->stop_at, at, __ATOMIC_RELAXED);
}

/* When the next timer fires. */
int kpl_next_event(kpl_machine *m, uint64_t *at)
{
	*at = 0;
	for (int i = 0; i < m->ncpus; i++) {
		uint64_t due = m->cpus[i]->apic.due;
		if (due && (!*at || due < *at))
			*at = due;
	}
	return *at != 0;
}

/* Whether something waits for the CPU, now that the clock stands where it does. */
int kpl_pending(kpl_cpu *c)
{
	expire(c->m, &c->apic);
	return c->nmi || kpl_apic_next(&c->apic) >= 0;
}

/* stop_at is reached before the block at ip: what is due. */
int kpl_due(kpl_cpu *c, uint64_t ip)
{
	kpl_machine *m = c->m;
	int taken;

	if (m->turn || m->instrs >= m->limit || m->work > m->allowance || __atomic_load_n(&m->expired, __ATOMIC_RELAXED))
		return KPL_DUE_STOP;
	/* A handler of the host's runs as the kernel's does, with interrupts off. */
	taken = c->depth == 1 && kpl_pending(c) && kpl_interrupt(c, ip, 1);
	kpl_aim(m);
	return c->reason ? KPL_DUE_STOP : taken ? KPL_DUE_INTERRUPT : KPL_DUE_NOTHING;
}

static void arm(kpl_machine *m, kpl_apic *a, uint64_t after)
{
	a->started = now(m);
	a->period = a->lvt[0] & PERIODIC ? after : 0;
	a->due = after ? now(m) + after : 0;
	a->guessed = 0;
	kpl_aim(m);
}

static uint64_t to_ns(kpl_machine *m, uint64_t tsc)
{
	return tsc <= m->tsc_base ? 1 : (uint64_t)((unsigned __int128)(tsc - m->tsc_base) * 1000000 / m->tsc_khz);
}

uint64_t kpl_tsc(kpl_machine *m) { return m->tsc_base + (uint64_t)((unsigned __int128)now(m) * m->tsc_khz / 1000000); }

/* The timer fires when the time stamp counter is this. */
void kpl_apic_deadline(kpl_cpu *c, uint64_t tsc)
{
	uint64_t ns = to_ns(c->m, tsc);

	c->apic.period = 0;
	c->apic.due = !tsc ? 0 : ns > now(c->m) ? ns : now(c->m) + 1;
	c->apic.guessed = 0;
	kpl_aim(c->m);
}

static uint32_t remaining(kpl_machine *m, const kpl_apic *a)
{
	return a->due > now(m) ? (a->due - now(m)) / divisor(a) : 0;
}

enum { ICR_NMI = 4, ICR_LOGICAL = 1 << 11 };
enum { TO_SELF = 1, TO_ALL, TO_OTHERS };

/* Whether an interrupt for a destination is for the CPU. */
static int is_for(const kpl_cpu *c, const kpl_cpu *from, uint32_t icr, uint32_t to)
{
	switch (icr >> 18 & 3) {
	case TO_SELF:
		return c == from;
	case TO_ALL:
		return 1;
	case TO_OTHERS:
		return c != from;
	}
	if (!(icr & ICR_LOGICAL))
		return to == c->apic.id || to == c->m->broadcast;
	if (c->m->broadcast == 0xff) /* xAPIC, flat */
		return (to & c->apic.ldr >> 24) != 0;
	return to >> 16 == c->apic.id >> 4 && to >> (c->apic.id & 15) & 1;
}

static void send(kpl_cpu *from, uint32_t icr, uint32_t to)
{
	kpl_machine *m = from->m;
	int mode = icr >> 8 & 7;

	for (int i = 0; i < m->ncpus; i++) {
		kpl_cpu *c = m->cpus[i];
		if (!is_for(c, from, icr, to))
			continue;
		if (mode <= 1)
			kpl_apic_raise(&c->apic, icr & 0xff);
		else if (mode == ICR_NMI)
			c->nmi = 1;
		if (c != from)
			m->turn = 1;
		if (mode == 1)
			break; /* the lowest priority: one of them */
	}
	kpl_aim(m);
}

/* x2APIC's ICR is one register, with a destination of 32 bits. */
void kpl_apic_send(kpl_cpu *c, uint64_t icr)
{
	c->m->broadcast = 0xffffffff;
	send(c, icr, icr >> 32);
}

uint32_t kpl_apic_read(kpl_cpu *c, uint32_t reg)
{
	kpl_apic *a = &c->apic;

	if (reg >= ISR && reg < ISR + 0x80)
		return a->isr[(reg - ISR) / 16];
	if (reg >= IRR && reg < IRR + 0x80)
		return a->irr[(reg - IRR) / 16];
	if (reg >= LVT && reg < LVT_END)
		return a->lvt[(reg - LVT) / 16];
	switch (reg) {
	case ID:
		return a->id << 24;
	case VERSION:
		return 0x50014;
	case TPR:
		return a->tpr;
	case LDR:
		return a->ldr;
	case DFR:
		return a->dfr;
	case SVR:
		return a->svr;
	case ICR_HIGH:
		return a->icr_high;
	case INITIAL:
		return a->initial;
	case CURRENT:
		return remaining(c->m, a);
	case DIVIDE:
		return a->divide;
	}
	return 0;
}

void kpl_apic_write(kpl_cpu *c, uint32_t reg, uint32_t v)
{
	kpl_apic *a = &c->apic;

	if (reg >= LVT && reg < LVT_END) {
		a->lvt[(reg - LVT) / 16] = v;
		if (reg == LVT && a->guessed)
			arm(c->m, a, 0);
		return;
	}
	switch (reg) {
	case TPR:
		a->tpr = v;
		kpl_aim(c->m);
		break;
	case EOI:
		end_of_interrupt(a);
		kpl_aim(c->m);
		break;
	case LDR:
		a->ldr = v;
		break;
	case DFR:
		a->dfr = v;
		break;
	case SVR:
		a->svr = v;
		break;
	case ICR:
		send(c, v, a->icr_high >> 24);
		break;
	case ICR_HIGH:
		a->icr_high = v;
		break;
	case INITIAL:
		a->initial = v;
		if (!(a->lvt[0] & DEADLINE)) {
			if (a->guessed) /* the kernel sets it each time: not periodic */
				a->lvt[0] &= ~PERIODIC;
			arm(c->m, a, v * divisor(a));
		}
		break;
	case DIVIDE:
		a->divide = v;
		break;
	}
}

/* The APIC as Linux leaves it, and a timer of this vector that ticks until the kernel sets it. */
void kpl_apic_start(kpl_cpu *c, int timer)
{
	enum { TICK = 10000000 };
	kpl_apic *a = &c->apic;

	*a = (kpl_apic){ .id = c->n, .ldr = 1u << (24 + c->n % 8), .dfr = 0xffffffff, .svr = 0x1ff };
	a->lvt[0] = timer | PERIODIC;
	arm(c->m, a, TICK);
	a->guessed = 1;
}
