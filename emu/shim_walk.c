//go:build unicorn && cgo && linux && amd64

/* The page tables of a booted kernel, walked as the processor does
 * (SDM Vol. 3A, 4.5 "4-Level Paging and 5-Level Paging"). */

#include "shim_private.h"

enum { P = 1, W = 2, U = 4, A = 0x20, D = 0x40, LARGE = 0x80 };
#define NX (1ull << 63)
#define FRAME 0xffffffffff000ull

enum { CR4_SMEP = 1 << 20, CR4_SMAP = 1 << 21, FLAG_AC = 1 << 18 };

/* The memory at a physical address, NULL where there is none. */
static kpl_region *ram_at(kpl_machine *m, uint64_t pa)
{
	for (int i = 0; i < m->nram; i++)
		if (pa - m->ram[i].start < m->ram[i].end - m->ram[i].start)
			return &m->ram[i];
	return NULL;
}

int kpl_ram(kpl_machine *m, uint64_t pa, kpl_place *p)
{
	kpl_region *r = ram_at(m, pa);

	if (!r)
		return 0;
	uint64_t i = (pa - r->start) / PAGE;
	*p = (kpl_place){ r->host + (pa - r->start), &r->attr[i], r->host + i * PAGE, r->start + i * PAGE, pa,
			  r->attr[i] & (KPL_R | KPL_W | KPL_X), 1 };
	return 1;
}

static void set_bits(kpl_machine *m, uint64_t *entry, const kpl_place *p, uint64_t bits)
{
	if ((*entry & bits) == bits)
		return;
	kpl_keep(m, p);
	*entry |= bits;
}

int kpl_walk(kpl_machine *m, uint64_t cr3, uint64_t va, int need, int mark, kpl_place *p)
{
	uint64_t table = cr3 & FRAME;
	int perm = KPL_R | KPL_W | KPL_X | KPL_U;

	for (int shift = m->levels == 5 ? 48 : 39;; shift -= 9) {
		kpl_place t;
		if (!kpl_ram(m, table + (va >> shift & 511) * 8, &t))
			return KPL_NO_RAM;
		if (!(t.perm & KPL_R))
			return p->pa = t.pa, KPL_FILTERED;
		uint64_t *entry = (uint64_t *)t.host, e = *entry;
		if (!(e & P))
			return KPL_ABSENT;
		perm &= (e & W ? ~0 : ~KPL_W) & (e & U ? ~0 : ~KPL_U) & (e & NX ? ~KPL_X : ~0);
		if (shift != 12 && (shift > 30 || !(e & LARGE))) {
			if (mark)
				set_bits(m, entry, &t, A);
			table = e & FRAME;
			continue;
		}
		if (need & ~perm)
			return KPL_FORBIDDEN;
		if (mark)
			set_bits(m, entry, &t, need & KPL_W ? A | D : A);
		uint64_t low = (1ull << shift) - 1, pa = (e & FRAME & ~low) | (va & low);
		int clean = !(*entry & D);
		if (!kpl_ram(m, pa, p)) {
			*p = (kpl_place){ .page = pa & ~(PAGE - 1), .pa = pa, .perm = perm };
			return pa - KPL_DEVICES < KPL_DEVICES_END - KPL_DEVICES ? KPL_DEVICE : KPL_NO_RAM;
		}
		if (!(p->perm & KPL_R))
			return KPL_FILTERED;
		p->perm = perm;
		if (mark && clean) /* the first write has to come here, to set D */
			p->perm &= ~KPL_W;
		return KPL_FOUND;
	}
}

uint64_t kpl_cr3(kpl_cpu *c)
{
	uint64_t v = 0;
	uc_reg_read(c->uc, UC_X86_REG_CR3, &v);
	return v;
}

/* What the guest has at an address: memory of the machine's own, or of a booted
 * kernel by its page tables. To its end of page. */
int kpl_at(kpl_machine *m, uint64_t va, kpl_place *p)
{
	kpl_region *r = region_at(m, va);

	if (r) {
		uint64_t i = (va - r->start) / PAGE;
		*p = (kpl_place){ r->host + (va - r->start), &r->attr[i], r->host + i * PAGE, r->start + i * PAGE,
				  0, r->attr[i] & (KPL_R | KPL_W | KPL_X), 0 };
		return p->perm != 0;
	}
	return m->nram && kpl_walk(m, kpl_cr3(m->cur), va, 0, 0, p) == KPL_FOUND;
}

/* The TLB fill of a booted kernel. */
int kpl_fill(kpl_cpu *c, uint64_t va, int need, kpl_place *p)
{
	kpl_machine *m = c->m;
	uint16_t cs = 0;
	int user, found;

	if (m->dropping)
		return kpl_walk(m, kpl_cr3(c), va, 0, 0, p);
	uc_reg_read(c->uc, UC_X86_REG_CS, &cs);
	user = (cs & 3) == 3;
	found = kpl_walk(m, kpl_cr3(c), va, need | (user ? KPL_U : 0), 1, p);
	if (found == KPL_FOUND && !user && p->perm & KPL_U) {
		uint64_t cr4 = 0, flags = 0;
		uc_reg_read(c->uc, UC_X86_REG_CR4, &cr4);
		if (need & KPL_X ? cr4 & CR4_SMEP : 0)
			found = KPL_FORBIDDEN;
		if (cr4 & CR4_SMEP)
			p->perm &= ~KPL_X;
		if (cr4 & CR4_SMAP && !(need & KPL_X)) {
			uc_reg_read(c->uc, UC_X86_REG_EFLAGS, &flags);
			if (!(flags & FLAG_AC))
				found = KPL_FORBIDDEN;
		}
	}
	return found;
}
