//go:build cgo && linux && amd64

#define _GNU_SOURCE
#include "shim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unicorn/unicorn.h>

#include "_cgo_export.h"

#define PAGE 4096ull
/* The engine refuses to fetch above 2^52, so what it takes for physical
 * addresses are the low 48 bits of the canonical ones: still distinct. */
#define ALIAS(va) ((va) & 0xffffffffffffull)

static kpl_region *region_at(kpl_machine *m, uint64_t va)
{
	for (int i = 0; i < m->nregions; i++)
		if (va - m->regions[i].start < m->regions[i].end - m->regions[i].start)
			return &m->regions[i];
	return NULL;
}

/* ---- memory ---- */

kpl_machine *kpl_machine_new(uintptr_t handle)
{
	kpl_machine *m = calloc(1, sizeof *m);
	if (m)
		m->handle = handle;
	return m;
}

void kpl_machine_free(kpl_machine *m)
{
	kpl_undo_drop(m, 0);
	free(m->undo);
	free(m->console);
	free(m->lines);
	free(m);
}

void *kpl_mmap(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void kpl_munmap(void *p, size_t size) { munmap(p, size); }

int kpl_add_region(kpl_machine *m, uint64_t start, uint64_t size, uint8_t *host, uint8_t *attr)
{
	if (m->nregions == KPL_MAX_REGIONS)
		return -1;
	m->regions[m->nregions++] = (kpl_region){ start, start + size, host, attr };
	return 0;
}

static void save_page(kpl_machine *m, kpl_region *r, uint64_t i)
{
	if (m->nundo == m->cap_undo) {
		int cap = m->cap_undo ? 2 * m->cap_undo : 64;
		kpl_undo **u = realloc(m->undo, cap * sizeof *u);
		if (!u)
			return;
		m->undo = u;
		m->cap_undo = cap;
	}
	kpl_undo *u = malloc(sizeof *u);
	if (!u)
		return;
	u->page = r->start + i * PAGE;
	u->host = r->host + i * PAGE;
	u->attr = &r->attr[i];
	memcpy(u->old, u->host, PAGE);
	m->undo[m->nundo++] = u;
	r->attr[i] |= KPL_DIRTY;
}

/* Before the host writes guest memory. */
void kpl_touch(kpl_machine *m, uint64_t addr, uint64_t size)
{
	if (!m->track || !size)
		return;
	kpl_region *r = region_at(m, addr);
	if (!r || size > r->end - addr)
		return;
	for (uint64_t i = (addr - r->start) / PAGE; i <= (addr + size - 1 - r->start) / PAGE; i++)
		if (!(r->attr[i] & KPL_DIRTY))
			save_page(m, r, i);
}

void kpl_undo_drop(kpl_machine *m, int from)
{
	for (int i = from; i < m->nundo; i++)
		free(m->undo[i]);
	m->nundo = from;
}

static kpl_count *count_at(kpl_machine *m, uint64_t pc) { return &m->counts[(pc ^ pc >> 12) % KPL_COUNTS]; }

/* Text from addr to end was changed. A block that begins farther back is told
 * by its size, which the change nearly always alters. */
void kpl_forget_counts(kpl_machine *m, uint64_t addr, uint64_t end)
{
	for (uint64_t pc = addr - 64; pc < end; pc++)
		count_at(m, pc)->pc = 0;
}

void kpl_console_clear(kpl_machine *m) { m->nconsole = 0; }

static void console_add(kpl_machine *m, uint8_t b)
{
	if (m->nconsole == m->cap_console) {
		size_t cap = m->cap_console ? 2 * m->cap_console : 1024;
		uint8_t *p = cap <= 1 << 24 ? realloc(m->console, cap) : NULL;
		if (!p)
			return; /* a console of 16 MiB is full */
		m->console = p;
		m->cap_console = cap;
	}
	m->console[m->nconsole++] = b;
}

static void line_end(kpl_machine *m, kpl_line *l)
{
	for (int i = 0; i < l->n; i++)
		console_add(m, l->b[i]);
	l->n = 0;
}

/* Ends every task's line, for somebody wants to see what there is. */
void kpl_console_flush(kpl_machine *m)
{
	for (int i = 0; i < m->nlines; i++)
		line_end(m, &m->lines[i]);
}

/*
 * Tasks print at once, and a kernel's printk keeps a line whole: a task's line
 * reaches the console when it ends.
 */
static void console_put(kpl_machine *m, uint8_t b)
{
	if (m->task >= m->nlines) {
		kpl_line *l = realloc(m->lines, (m->task + 1) * sizeof *l);
		if (!l) {
			console_add(m, b);
			return;
		}
		memset(l + m->nlines, 0, (m->task + 1 - m->nlines) * sizeof *l);
		m->lines = l;
		m->nlines = m->task + 1;
	}
	kpl_line *l = &m->lines[m->task];
	l->b[l->n++] = b;
	if (b == '\n' || l->n == sizeof l->b)
		line_end(m, l);
}

/* ---- registers ---- */

/* In the order of kpl_regs; the selectors and orig_ax are no engine's. */
static int gprs[] = {
	UC_X86_REG_R15, UC_X86_REG_R14, UC_X86_REG_R13, UC_X86_REG_R12,
	UC_X86_REG_RBP, UC_X86_REG_RBX, UC_X86_REG_R11, UC_X86_REG_R10,
	UC_X86_REG_R9, UC_X86_REG_R8, UC_X86_REG_RAX, UC_X86_REG_RCX,
	UC_X86_REG_RDX, UC_X86_REG_RSI, UC_X86_REG_RDI, 0,
	UC_X86_REG_RIP, 0, UC_X86_REG_EFLAGS, UC_X86_REG_RSP,
};
enum { NGPR = 20, W_IP = 16, W_CS = 17, W_FLAGS = 18 };

void kpl_read_regs(kpl_cpu *c, kpl_regs *r)
{
	uint64_t *w = (uint64_t *)r;
	int ids[NGPR];
	void *vals[NGPR];
	int n = 0;

	for (int i = 0; i < NGPR; i++)
		if (gprs[i]) {
			ids[n] = gprs[i];
			vals[n++] = &w[i];
		}
	r->flags = 0; /* the engine writes four bytes of it */
	uc_reg_read_batch(c->uc, ids, vals, n);
	r->orig_ax = ~0ull;
	r->cs = 0x10;
	r->ss = 0x18;
}

/* Writes the words of r that differ from old (all, without one). RIP last and
 * only where asked: writing it ends the engine's translation loop. */
static void write_regs(kpl_cpu *c, const kpl_regs *r, const kpl_regs *old, int rip)
{
	const uint64_t *w = (const uint64_t *)r, *o = (const uint64_t *)old;
	int ids[NGPR];
	void *vals[NGPR];
	int n = 0;

	for (int i = 0; i < NGPR; i++)
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

void kpl_write_regs(kpl_cpu *c, const kpl_regs *r) { write_regs(c, r, NULL, 1); }

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
	ids[n] = UC_X86_REG_FPSW, vals[n++] = &s->fpsw; /* before st: it has the top */
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
	write_regs(c, &s->regs, NULL, rip);
}

/* Registers at a function's first instruction (System V ABI): the first six
 * arguments, al = 0 for a variadic one, the rest as left. */
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

/* ---- hooks ---- */

/* From the block hook, and between blocks: exact there. */
static void stop(kpl_cpu *c, int reason)
{
	c->reason = reason;
	uc_emu_stop(c->uc);
}

static void fault(kpl_cpu *c, int vector)
{
	c->vector = vector;
	c->addr = 0;
	c->access = 0;
	stop(c, KPL_FAULT);
}

static bool on_fill(uc_engine *uc, uint64_t va, uc_mem_type type, uc_tlb_entry *e, void *user)
{
	kpl_cpu *c = user;
	kpl_region *r = region_at(c->m, va);
	uint8_t need = type == UC_MEM_WRITE ? KPL_W : type == UC_MEM_FETCH ? KPL_X : KPL_R;

	if (!r || !(r->attr[(va - r->start) / PAGE] & need)) {
		c->miss = 1;
		c->miss_addr = va;
		c->miss_access = type == UC_MEM_WRITE ? KPL_W : type == UC_MEM_FETCH ? KPL_X : KPL_R;
		return false;
	}
	uint64_t i = (va - r->start) / PAGE;
	uint8_t a = r->attr[i];
	if (c->m->track && !(a & KPL_DIRTY)) {
		/* Clean pages are read-only to the TLB, so the first write
		 * comes here and the page is kept as it was. */
		if (need == KPL_W)
			save_page(c->m, r, i);
		else
			a &= ~KPL_W;
	}
	e->paddr = ALIAS(va);
	e->perms = (a & KPL_R ? UC_PROT_READ : 0) | (a & KPL_W ? UC_PROT_WRITE : 0) |
		   (a & KPL_X ? UC_PROT_EXEC : 0);
	return true;
}

/* mov to dr7 (or dr5, its alias) crashes or hangs the engine, the only
 * instruction found to. Its bytes may be part of another one. */
static int maybe_dr7(kpl_cpu *c, uint64_t pc, uint32_t size)
{
	kpl_region *r = region_at(c->m, pc);
	const uint8_t *b = r ? r->host + (pc - r->start) : NULL;

	for (uint32_t i = 0; r && i + 2 < size && pc + i + 2 < r->end; i++)
		if (b[i] == 0x0f && b[i + 1] == 0x23 && (b[i + 2] & 0x28) == 0x28)
			return 1;
	return 0;
}

/* Refuses a block with a write to dr7 before any of it runs. */
static int refused(kpl_cpu *c, uint64_t pc, uint32_t size)
{
	uint64_t at;

	if (!maybe_dr7(c, pc, size) || !(at = kplRefused(c->m->handle, pc, size)))
		return 0;
	c->at = at;
	fault(c, 6);
	return 1;
}

static uint32_t count_block(kpl_cpu *c, kpl_count *k, uint64_t pc, uint32_t size)
{
	uc_tb tb = { 0 };

	/* The block is in the cache, for it is about to run. */
	if (uc_ctl_request_cache((uc_engine *)c->uc, pc, &tb) != UC_ERR_OK || tb.size != size || !tb.icount)
		tb.icount = size / 4 + 1;
	*k = (kpl_count){ pc, size, tb.icount };
	return tb.icount;
}

static void on_block(uc_engine *uc, uint64_t pc, uint32_t size, void *user)
{
	kpl_cpu *c = user;
	kpl_machine *m = c->m;

	/* With a code hook the engine does not bring rip along to a block that
	 * it stops before; the code hook has it. */
	if (m->every)
		return;
	if (c->reason) {
		stop(c, c->reason);
		return;
	}
	if (m->instrs >= m->stop_at) {
		stop(c, KPL_TIME);
		return;
	}
	kpl_count *k = count_at(m, pc);
	if (k->pc == pc && k->size == size)
		m->instrs += k->n;
	else if (!refused(c, pc, size))
		m->instrs += count_block(c, k, pc, size);
}

static void on_code(uc_engine *uc, uint64_t pc, uint32_t size, void *user)
{
	kpl_cpu *c = user;

	if (c->reason)
		stop(c, c->reason);
	else if (c->m->instrs >= c->m->stop_at)
		stop(c, KPL_TIME);
	else if (!refused(c, pc, size))
		c->m->instrs++;
}

/* What a run that Go starts from within a hook would overwrite. */
struct level {
	int reason, in_callout;
};

static struct level enter_go(kpl_cpu *c, int in_callout)
{
	struct level l = { c->reason, c->in_callout };

	c->in_callout = in_callout;
	return l;
}

static void leave_go(kpl_cpu *c, const struct level *l)
{
	c->reason = l->reason;
	c->in_callout = l->in_callout;
	c->miss = 0;
}

static void on_intr(uc_engine *uc, uint32_t vector, void *user)
{
	kpl_cpu *c = user;
	kpl_regs regs, old;

	if (c->reason >= KPL_EXIT)
		return; /* the run is over, only its block is not */
	if (vector != 3 && vector != 1) {
		fault(c, vector);
		return;
	}
	c->m->extra += c->m->trap_cost;
	kpl_read_regs(c, &regs);
	old = regs;
	struct level l = enter_go(c, 0);
	int answer = kplTrap(c->m->handle, c->n, vector, &regs);
	leave_go(c, &l);
	switch (answer) {
	case KPL_RESUME:
		write_regs(c, &regs, &old, 1);
		break;
	case KPL_NOT_MINE:
		fault(c, vector);
		break;
	default:
		stop(c, KPL_ERROR);
	}
}

static bool on_invalid(uc_engine *uc, void *user)
{
	kpl_cpu *c = user;

	if (c->reason < KPL_EXIT) {
		c->reason = KPL_FAULT;
		c->vector = 6;
		c->addr = 0;
		c->access = 0;
	}
	return false; /* which ends the run */
}

/* The hooks from here on are called in the middle of a block. The engine would
 * take a stop, or a written rip, at the block's next load, with half of it done
 * and rip at its start. So they only leave a reason: the block ends as it
 * would, and the hook of the next one stops. */

/* syscall and sysenter have nowhere to go in this machine. */
static void on_syscall(uc_engine *uc, void *user)
{
	kpl_cpu *c = user;

	if (c->reason >= KPL_EXIT)
		return;
	uc_reg_read(uc, UC_X86_REG_RIP, &c->at);
	c->vector = 6;
	c->addr = 0;
	c->access = 0;
	c->reason = KPL_FAULT;
}

static void callout(kpl_cpu *c)
{
	uint64_t rip, rdi;
	int ids[] = { UC_X86_REG_RIP, UC_X86_REG_RDI };
	void *vals[] = { &rip, &rdi };

	uc_reg_read_batch(c->uc, ids, vals, 2);
	kpl_region *r = region_at(c->m, rdi);
	kpl_regs *frame = NULL;
	if (r && r->end - rdi >= sizeof *frame) {
		uint64_t i = (rdi - r->start) / PAGE, j = (rdi - r->start + sizeof *frame - 1) / PAGE;
		if (r->attr[i] & KPL_W && r->attr[j] & KPL_W) {
			kpl_touch(c->m, rdi, sizeof *frame);
			frame = (kpl_regs *)(r->host + (rdi - r->start));
		}
	}
	struct level l = enter_go(c, 1);
	int answer = kplCallout(c->m->handle, c->n, rip, rdi, frame);
	leave_go(c, &l);
	if (answer != KPL_RESUME)
		c->reason = KPL_ERROR;
}

static void on_out(uc_engine *uc, uint32_t port, int size, uint32_t value, void *user)
{
	kpl_cpu *c = user;
	uint64_t v;

	if (c->reason >= KPL_EXIT)
		return;
	switch (port) {
	case 0xE0:
		callout(c);
		return;
	case 0xE1:
		if (c->depth == 1) /* a handler runs with preemption off */
			c->reason = KPL_YIELD;
		return;
	case 0xE2:
		uc_reg_read(uc, UC_X86_REG_RDI, &c->arg);
		c->reason = KPL_SLEEP;
		return;
	case 0xE3:
		c->reason = KPL_EXIT;
		return;
	case 0xE4:
		console_put(c->m, value);
		return;
	case 0xE5:
		v = c->m->instrs + c->m->extra;
		break;
	case 0xE6:
		v = c->m->task;
		break;
	case 0xE7:
		v = c->n;
		break;
	default:
		return;
	}
	uc_reg_write(uc, UC_X86_REG_RAX, &v);
}

/* ---- CPUs ---- */

static uc_err add_hooks(kpl_cpu *c)
{
	uc_engine *uc = c->uc;
	uc_hook h;
	uc_err e;

	(e = uc_hook_add(uc, &h, UC_HOOK_TLB_FILL, on_fill, c, 1, 0)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_BLOCK, on_block, c, 1, 0)) ||
		(c->m->every && (e = uc_hook_add(uc, &h, UC_HOOK_CODE, on_code, c, 1, 0))) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INTR, on_intr, c, 1, 0)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN_INVALID, on_invalid, c, 1, 0)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN, on_out, c, 1, 0, UC_X86_INS_OUT)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN, on_syscall, c, 1, 0, UC_X86_INS_SYSCALL)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN, on_syscall, c, 1, 0, UC_X86_INS_SYSENTER));
	return e;
}

