//go:build cgo && linux && amd64

/* A CPU: an engine from its making to its end, and its runs. */

#include <stdlib.h>

#include "shim_private.h"

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
		(e = uc_ctl_set_cpu_model(uc, model)) || (e = uc_ctl_set_tcg_buffer_size(uc, BUFFER)) ||
			(e = uc_ctl_tlb_mode(uc, UC_TLB_VIRTUAL)) || (e = kpl_add_hooks(c)) || (e = map_regions(c)) || (e = set_modes(c)) ||
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

/* Between runs: drops all translations when they are many. */
static void make_room(kpl_cpu *c)
{
	if (c->depth || in_buffer(c) < FLUSH_AT)
		return;
	uc_ctl_flush_tb((uc_engine *)c->uc);
	kpl_forget_all_counts(c->m);
	c->flushed = c->m->translated;
}

void kpl_cpu_flush_tlb(kpl_cpu *c) { uc_ctl_flush_tlb((uc_engine *)c->uc); }

const char *kpl_strerror(int err) { return uc_strerror(err); }

/* The engine's version, a byte a part, the major one first. */
unsigned kpl_version(void) { return uc_version(NULL, NULL); }

static bool canonical(uint64_t va) { return (int64_t)(va << 16) >> 16 == (int64_t)va; }

static void classify(kpl_cpu *c, uc_err e)
{
	uint64_t rip = 0;

	uc_reg_read(c->uc, UC_X86_REG_RIP, &rip);
	c->ip = rip;
	if (c->reason >= KPL_EXIT || c->reason == KPL_RETURN)
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
	c->reason = rip == c->m->inner ? KPL_RETURN : KPL_HALT;
}

/* A run inside a hook that did not end at its end leaves the engine asked to
 * stop, which would end the outer run too, and in a callout in the middle of a
 * block. A run that begins at its end takes it back. */
static void take_back_stop(kpl_cpu *c)
{
	int reason = c->reason;

	c->reason = KPL_NONE;
	c->m->translated += RUN_BYTES;
	c->depth++;
	uc_emu_start(c->uc, c->m->inner, c->m->inner, 0, 0);
	c->depth--;
	c->reason = reason;
	if (!c->in_callout)
		uc_reg_write(c->uc, UC_X86_REG_RIP, &c->ip);
}

void kpl_run(kpl_cpu *c, uint64_t rip)
{
	c->miss = 0;
	c->at = 0;
	c->reason = KPL_NONE;
	make_room(c);
	if (in_buffer(c) > NEVER_ABOVE) {
		c->reason = KPL_CROWDED;
		return;
	}
	if (c->depth) /* ends at inner, which is translated for it */
		c->m->translated += RUN_BYTES;
	c->depth++;
	uc_err e = uc_emu_start(c->uc, rip, c->depth == 1 ? 0 : c->m->inner, 0, 0);
	c->depth--;
	classify(c, e);
	if (c->depth && c->reason != KPL_RETURN)
		take_back_stop(c);
}
