//go:build unicorn && cgo && linux && amd64

/* How a booted kernel is entered: exceptions, interrupts and system calls, as the
 * processor does it (SDM Vol. 3A, 6.14 "Exception and Interrupt Handling in 64-bit
 * Mode"; Vol. 2B, "SYSCALL"). Ways out (iret, sysret) are the engine's. */

#include "shim_private.h"

enum { FLAG_TF = 0x100, FLAG_IF = 0x200, FLAG_NT = 0x4000, FLAG_AC = 0x40000 };
enum { VECTOR_NMI = 2, VECTOR_GP = 13, VECTOR_PAGE = 14 };
enum { PAGE_FETCH = 1 << 4 }; /* of a page fault's error code */

/* The place of a kernel word. */
static int word_at(kpl_cpu *c, uint64_t va, int need, uint64_t **w)
{
	kpl_place p;

	if (region_at(c->m, va) ? !kpl_at(c->m, va, &p) || need & ~p.perm
				: kpl_walk(c->m, kpl_cr3(c), va, need, 1, &p) != KPL_FOUND)
		return 0;
	if (need & KPL_W)
		kpl_keep(c->m, &p);
	*w = (uint64_t *)p.host;
	return 1;
}

static int read_word(kpl_cpu *c, uint64_t va, uint64_t *v)
{
	uint64_t *w;

	if (!word_at(c, va, KPL_R, &w))
		return 0;
	kpl_watch_note(c->m, va, sizeof *v, 0);
	memcpy(v, w, sizeof *v); /* the words of a TSS are not aligned; none crosses a page */
	return 1;
}

/* A gate of the interrupt descriptor table. */
struct gate {
	uint16_t low, selector;
	uint8_t ist, type;
	uint16_t middle;
	uint32_t high, zero;
};

static int read_gate(kpl_cpu *c, int vector, struct gate *g)
{
	uc_x86_mmr idt = { 0 };
	uint64_t w[2];

	uc_reg_read(c->uc, UC_X86_REG_IDTR, &idt);
	if ((uint32_t)vector * 16 + 15 > idt.limit || !read_word(c, idt.base + vector * 16, &w[0]) ||
	    !read_word(c, idt.base + vector * 16 + 8, &w[1]))
		return 0;
	memcpy(g, w, sizeof *g);
	return g->type & 0x80;
}

/* Where a 64-bit TSS has its stacks. */
enum { TSS_RSP0 = 4, TSS_IST = 36 };

static int tss_word(kpl_cpu *c, int offset, uint64_t *v)
{
	uc_x86_mmr tr = { 0 };

	uc_reg_read(c->uc, UC_X86_REG_TR, &tr);
	return read_word(c, tr.base + offset, v);
}

static void set_ip(kpl_cpu *c, uint64_t ip, int in_block)
{
	if (in_block)
		uc_reg_write(c->uc, UC_X86_REG_RIP, &ip); /* which leaves the block */
	else
		kpl_set_eip(c, ip);
}

/* Whether a vector is an exception after which the instruction is executed again, and no trap:
 * but for debug exceptions, which may be either, RF is set for them. */
static int is_fault(int vector, int64_t error)
{
	enum { FAULTS = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 7 | 0x1f << 10 | 3 << 16 | 1 << 19 | 1 << 21 };

	return error != KPL_SOFTWARE && vector < 32 && FAULTS >> vector & 1;
}

/* Enters the handler of a vector. ip is its return address, error its error code or
 * -1. 0 if there is no handler or no stack: the processor would shut down. */