static uc_err map_regions(kpl_cpu *c)
{
	uc_err e = UC_ERR_OK;

	for (int i = 0; i < c->m->nregions && !e; i++) {
		kpl_region *r = &c->m->regions[i];
		e = uc_mem_map_ptr(c->uc, ALIAS(r->start), r->end - r->start, UC_PROT_ALL, r->host);
	}
	return e;
}

/* Kernel mode as a booted kernel leaves it: paging, write protection, SSE. */
static uc_err set_modes(kpl_cpu *c)
{
	uint64_t cr0 = 0x80050033, cr4 = 0;
	uint32_t mxcsr = 0x1f80;
	uint16_t cs = 0x10, ds = 0x18, fpcw = 0x37f, fptag = 0xffff;
	uc_err e;

	uc_reg_read(c->uc, UC_X86_REG_CR4, &cr4); /* OSXSAVE where the model has it */
	cr4 |= 0x6f0;
	(e = uc_reg_write(c->uc, UC_X86_REG_CR4, &cr4)) || (e = uc_reg_write(c->uc, UC_X86_REG_CR0, &cr0)) ||
		(e = uc_reg_write(c->uc, UC_X86_REG_CS, &cs)) || (e = uc_reg_write(c->uc, UC_X86_REG_SS, &ds)) ||
		(e = uc_reg_write(c->uc, UC_X86_REG_MXCSR, &mxcsr)) ||
		(e = uc_reg_write(c->uc, UC_X86_REG_FPCW, &fpcw)) ||
		(e = uc_reg_write(c->uc, UC_X86_REG_FPTAG, &fptag));
	return e;
}

