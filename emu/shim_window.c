//go:build unicorn && cgo && linux && amd64

/* The window: a second mapping of a booted kernel's memory in an engine. Watched pages are accessed
 * there, so that the engine reports the virtual address of an access, not only the physical one. */

#include <stdlib.h>

#include "shim_private.h"

enum { NO_PAGE = -1 };
#define NOWHERE (~0ull)

static int *chain_of(struct kpl_window *l, uint64_t pa) { return &l->chains[pa / PAGE % KPL_CHAINS]; }

static struct kpl_page *page_of(const struct kpl_window *l, uint64_t va)
{
	int low = 0, high = l->npages;

	while (low < high) {
		int mid = (low + high) / 2;
		if (l->pages[mid].va == va)
			return &l->pages[mid];
		if (l->pages[mid].va > va)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* Puts a page into the window, if it is to be there: then 1. Physical memory has one place
 * there, so the TLB never has it for two watched addresses at once. */
int kpl_window_put(kpl_cpu *c, struct kpl_window *l, uint64_t va, uint64_t pa)
{
	struct kpl_page *p = page_of(l, va & ~(PAGE - 1));
	int *link;

	if (!p)
		return 0;
	pa &= ~(PAGE - 1);
	if (p->pa == pa)
		return 1;
	if (p->pa != NOWHERE) {
		for (link = chain_of(l, p->pa); &l->pages[*link] != p; link = &l->pages[*link].next)
			;
		*link = p->next;
	}
	for (link = chain_of(l, pa); *link != NO_PAGE; link = &l->pages[*link].next) {
		struct kpl_page *other = &l->pages[*link];
		if (other->pa == pa) {
			uc_ctl_flush_tlb((uc_engine *)c->uc);
			other->pa = NOWHERE;
			*link = other->next;
			break;
		}
	}
	p->pa = pa;
	link = chain_of(l, pa);
	p->next = *link;
	*link = p - l->pages;
	return 1;
}

/* The address of an access to the window. 0: the page has no watch any more. */
int kpl_window_address(struct kpl_window *l, uint64_t *at)
{
	uint64_t pa = *at - KPL_WINDOW;

	for (int i = *chain_of(l, pa); i != NO_PAGE; i = l->pages[i].next)
		if (l->pages[i].pa == (pa & ~(PAGE - 1))) {
			*at = l->pages[i].va | (pa & (PAGE - 1));
			return 1;
		}
	return 0;
}

static void add_page(struct kpl_window *l, uint64_t va)
{
	if (!l->npages || l->pages[l->npages - 1].va < va)
		l->pages[l->npages++] = (struct kpl_page){ va, NOWHERE, NO_PAGE };
}

/* The pages that are to be in the window: an access may begin in the one before. */
int kpl_window_list(struct kpl_window *l, const kpl_watch *w, int n)
{
	if (!(l->pages = calloc(n, 3 * sizeof *l->pages)))
		return -1;
	for (int i = 0; i < KPL_CHAINS; i++)
		l->chains[i] = NO_PAGE;
	for (int i = 0; i < n; i++) {
		uint64_t first = w[i].addr & ~(PAGE - 1), last = (w[i].addr + w[i].len - 1) & ~(PAGE - 1);
		if (!(w[i].kinds & (KPL_WATCH_READ | KPL_WATCH_WRITE)))
			continue;
		if (first)
			add_page(l, first - PAGE);
		add_page(l, first);
		add_page(l, last);
	}
	return 0;
}

/* A booted kernel's memory once more. It stays. */
int kpl_window_map(kpl_cpu *c)
{
	kpl_machine *m = c->m;

	for (; c->window < m->nram; c->window++) {
		kpl_region *r = &m->ram[c->window];
		if (uc_mem_map_ptr(c->uc, KPL_WINDOW + r->start, r->end - r->start, UC_PROT_ALL, r->host))
			return -1;
	}
	if (m->nram && c->window == m->nram) {
		if (uc_mem_map_ptr(c->uc, KPL_WINDOW + KPL_SEEN, KPL_MAX_VIEWS * PAGE, UC_PROT_ALL, m->seen))
			return -1;
		c->window++;
	}
	return 0;
}
