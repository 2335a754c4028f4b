//go:build unicorn && cgo && linux && amd64

/* What a CPU needs of its engine and the Go binding has no call for. */

#include "shim_private.h"

/* Before memory is mapped. */
int kpl_cpu_setup(kpl_cpu *c)
{
	uc_err e;

	(e = uc_ctl_set_tcg_buffer_size((uc_engine *)c->uc, c->m->room.size)) ||
		(e = uc_ctl_tlb_mode((uc_engine *)c->uc, UC_TLB_VIRTUAL)) || (e = kpl_add_hooks(c));
	return e;
}

/* The same for a part of a page of a booted kernel. The engine looks the page up as
 * its CPU would, and crashes if it must not fetch there. So this is called for
 * mapped pages only, and the CPU may fetch any page meanwhile. */
static void drop_booted(kpl_cpu *c, uint64_t addr, uint64_t end)
{
	kpl_place p;

	if (!kpl_at(c->m, addr, &p))
		return;
	c->m->dropping = 1;
	uc_ctl_remove_cache((uc_engine *)c->uc, addr, end);
	c->m->dropping = 0;
	uc_ctl_flush_tlb((uc_engine *)c->uc);
}

/* Drops what was translated of the text from addr to end, which is executable
 * and in one region. Page by page: the engine would look up the first page only
 * and take the others to follow it. */
void kpl_cpu_drop(kpl_cpu *c, uint64_t addr, uint64_t end)
{
	while (addr < end) {
		uint64_t next = (addr | (PAGE - 1)) + 1;
		if (next > end)
			next = end;
		if (!c->m->nram)
			uc_ctl_remove_cache((uc_engine *)c->uc, addr, next);
		else
			drop_booted(c, addr, next);
		addr = next;
	}
}

/* Drops all translations. Between runs only. */
void kpl_cpu_drop_all(kpl_cpu *c)
{
	uc_ctl_flush_tb((uc_engine *)c->uc);
	kpl_watch_hooks(c);
	kpl_forget_all_counts(c->m);
	*c->buffer = (kpl_buffer){ 0 };
	c->m->work += KPL_WORK_FLUSH;
}

void kpl_cpu_flush_tlb(kpl_cpu *c) { uc_ctl_flush_tlb((uc_engine *)c->uc); }