kpl_cpu *kpl_cpu_new(kpl_machine *m, int n, int model, const char **error)
{
	kpl_cpu *c = calloc(1, sizeof *c);
	uc_engine *uc = NULL;
	uc_context *ctx = NULL;
	uc_err e;

	if (!c)
		return NULL;
	c->m = m;
	c->n = n;
	if (!(e = uc_open(UC_ARCH_X86, UC_MODE_64, &uc))) {
		c->uc = uc;
		(e = uc_ctl_set_cpu_model(uc, model)) || (e = uc_ctl_tlb_mode(uc, UC_TLB_VIRTUAL)) ||
			(e = add_hooks(c)) || (e = map_regions(c)) || (e = set_modes(c)) ||
			(e = uc_context_alloc(uc, &ctx));
		c->pristine = ctx;
	}
	if (e) {
		*error = uc_strerror(e);
		kpl_cpu_free(c);
		return NULL;
	}
	return c;
}

void kpl_cpu_free(kpl_cpu *c)
{
	if (c->pristine)
		uc_context_free(c->pristine);
	if (c->uc)
		uc_close(c->uc);
	free(c);
}

void kpl_cpu_set_gs(kpl_cpu *c, uint64_t base) { uc_reg_write(c->uc, UC_X86_REG_GS_BASE, &base); }

