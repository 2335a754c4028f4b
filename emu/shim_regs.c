//go:build unicorn && cgo && linux && amd64

/* The registers of an engine: as pt_regs, and as what a task switch moves. */

#include "shim_private.h"

/* In the order of kpl_regs, 0 for what the engine does not have: orig_ax, the
 * selectors. */
static int gprs[] = {
	UC_X86_REG_R15, UC_X86_REG_R14, UC_X86_REG_R13, UC_X86_REG_R12,
	UC_X86_REG_RBP, UC_X86_REG_RBX, UC_X86_REG_R11, UC_X86_REG_R10,
	UC_X86_REG_R9, UC_X86_REG_R8, UC_X86_REG_RAX, UC_X86_REG_RCX,
	UC_X86_REG_RDX, UC_X86_REG_RSI, UC_X86_REG_RDI, 0,
	UC_X86_REG_RIP, 0, UC_X86_REG_EFLAGS, UC_X86_REG_RSP,
};
enum { NGPR = 20, N_GENERAL = 15, W_IP = 16, W_CS = 17, W_FLAGS = 18 };

void kpl_read_regs(kpl_cpu *c, kpl_regs *r)
{
	static int ids[] = {
		UC_X86_REG_R15, UC_X86_REG_R14, UC_X86_REG_R13, UC_X86_REG_R12, UC_X86_REG_RBP,
		UC_X86_REG_RBX, UC_X86_REG_R11, UC_X86_REG_R10, UC_X86_REG_R9, UC_X86_REG_R8,
		UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RSI, UC_X86_REG_RDI,
		UC_X86_REG_RIP, UC_X86_REG_EFLAGS, UC_X86_REG_RSP,
	};
	void *vals[] = {
		&r->r15, &r->r14, &r->r13, &r->r12, &r->bp,
		&r->bx, &r->r11, &r->r10, &r->r9, &r->r8,
		&r->ax, &r->cx, &r->dx, &r->si, &r->di,
		&r->ip, &r->flags, &r->sp,
	};

	r->flags = 0; /* the engine writes four bytes of it */
	uc_reg_read_batch(c->uc, ids, vals, sizeof ids / sizeof *ids);
	r->flags &= ~(uint64_t)KPL_FLAG_RF; /* the engine keeps it past its instruction */
	r->orig_ax = ~0ull;
	r->cs = c->user ? KPL_USER_CS : KPL_KERNEL_CS;
	r->ss = c->user ? KPL_USER_DS : KPL_KERNEL_DS;
	if (c->m->nram) { /* which has a user mode */
		uc_reg_read(c->uc, UC_X86_REG_CS, &r->cs);
		uc_reg_read(c->uc, UC_X86_REG_SS, &r->ss);
	}
}

/* Writes the words of r that differ from old, or all where old is NULL. RIP is
 * the last, and written only if rip is set: in the middle of a block the engine
 * would leave the block for it. */
void kpl_change_regs(kpl_cpu *c, const kpl_regs *r, const kpl_regs *old, int rip)
{
	const uint64_t *w = (const uint64_t *)r, *o = (const uint64_t *)old;
	int ids[NGPR];
	void *vals[NGPR];
	int n = 0;

	if (c->m->user_mode && ((r->cs & 3) == 3) != c->user)
		kpl_set_user(c, !c->user);
	/* Most hits leave the general registers, the first words, as they were. */
	for (int i = o && !memcmp(w, o, N_GENERAL * sizeof *w) ? N_GENERAL : 0; i < NGPR; i++)
		if (gprs[i] && i != W_IP && (!o || o[i] != w[i])) {
			ids[n] = gprs[i];
			vals[n++] = (void *)&w[i];
		}
	if (rip && (!o || o[W_IP] != w[W_IP])) {
		ids[n] = gprs[W_IP];
		vals[n++] = (void *)&w[W_IP];
	}
	if (n)
		uc_reg_write_batch(c->uc, ids, vals, n);
}

void kpl_change_all(kpl_cpu *c, const kpl_regs *r) { kpl_change_regs(c, r, NULL, 1); }

enum { NFPU = 16 + 4 + 8 };

static void fpu_list(kpl_state *s, int *ids, void **vals)
{
	int n = 0;

	for (int i = 0; i < 16; i++) {
		ids[n] = UC_X86_REG_YMM0 + i;
		vals[n++] = s->ymm[i];
	}
	ids[n] = UC_X86_REG_MXCSR, vals[n++] = &s->mxcsr;
	ids[n] = UC_X86_REG_FPCW, vals[n++] = &s->fpcw;
	ids[n] = UC_X86_REG_FPSW, vals[n++] = &s->fpsw; /* before st: it says which st is the top */
	ids[n] = UC_X86_REG_FPTAG, vals[n++] = &s->fptag;
	for (int i = 0; i < 8; i++) {
		ids[n] = UC_X86_REG_ST0 + i;
		vals[n++] = s->st[i];
	}
}

void kpl_save(kpl_cpu *c, kpl_state *s)
{
	int ids[NFPU];
	void *vals[NFPU];

	kpl_read_regs(c, &s->regs);
	fpu_list(s, ids, vals);
	uc_reg_read_batch(c->uc, ids, vals, NFPU);
}

void kpl_load(kpl_cpu *c, const kpl_state *s, int rip)
{
	int ids[NFPU];
	void *vals[NFPU];

	fpu_list((kpl_state *)s, ids, vals);
	uc_reg_write_batch(c->uc, ids, vals, NFPU);
	kpl_change_regs(c, &s->regs, NULL, rip);
}

/* The registers at a function's first instruction (System V ABI): six arguments,
 * al = 0 for a variadic function, the other general registers 0. */
void kpl_call(kpl_cpu *c, uint64_t sp, const uint64_t *args, uint64_t flags)
{
	static int ids[] = { UC_X86_REG_RDI, UC_X86_REG_RSI, UC_X86_REG_RDX, UC_X86_REG_RCX,
			     UC_X86_REG_R8, UC_X86_REG_R9, UC_X86_REG_RAX, UC_X86_REG_RBX,
			     UC_X86_REG_RBP, UC_X86_REG_R10, UC_X86_REG_R11, UC_X86_REG_R12,
			     UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15,
			     UC_X86_REG_RSP, UC_X86_REG_EFLAGS };
	uint64_t zero = 0;
	void *vals[17];

	for (int i = 0; i < 6; i++)
		vals[i] = (void *)&args[i];
	for (int i = 6; i < 15; i++)
		vals[i] = &zero;
	vals[15] = &sp;
	vals[16] = &flags;
	uc_reg_write_batch(c->uc, ids, vals, 17);
}

void kpl_cpu_set_ip(kpl_cpu *c, uint64_t ip) { uc_reg_write(c->uc, UC_X86_REG_RIP, &ip); }

uint64_t kpl_cpu_ip(kpl_cpu *c)
{
	uint64_t v = 0;
	uc_reg_read(c->uc, UC_X86_REG_RIP, &v);
	return v;
}
