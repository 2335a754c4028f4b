//go:build unicorn && cgo && linux && amd64

/* Two views of text. If the host changes a page of a booted kernel's text (an int3, a jump, the call of
 * a trampoline), the guest reads and writes another page, which holds the text without the host's
 * changes. The page that is executed, and that the host reads, has the guest's changes and the host's. If
 * the guest changes bytes that the host has changed, the host gets a report. From then on the guest's bytes
 * are executed, but for the first of a probe: an int3 stays there, so no hit is lost until the host has the
 * report. The host can hold an int3 in a byte (kpl_hold), which is so even where the guest has one, too. */

#include <stdlib.h>

#include "shim_private.h"

enum { NOTHING = -1, CHANGE = 5 }; /* CHANGE: the bytes of a jump or a call of the host's */
enum { INT3 = 0xcc, CALL = 0xe8, JUMP = 0xe9 };

static kpl_view *view_of(kpl_machine *m, uint64_t pa)
{
	int i = m->view_chains[pa / PAGE % KPL_VIEW_CHAINS];

	for (; i != NOTHING; i = m->views[i].next)
		if (m->views[i].pa == (pa & ~(PAGE - 1)))
			return &m->views[i];
	return NULL;
}

void kpl_view_init(kpl_machine *m, uint8_t *seen)
{
	m->seen = seen;
	for (int i = 0; i < KPL_VIEW_CHAINS; i++)
		m->view_chains[i] = NOTHING;
}

void kpl_view_free(kpl_machine *m)
{
	for (int i = 0; i < m->nviews; i++)
		free(m->views[i].was);
	free(m->views);
	free(m->taken);
	free(m->held);
}

/* The TLB has the page for the guest's accesses, and for fetches: where that is to be known apart. */
void kpl_view_fill(kpl_cpu *c, kpl_place *p, int need, uint64_t *paddr)
{
	kpl_view *v = view_of(c->m, p->page);

	if (!v)
		return;
	if (need == KPL_X)
		p->perm &= ~(KPL_R | KPL_W);
	else
		*paddr = KPL_SEEN + (v - c->m->views) * PAGE;
}

static void take(kpl_machine *m, uint64_t va)
{
	if (m->ntaken == m->cap_taken) {
		int cap = m->cap_taken ? 2 * m->cap_taken : 64;
		uint64_t *t = realloc(m->taken, cap * sizeof *t);
		if (!t)
			return;
		m->taken = t;
		m->cap_taken = cap;
	}
	m->taken[m->ntaken++] = va;
}

/* The view of an address, and the offset in it; NULL where there is none. */
static kpl_view *view_at(kpl_machine *m, uint64_t va, uint64_t *at)
{
	for (int i = 0; i < m->nviews; i++) {
		*at = va - m->views[i].va;
		if (*at < PAGE)
			return &m->views[i];
	}
	return NULL;
}

/* The text at an address is the guest's again. */
static void give_back(kpl_machine *m, uint64_t va)
{
	uint64_t at;
	kpl_view *v = view_at(m, va, &at);

	if (v)
		v->text[at] = v->was[at] = v->seen[at];
}

/* The byte that the host has changed at an address, 0 where it has not. */
static int changed(kpl_machine *m, uint64_t va)
{
	uint64_t at;
	kpl_view *v = view_at(m, va, &at);

	return v && v->text[at] != v->was[at] ? v->text[at] : 0;
}

static int held(const kpl_machine *m, uint64_t va)
{
	for (int i = 0; i < m->nheld; i++)
		if (m->held[i] == va)
			return 1;
	return 0;
}

/* The host holds an int3 at an address from now on, or lets go of it; -1 without memory. */
int kpl_hold(kpl_machine *m, uint64_t va, int on)
{
	for (int i = 0; i < m->nheld; i++)
		if (m->held[i] == va) {
			if (!on)
				m->held[i] = m->held[--m->nheld];
			return 0;
		}
	if (!on)
		return 0;
	if (m->nheld == m->cap_held) {
		int cap = m->cap_held ? 2 * m->cap_held : 64;
		uint64_t *h = realloc(m->held, cap * sizeof *h);
		if (!h)
			return -1;
		m->held = h;
		m->cap_held = cap;
	}
	m->held[m->nheld++] = va;
	return 0;
}

/* The guest has changed a byte of a change of the host's: all of that is the guest's again, but for an
 * int3 in its first byte. */