void kpl_cpu_set_fs(kpl_cpu *c, uint64_t base) { uc_reg_write(c->uc, UC_X86_REG_FS_BASE, &base); }

void kpl_cpu_set_ip(kpl_cpu *c, uint64_t ip) { uc_reg_write(c->uc, UC_X86_REG_RIP, &ip); }

uint64_t kpl_cpu_ip(kpl_cpu *c)
{
	uint64_t v = 0;
	uc_reg_read(c->uc, UC_X86_REG_RIP, &v);
	return v;
}

uint64_t kpl_cpu_gs(kpl_cpu *c)
{
	uint64_t v = 0;
	uc_reg_read(c->uc, UC_X86_REG_GS_BASE, &v);
	return v;
}

uint64_t kpl_cpu_fs(kpl_cpu *c)
{
	uint64_t v = 0;
	uc_reg_read(c->uc, UC_X86_REG_FS_BASE, &v);
	return v;
}

/* The CPU as it is now is what kpl_cpu_reset goes back to. */
void kpl_cpu_keep(kpl_cpu *c) { uc_context_save(c->uc, c->pristine); }

/* The engine counts an exception that a hook took as still in delivery, so
 * that the next one would be a double fault. Only its context forgets. */
void kpl_cpu_reset(kpl_cpu *c) { uc_context_restore(c->uc, c->pristine); }