int kpl_deliver(kpl_cpu *c, int vector, int64_t error, uint64_t ip, int in_block)
{
	uint64_t sp = 0, flags = 0, top, frame[6];
	uint16_t cs = 0, ss = 0;
	struct gate g;
	int n = 0;

	if (!read_gate(c, vector, &g))
		return 0;
	uc_reg_read(c->uc, UC_X86_REG_RSP, &sp);
	uc_reg_read(c->uc, UC_X86_REG_EFLAGS, &flags);
	uc_reg_read(c->uc, UC_X86_REG_CS, &cs);
	uc_reg_read(c->uc, UC_X86_REG_SS, &ss);
	int user = (cs & 3) == 3;
	if (user && vector >= 32 && error == KPL_SOFTWARE && (g.type >> 5 & 3) != 3) {
		error = vector * 8 + 2; /* int n of what user mode may not call */
		vector = VECTOR_GP;
		ip -= 2;
		if (!read_gate(c, vector, &g))
			return 0;
	}
	top = sp;
	if (g.ist & 7 ? !tss_word(c, TSS_IST + 8 * ((g.ist & 7) - 1), &top) : user && !tss_word(c, TSS_RSP0, &top))
		return 0;
	top &= ~15ull;
	if (error >= 0)
		frame[n++] = error;
	frame[n++] = ip;
	frame[n++] = cs;
	frame[n++] = is_fault(vector, error) ? flags | KPL_FLAG_RF : kpl_resume_flag(c, ip, flags);
	if (vector == VECTOR_PAGE && error & PAGE_FETCH)
		c->unfetched = ip;
	frame[n++] = sp;
	frame[n++] = ss;
	for (int i = n - 1; i >= 0; i--) {
		uint64_t *w;
		top -= 8;
		if (!word_at(c, top, KPL_W, &w))
			return 0;
		kpl_watch_note(c->m, top, sizeof *w, 1);
		*w = frame[i];
	}
	flags &= ~(uint64_t)(FLAG_TF | FLAG_NT | KPL_FLAG_RF | ((g.type & 0xf) == 0xe ? FLAG_IF : 0));
	uc_reg_write(c->uc, UC_X86_REG_RSP, &top);
	uc_reg_write(c->uc, UC_X86_REG_EFLAGS, &flags);
	kpl_set_mode(c, g.selector, user ? 0 : ss);
	set_ip(c, g.low | (uint64_t)g.middle << 16 | (uint64_t)g.high << 32, in_block);
	return 1;
}

/* The syscall instruction at rip, from its hook: the engine adds the instruction's
 * length to rip afterwards. */
int kpl_syscall(kpl_cpu *c)
{
	uint64_t ip = 0, flags = 0, next;
	struct text t;
	uint8_t b = 0, last;
	int n = 0;

	uc_reg_read(c->uc, UC_X86_REG_RIP, &ip);
	uc_reg_read(c->uc, UC_X86_REG_EFLAGS, &flags);
	t = (struct text){ .va = ip };
	do { /* to the end of 0f 05 */
		last = b;
		if (n++ == 15 || !next_byte(c->m, &t, &b))
			return 0;
	} while (last != 0x0f || b != 0x05);
	next = ip + n;
	uc_reg_write(c->uc, UC_X86_REG_RCX, &next);
	flags &= ~(uint64_t)KPL_FLAG_RF;
	uc_reg_write(c->uc, UC_X86_REG_R11, &flags);
	flags &= ~c->fmask;
	uc_reg_write(c->uc, UC_X86_REG_EFLAGS, &flags);
	uint16_t cs = c->star >> 32 & 0xfffc;
	kpl_set_mode(c, cs, cs + 8);
	kpl_set_eip(c, c->lstar - n);
	return 1;
}

/* FNV-1a, by words (draft-eastlake-fnv). */
static uint64_t digest(uint64_t d, uint64_t word) { return (d ^ word) * 0x100000001b3; }

/* An interrupt that waits is delivered, if the CPU takes interrupts. 1 if it was. */
int kpl_interrupt(kpl_cpu *c, uint64_t ip, int in_block)
{
	uint64_t flags = 0;
	uint8_t before = 0;
	struct text t = { .va = ip - 1 };
	int vector = kpl_apic_next(&c->apic);

	if (c->nmi) {
		c->nmi = 0;
		if (!kpl_deliver(c, VECTOR_NMI, KPL_NO_CODE, ip, in_block))
			c->reason = KPL_TRIPLE;
		return 1;
	}
	if (vector < 0)
		return 0;
	uc_reg_read(c->uc, UC_X86_REG_EFLAGS, &flags);
	if (!(flags & FLAG_IF) || flags & FLAG_TF)
		return 0;
	/* sti lets one more instruction run: hlt, in the idle loop. */
	if (in_block && next_byte(c->m, &t, &before) && before == 0xfb)
		return 0;
	kpl_apic_take(&c->apic, vector);
	c->m->interrupts++;
	c->m->trail = digest(digest(digest(c->m->trail, vector), kpl_tsc(c->m)), ip);
	if (!kpl_deliver(c, vector, KPL_NO_CODE, ip, in_block))
		c->reason = KPL_TRIPLE;
	return 1;
}