static void yield_to_guest(kpl_machine *m, uint64_t va)
{
	uint64_t at, first = va, n = 1;

	for (uint64_t a = va - CHANGE + 1; a <= va; a++) {
		int b = changed(m, a);
		if (b != JUMP && b != CALL)
			continue;
		first = a;
		n = CHANGE;
		break;
	}
	int stays = n == CHANGE || changed(m, va) == INT3 || held(m, va);
	for (uint64_t a = first; a < first + n; a++)
		give_back(m, a);
	kpl_view *v = view_at(m, first, &at);
	if (stays && v)
		v->text[at] = INT3;
}

/* What the guest has written since the last time is executed from now on. */
static void merge(kpl_machine *m, kpl_view *v)
{
	if (!memcmp(v->seen, v->was, PAGE))
		return;
	for (uint64_t i = 0; i < PAGE; i++) {
		if (v->seen[i] == v->was[i])
			continue;
		if (v->text[i] != v->was[i] || held(m, v->va + i)) {
			take(m, v->va + i);
			yield_to_guest(m, v->va + i);
		} else
			v->text[i] = v->was[i] = v->seen[i];
	}
}

/* The page was written by the guest, and is about to be fetched. */
void kpl_view_merge(kpl_machine *m, uint64_t page)
{
	kpl_view *v = view_of(m, page);

	if (v)
		merge(m, v);
}

/* The same of all pages that the guest may have written. */
void kpl_view_settle(kpl_cpu *c)
{
	kpl_machine *m = c->m;
	int any = 0;

	for (int i = 0; i < m->nviews; i++)
		any |= *m->views[i].attr & KPL_TLB_W;
	if (!any)
		return;
	uc_ctl_flush_tlb((uc_engine *)c->uc);
	for (int i = 0; i < m->nviews; i++) {
		kpl_view *v = &m->views[i];
		if (!(*v->attr & KPL_TLB_W))
			continue;
		*v->attr &= ~KPL_TLB_W;
		if (memcmp(v->seen, v->was, PAGE))
			kpl_cpu_drop(c, v->va, v->va + PAGE);
		merge(m, v);
	}
}

/* The host is about to change text: the guest is to see it as it is now. */
int kpl_view_add(kpl_cpu *c, uint64_t addr, uint64_t size)
{
	kpl_machine *m = c->m;
	kpl_place p;

	for (uint64_t va = addr & ~(PAGE - 1); va < addr + size; va += PAGE) {
		if (!kpl_at(m, va, &p) || !p.ram || view_of(m, p.page))
			continue;
		if (m->nviews == KPL_MAX_VIEWS)
			return -1;
		if (m->nviews == m->cap_views) {
			int cap = m->cap_views ? 2 * m->cap_views : 64;
			kpl_view *v = realloc(m->views, cap * sizeof *v);
			if (!v)
				return -1;
			m->views = v;
			m->cap_views = cap;
		}
		int *chain = &m->view_chains[p.page / PAGE % KPL_VIEW_CHAINS];
		kpl_view v = { va, p.page, p.page_host, m->seen + m->nviews * PAGE, malloc(PAGE), p.attr, *chain };
		if (!v.was)
			return -1;
		memcpy(v.seen, v.text, PAGE);
		memcpy(v.was, v.text, PAGE);
		*chain = m->nviews;
		m->views[m->nviews++] = v;
		uc_ctl_flush_tlb((uc_engine *)c->uc);
	}
	return 0;
}

/* What the guest has at an address, NULL where it sees what is executed. */
uint8_t *kpl_view_at(kpl_machine *m, uint64_t va)
{
	kpl_place p;
	kpl_view *v;

	if (!m->nviews || !kpl_at(m, va, &p) || !p.ram || !(v = view_of(m, p.page)))
		return NULL;
	return v->seen + (va & (PAGE - 1));
}

/* Text has been put back: the guest sees it so, but for the pages in kept, n of them, of which
 * it sees what they hold. */
void kpl_view_reset(kpl_machine *m, const uint8_t *kept, int n)
{
	for (int i = 0; i < m->nviews; i++) {
		kpl_view *v = &m->views[i];
		const uint8_t *from = i < n ? kept + i * PAGE : v->text;
		memcpy(v->seen, from, PAGE);
		memcpy(v->was, from, PAGE);
	}
	m->ntaken = 0;
}