/* addr to end is executable and in one region; one page at a time, for the
 * engine takes the first page's translation for all. */
void kpl_cpu_drop(kpl_cpu *c, uint64_t addr, uint64_t end)
{
	while (addr < end) {
		uint64_t next = (addr | (PAGE - 1)) + 1;
		if (next > end)
			next = end;
		uc_ctl_remove_cache((uc_engine *)c->uc, addr, next);
		addr = next;
	}
}

void kpl_cpu_flush_tlb(kpl_cpu *c) { uc_ctl_flush_tlb((uc_engine *)c->uc); }

const char *kpl_strerror(int err) { return uc_strerror(err); }

static bool canonical(uint64_t va) { return (int64_t)(va << 16) >> 16 == (int64_t)va; }

static void classify(kpl_cpu *c, uc_err e)
{
	uint64_t rip = 0;

	uc_reg_read(c->uc, UC_X86_REG_RIP, &rip);
	c->ip = rip;
	if (c->reason >= KPL_EXIT)
		return;
	if (c->miss && e == UC_ERR_EXCEPTION) {
		c->reason = KPL_FAULT;
		c->addr = c->miss_addr;
		c->access = c->miss_access;
		c->vector = canonical(c->addr) ? 14 : 13;
		return;
	}
	if (c->reason)
		return;
	if (e) {
		c->reason = KPL_ENGINE;
		c->arg = e;
		return;
	}
	c->reason = rip == c->m->magic ? KPL_RETURN : KPL_HALT;
}

/* A run inside a hook that did not end at its end leaves the engine asked to
 * stop, which would end the outer run too, and in a callout in the middle of a
 * block. A run that begins at its end takes it back. */
static void take_back_stop(kpl_cpu *c)
{
	int reason = c->reason;

	c->reason = KPL_NONE;
	c->depth++;
	uc_emu_start(c->uc, c->m->magic, c->m->magic, 0, 0);
	c->depth--;
	c->reason = reason;
	if (!c->in_callout)
		uc_reg_write(c->uc, UC_X86_REG_RIP, &c->ip);
}

void kpl_run(kpl_cpu *c, uint64_t rip)
{
	c->reason = KPL_NONE;
	c->miss = 0;
	c->at = 0;
	c->depth++;
	uc_err e = uc_emu_start(c->uc, rip, c->m->magic, 0, 0);
	c->depth--;
	classify(c, e);
	if (c->depth && c->reason != KPL_RETURN)
		take_back_stop(c);
}
