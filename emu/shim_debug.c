//go:build unicorn && cgo && linux && amd64

/* The debug registers of a booted kernel's CPUs (SDM Vol. 3B, "Debug Registers" and "Debug
 * Exceptions"). The engine has some of its own, but no breakpoints: an access meets none, and
 * one for execution ends the process. So moves from and to them come here, and what DR7
 * enables becomes watches (shim_watch.c). */

#include "shim_private.h"

enum { BD = 1 << 13, GD = 1 << 13 }; /* in DR6: a move was detected; in DR7: detect them */
enum { DR6_ONES = 0xffff0ff0, DR6_USED = 0xf | BD | KPL_DR6_BS | 1 << 15 };
enum { DR7_ONES = 0x400, DR7_USED = 0xffff03ff | GD };
enum { CR4_DE = 8 };
enum { VECTOR_DEBUG = 1, VECTOR_INVALID = 6, VECTOR_GP = 13 };

void kpl_debug_reset(kpl_cpu *c)
{
	memset(c->dr, 0, sizeof c->dr);
	c->dr[6] = DR6_ONES;
	c->dr[7] = DR7_ONES;
	c->debug_hits = 0;
}

/* The watches of the registers that DR7 enables. An address counts from a multiple of the
 * length. Breakpoints for ports are left out: they need CR4.DE, which Linux does not set. */
int kpl_debug_watches(const kpl_cpu *c, kpl_watch *to)
{
	static const uint32_t kinds[] = { KPL_WATCH_EXEC, KPL_WATCH_WRITE, 0, KPL_WATCH_READ | KPL_WATCH_WRITE };
	static const uint32_t lengths[] = { 1, 2, 8, 4 };
	int count = 0;

	for (int n = 0; n < 4; n++) {
		uint32_t field = c->dr[7] >> (16 + 4 * n) & 15, kind = kinds[field & 3];
		uint32_t len = kind == KPL_WATCH_EXEC ? 1 : lengths[field >> 2];
		if (c->dr[7] >> 2 * n & 3 && kind)
			to[count++] = (kpl_watch){ .addr = c->dr[n] & ~(uint64_t)(len - 1), .len = len, .kinds = kind, .number = n, .cpu = c->n };
	}
	return count;
}

static void set(kpl_cpu *c, int n, uint64_t v)
{
	uint64_t old = c->dr[n];

	if (n == 6)
		v = (v & DR6_USED) | DR6_ONES;
	if (n == 7)
		v = (v & DR7_USED) | DR7_ONES;
	c->dr[n] = v;
	if (n == 6 || v == old || !((c->dr[7] | (n == 7 ? old : 0)) & 0xff))
		return;
	kpl_watch_build(c->m);
	kpl_watch_again(c);
}

/* The mov at an address, of the debug register n and a general one, in kernel mode. 0: it ends in an
 * exception. */
int kpl_debug_move(kpl_cpu *c, uint64_t at, int write, int n, int general)
{
	uint64_t cr4 = 0, v = 0;

	if (n == 4 || n == 5) { /* another name of 6 and 7, if anything */
		uc_reg_read(c->uc, UC_X86_REG_CR4, &cr4);
		if (cr4 & CR4_DE)
			return kpl_refuse(c, at, VECTOR_INVALID), 0;
		n += 2;
	}
	if (c->dr[7] & GD) {
		c->dr[7] &= ~(uint64_t)GD;
		kpl_debug_note(c, BD);
		kpl_debug_trap(c, at);
		return 0;
	}
	if (!write) {
		uc_reg_write(c->uc, kpl_general[general], &c->dr[n]);
		return 1;
	}
	uc_reg_read(c->uc, kpl_general[general], &v);
	if (n >= 6 && v >> 32)
		return kpl_refuse(c, at, VECTOR_GP), 0;
	set(c, n, v);
	return 1;
}

/* DR6 says why the debug exception comes that is about to. */
void kpl_debug_note(kpl_cpu *c, uint32_t bits)
{
	c->dr[6] |= bits | c->debug_hits;
	c->debug_hits = 0;
}

/* The debug exception, to go on at ip. */
void kpl_debug_trap(kpl_cpu *c, uint64_t ip)
{
	kpl_debug_note(c, 0);
	if (!c->m->free_hits)
		c->m->extra += c->m->trap_cost;
	add_work(c->m, KPL_WORK_TRAP); /* no instruction runs where the handler's first one has a breakpoint */
	if (!kpl_deliver(c, VECTOR_DEBUG, KPL_NO_CODE, ip, 1))
		c->reason = KPL_TRIPLE;
}

/* Whether the instruction at an address is iretq. */
static int returns(kpl_machine *m, uint64_t at)
{
	struct text t = { .va = at };
	uint8_t b = 0;

	return next_byte(m, &t, &b) && ((b & 0xf8) != 0x48 || next_byte(m, &t, &b)) && b == 0xcf;
}

/* The flags with RF, by which the instruction at ip goes on without a breakpoint, as a processor
 * has it: set by iret for the next instruction, and for all iterations of a string instruction.
 * The engine keeps it for longer; where nothing is watched, it has no meaning. (Between iterations
 * an Intel processor sets it whether or not there is a breakpoint, says the SDM; AMD's was seen
 * not to.) */
uint64_t kpl_resume_flag(kpl_cpu *c, uint64_t ip, uint64_t flags)
{
	uint64_t without = flags & ~(uint64_t)KPL_FLAG_RF;

	if (!c->watching)
		return without;
	if (c->last_ip == ip ? kpl_watch_executed(c->m, ip) && kpl_watch_repeats(c->m, ip) : flags & KPL_FLAG_RF && returns(c->m, c->last_ip))
		return flags | KPL_FLAG_RF;
	return without;
}
