//go:build unicorn && cgo && linux && amd64

/* The hooks, which the engine calls: TLB fills, blocks, exceptions, hypercalls.
 * doc.go follows a hit through them ("A hit, from the hook to Go and back"). */

#include <stdlib.h>

#include "shim_private.h"

#include "_cgo_export.h"

/* Ends the run before the block that is about to begin. For the block hook and
 * exceptions only: elsewhere the engine would stop in the middle of a block. */
static void stop(kpl_cpu *c, int reason)
{
	c->reason = reason;
	uc_emu_stop(c->uc);
}

/* The same from the middle of a block: the block ends, and the hook of the next
 * one stops. */
static void stop_later(kpl_cpu *c, int reason)
{
	c->reason = reason;
	c->m->stop_at = 0;
}

static void fault(kpl_cpu *c, int vector)
{
	c->vector = vector;
	c->addr = 0;
	c->access = 0;
	stop(c, KPL_FAULT);
}

/* A page of a booted kernel is never in the TLB for writing and for fetching at once,
 * whatever its addresses: the engine sees the first write to a page by each entry, and drops
 * what was translated of those bytes, but none that comes later or by another address. So a
 * fetch after writes begins with the whole page's translations dropped. */
static void apart(kpl_cpu *c, uint64_t va, kpl_place *p, int need)
{
	int writable = p->perm & KPL_W;

	if (!p->ram || c->m->dropping)
		return;
	if (need == KPL_X) {
		if (*p->attr & KPL_TLB_W) {
			uc_ctl_flush_tlb(c->uc);
			kpl_cpu_drop(c, va & ~(PAGE - 1), (va | (PAGE - 1)) + 1);
			*p->attr &= ~KPL_TLB_W;
			if (c->m->nviews)
				kpl_view_merge(c->m, p->page);
		}
		*p->attr |= KPL_FETCHED | KPL_TLB_X;
		p->perm &= ~KPL_W;
		return;
	}
	p->perm &= ~KPL_X;
	if (*p->attr & KPL_TLB_X) {
		if (need == KPL_W) {
			uc_ctl_flush_tlb(c->uc);
			*p->attr &= ~KPL_TLB_X;
		} else {
			writable = 0;
			p->perm &= ~KPL_W;
		}
	}
	if (writable)
		*p->attr |= KPL_TLB_W;
}

static bool on_fill(uc_engine *uc, uint64_t va, uc_mem_type type, uc_tlb_entry *e, void *user)
{
	kpl_cpu *c = running(user);
	uint8_t need = type == UC_MEM_WRITE ? KPL_W : type == UC_MEM_FETCH ? KPL_X : KPL_R;
	kpl_region *r = region_at(c->m, va);
	kpl_place p;
	int found;

	add_work(c->m, KPL_WORK_FILL);
	if (c->user && va >= KPL_USER_END)
		found = KPL_ABSENT;
	else if (r || !c->m->nram)
		found = kpl_at(c->m, va, &p) && p.perm & need ? KPL_FOUND : KPL_ABSENT;
	else
		found = kpl_fill(c, va, need, &p);
	if (found != KPL_FOUND && found != KPL_DEVICE) {
		c->miss = found;
		c->miss_addr = found == KPL_FILTERED || found == KPL_NO_RAM ? p.pa : va;
		c->miss_access = need;
		return false;
	}
	if (found == KPL_FOUND && c->m->track && !(*p.attr & KPL_DIRTY)) {
		/* A clean page is read-only in the TLB: its first write comes
		 * here, and what it held is saved. */
		if (need == KPL_W)
			kpl_keep(c->m, &p);
		else
			p.perm &= ~KPL_W;
	}
	if (found == KPL_FOUND)
		apart(c, va, &p, need);
	e->paddr = r || !c->m->nram ? ALIAS(va) : p.pa & ~(PAGE - 1);
	if (found == KPL_FOUND && c->m->nviews && p.ram && !c->m->dropping)
		kpl_view_fill(c, &p, need, &e->paddr);
	if (found == KPL_FOUND && c->m->watches && p.ram && !c->m->dropping && kpl_watch_page(c, va, e->paddr)) {
		if (need == KPL_X)
			p.perm &= ~KPL_R;
		else
			e->paddr += KPL_WINDOW;
	}
	if (c->m->dropping)
		p.perm |= KPL_X;
	e->perms = (p.perm & KPL_R ? UC_PROT_READ : 0) | (p.perm & KPL_W ? UC_PROT_WRITE : 0) |
		   (p.perm & KPL_X ? UC_PROT_EXEC : 0);
	return true;
}

/* Whether user mode may not execute the instruction at an address, while the engine would, or would end it in another
 * exception, or would not survive it: in, out, ins, outs; sysret, rdpmc; moves to debug registers (SDM Vol. 2). */
int kpl_forbidden(kpl_machine *m, uint64_t at)
{
	struct text t = { .va = at };
	uint8_t b;

	for (int i = 0; i < 15 && next_byte(m, &t, &b); i++) {
		if (b == 0x0f)
			return next_byte(m, &t, &b) && (b == 0x07 || b == 0x23 || b == 0x33);
		if ((b & 0xf4) == 0xe4 || (b & 0xfc) == 0x6c)
			return 1;
		if ((b & 0xf0) != 0x40 && b != 0x66 && b != 0x67 && b != 0xf2 && b != 0xf3 && b != 0x2e && b != 0x36 &&
		    b != 0x3e && b != 0x26 && b != 0x64 && b != 0x65)
			return 0;
	}
	return 0;
}

/* Whether the block may have an instruction that look.go knows: a write to dr7 (or dr5, its
 * alias), which crashes or hangs the engine; an instruction that takes it far longer than
 * others; or one that a booted machine executes itself. The bytes may be part of another
 * instruction. */
static int suspect(kpl_cpu *c, uint64_t pc, uint32_t size)
{
	struct text t = { .va = pc };
	uint8_t last = 0, b;

	for (uint32_t i = 0; i < size && next_byte(c->m, &t, &b); i++, last = b) {
		if (last == 0x0f && (b == 0x23 || b == 0xae || b == 0xc7))
			return 1;
		if (c->m->nram && last == 0x0f && (b == 0x01 || b == 0x21 || (b >= 0x30 && b <= 0x32) || b == 0x38))
			return 1;
		if (c->user && ((b & 0xf4) == 0xe4 || (b & 0xfc) == 0x6c || (last == 0x0f && (b == 0x07 || b == 0x33))))
			return 1;
		if ((last == 0xd9 || last == 0xdd || last == 0xdf) && b < 0xc0 && (b & 0x28) == 0x20)
			return 1; /* /4 and /6 */
	}
	return 0;
}

/* Ends the run before the block at pc. A booted machine has code hooks, and the
 * engine leaves rip to them. */
static void stop_before(kpl_cpu *c, uint64_t pc, int reason)
{
	if (c->m->nram)
		kpl_set_eip(c, pc);
	stop(c, reason);
}

/* Looks at a block before any of it runs: refuses one with a write to dr7, has one
 * translated anew where an instruction got a hook. Of another, says how much work its
 * instructions make. */
static int refused(kpl_cpu *c, uint64_t pc, uint32_t size, uint32_t *work)
{
	int again = 0;
	uint64_t at;

	*work = 0;
	if (!suspect(c, pc, size))
		return 0;
	add_work(c->m, KPL_WORK_LOOK);
	at = kplLook(c->m->handle, c->n, pc, size, work, &again);
	if (again) {
		c->arg = size;
		stop_before(c, pc, KPL_AGAIN);
		return 1;
	}
	if (!at)
		return 0;
	if (c->user && at != pc && at != c->until) {
		/* It ends a block of its own, so that what precedes it is executed. */
		c->until = at;
		c->arg = size;
		stop_before(c, pc, KPL_AGAIN);
		return 1;
	}
	c->at = at;
	fault(c, c->user ? 13 : 6);
	return 1;
}

/* The instruction of a booted kernel's that has a hook of its own ends in an exception. */
void kpl_refuse(kpl_cpu *c, uint64_t at, int vector)
{
	c->at = at;
	c->vector = vector;
	c->addr = 0;
	c->access = 0;
	stop_before(c, at, KPL_FAULT);
}

/* The buffer of translations has all that a run may add to it. */
static int crowded(kpl_cpu *c)
{
	const kpl_buffer *b = c->buffer;
	uint64_t filled = b->high - b->low + b->since;

	return c->depth == 1 ? b->drop || filled > c->m->room.flush_at : filled > c->m->room.never_above;
}

static void add_translation(kpl_cpu *c, uint32_t size)
{
	c->buffer->since += KPL_BLOCK_BYTES + KPL_CODE_BYTES * (uint64_t)size;
}

/* A block has called its hook from this host address. A crowded buffer stays so: the run is to end for it. */
static void called_from(kpl_cpu *c, void *at)
{
	kpl_buffer *b = c->buffer;
	uint64_t host = (uintptr_t)at;

	if (crowded(c))
		return;
	if (!b->low)
		b->low = b->high = host;
	if (host > b->high) {
		b->high = host;
		b->since = 0;
	}
}

/* The engine has translated a block to run it next: a new one, one that was
 * overwritten, the end of a run inside a hook. Once that is too much, the run
 * ends before a block, in block() or on_code(). */
static void on_translated(uc_engine *uc, uc_tb *tb, uc_tb *prev, void *user)
{
	kpl_cpu *c = running(user);

	kpl_count *k = count_at(c->m, tb->pc, tb->size);

	/* What stood there before may have been another block of this size. */
	if (k)
		k->size = 0;
	add_translation(c, tb->size);
	add_work(c->m, KPL_WORK_BLOCK + KPL_WORK_BYTE * (uint64_t)tb->size);
	if (crowded(c))
		c->m->stop_at = 0;
}

/* Whether instructions at pc take time. */
static inline int counted(kpl_machine *m, uint64_t pc)
{
	return !m->free_hits || pc - m->own_start >= m->own_end - m->own_start;
}

static uint32_t count_block(kpl_cpu *c, uint64_t pc, uint32_t size, uint32_t work)
{
	kpl_count *known = count_at(c->m, pc, size), k = { pc, size, 0, work };
	uc_tb tb = { 0 };

	/* The block is about to run, so the engine has translated it. But where
	 * text overwrote itself, it has translated one instruction, and here it
	 * translates the whole block, which on_translated does not see. */
	if (uc_ctl_request_cache((uc_engine *)c->uc, pc, &tb) != UC_ERR_OK || tb.size != size || !tb.icount) {
		add_translation(c, tb.size);
		add_work(c->m, KPL_WORK_BLOCK + KPL_WORK_BYTE * (uint64_t)tb.size);
		tb.icount = size / 4 + 1;
	}
	k.n = counted(c->m, pc) ? tb.icount : 0;
	if (known)
		*known = k;
	else
		kpl_add_count(c->m, &k);
	return k.n;
}

/* The block hook of a machine that counts by instructions. It does not stop a
 * run, on_code does: with a code hook, the engine has not set rip here yet. */
static void on_block_of_code(uc_engine *uc, uint64_t pc, uint32_t size, void *user)
{
	kpl_cpu *c = running(user);

	c->block = pc;
	called_from(c, __builtin_return_address(0));
}

/* stop_at is reached: the run ends before the block, or an interrupt has come. */
static int interrupted(kpl_cpu *c, uint64_t pc)
{
	if (c->m->instrs < c->m->stop_at)
		return 0;
	switch (c->m->nram ? kpl_due(c, pc) : KPL_DUE_STOP) {
	case KPL_DUE_NOTHING:
		return 0;
	case KPL_DUE_STOP:
		stop_before(c, pc, c->reason ? c->reason : KPL_TIME);
	}
	return 1;
}

/* A block that the table of counts does not have, or before which the run ends. 0: it does
 * not run now. */
static __attribute__((noinline)) int block(kpl_cpu *c, uint64_t pc, uint32_t size)
{
	uint32_t work;

	if (c->reason)
		stop_before(c, pc, c->reason);
	else if (crowded(c))
		stop_before(c, pc, KPL_CROWDED);
	else if (!interrupted(c, pc) && !refused(c, pc, size, &work)) {
		c->m->begun = c->m->instrs;
		c->m->instrs += count_block(c, pc, size, work);
		add_work(c->m, work);
		return 1;
	}
	return 0;
}

/* Counts a block. from is the hook's return address, NULL where that is known. 0: it does not run now. */
static inline int begin_block(kpl_cpu *c, uint64_t pc, uint32_t size, void *from)
{
	kpl_machine *m = c->m;
	kpl_count *k = count_at(m, pc, size);

	if (__builtin_expect(k && m->instrs < m->stop_at, 1)) {
		m->begun = m->instrs;
		m->instrs += k->n;
		if (__builtin_expect(k->work, 0))
			add_work(m, k->work);
		return 1;
	}
	if (from)
		called_from(c, from);
	return block(c, pc, size);
}

static void on_block(uc_engine *uc, uint64_t pc, uint32_t size, void *user)
{
	kpl_cpu *c = running(user);

	c->block = pc;
	if (__builtin_expect(c->watching, 0)) {
		c->fresh = 1;
		c->block_size = size;
		called_from(c, __builtin_return_address(0));
		return;
	}
	begin_block(c, pc, size, __builtin_return_address(0));
}

/* Counts the block that on_block has left to the code hook. 0: it does not run now. */
int kpl_block_begins(kpl_cpu *c, uint64_t pc)
{
	uint64_t before = c->m->instrs;
	int runs = begin_block(c, pc, c->block_size, NULL);

	c->left = c->m->instrs - before;
	return runs;
}

static void on_code(uc_engine *uc, uint64_t pc, uint32_t size, void *user)
{
	kpl_cpu *c = running(user);
	uint32_t work;

	if (c->reason)
		stop(c, c->reason);
	else if (crowded(c))
		stop(c, KPL_CROWDED);
	else if (!interrupted(c, pc) && !refused(c, pc, size, &work)) {
		c->m->instrs += counted(c->m, pc);
		add_work(c->m, work);
	}
}

/* The machine whose hook has called Go on this thread. Go stays on the thread
 * until it returns. */
static __thread const kpl_machine *here;

int kpl_here(const kpl_machine *m) { return here == m; }

struct level kpl_enter_go(kpl_cpu *c, int in_callout)
{
	struct level l = { c->reason, c->in_callout, here, kpl_pause_rescue() };

	here = c->m;
	c->m->crossings++;
	c->in_callout = in_callout;
	return l;
}

void kpl_leave_go(kpl_cpu *c, const struct level *l)
{
	here = l->here;
	c->reason = l->reason;
	c->in_callout = l->in_callout;
	c->miss = 0;
	kpl_resume_rescue(c, l->rescue);
	add_work(c->m, KPL_WORK_TRAP); /* and what Go ran may have used the allowance up */
	/* What Go ran may have filled the buffer of translations. */
	if (!c->reason && c->depth == 1 && crowded(c))
		stop_later(c, KPL_CROWDED);
}

/* The length of the pause instruction at ip, 0 where there is another one. */
static int pause_at(kpl_cpu *c, uint64_t ip)
{
	struct text t = { .va = ip };
	bool rep = false;
	uint8_t b;

	for (int i = 0; i < 14 && next_byte(c->m, &t, &b); i++) {
		if (b == 0x90)
			return rep ? i + 1 : 0;
		if (b != 0xf3 && b != 0xf2 && b != 0x66 && b != 0x67 && b != 0x2e && b != 0x3e &&
		    b != 0x26 && b != 0x36 && b != 0x64 && b != 0x65)
			return 0;
		rep |= b == 0xf3;
	}
	return 0;
}

/* Whether the int3 is the one that Go answered already; if so, goes on from it. */
static int answered(kpl_cpu *c)
{
	uint64_t rip, flags = 0;
	int ids[] = { UC_X86_REG_EFLAGS, UC_X86_REG_RIP };
	void *vals[] = { &flags, &rip };

	uc_reg_read_batch(c->uc, ids, vals, 2);
	if (rip - 1 != c->answer_at)
		return 0;
	c->answer = KPL_ANSWERED;
	rip = c->answer_to;
	flags |= c->answer_flags;
	uc_reg_write_batch(c->uc, ids, vals, 2);
	return 1;
}

/* Writable guest memory that a hook may use as it is, NULL where there is none or it
 * is not in one piece: the pages of a booted kernel's stack may be anywhere. */
static void *stack_piece(kpl_machine *m, uint64_t at, uint64_t size)
{
	kpl_place first, last;

	if (!kpl_at(m, at, &first) || !kpl_at(m, at + size - 1, &last) || !(first.perm & last.perm & KPL_W) ||
	    last.host - first.host != (ptrdiff_t)size - 1)
		return NULL;
	kpl_keep(m, &first);
	kpl_keep(m, &last);
	return first.host;
}

static int in_user_mode(kpl_cpu *c)
{
	uint16_t cs = 0;

	if (c->m->nram)
		uc_reg_read(c->uc, UC_X86_REG_CS, &cs);
	return (cs & 3) == 3;
}

/* A debug trap of user mode, which is the guest's. 0: the run is to end. */
static int steps(kpl_cpu *c)
{
	kpl_regs regs, old;

	kpl_read_regs(c, &regs);
	old = regs;
	if (kpl_watch_tell(c, &regs) != KPL_RESUME) {
		stop(c, KPL_ERROR);
		return 0;
	}
	kpl_change_regs(c, &regs, &old, 1);
	kpl_debug_note(c, KPL_DR6_BS);
	return 1;
}

static void on_intr(uc_engine *uc, uint32_t vector, void *user)
{
	kpl_cpu *c = running(user);
	kpl_regs regs, old;

	if (c->reason >= KPL_EXIT)
		return; /* the run is over, though its block goes on to its end */
	if ((vector != 3 && vector != 1) || in_user_mode(c)) {
		if (vector != 1)
			kpl_watch_forget(c);
		else if (!steps(c))
			return;
		fault(c, vector);
		return;
	}
	c->vector = vector;
	if (!c->m->free_hits)
		c->m->extra += c->m->trap_cost;
	add_work(c->m, KPL_WORK_TRAP);
	if (vector == 3 && c->answer == KPL_ANSWER && answered(c))
		return;
	kpl_read_regs(c, &regs);
	old = regs;
	int answer = vector == 1 ? kpl_watch_tell(c, &regs) : KPL_RESUME;
	struct level l = kpl_enter_go(c, 0);
	if (answer == KPL_RESUME)
		answer = kplTrap(c->m->handle, c->n, vector, &regs);
	/* The engine has no debug trap after a pause instruction, which leaves
	 * its loop in a way of its own. So a pause is stepped here. */
	for (int n; answer == KPL_RESUME && (regs.flags & 0x100) && c->m->instrs < c->m->budget &&
		    (n = pause_at(c, regs.ip));) {
		regs.ip += n;
		c->m->instrs++;
		c->m->extra += c->m->trap_cost;
		vector = 1;
		answer = kplTrap(c->m->handle, c->n, vector, &regs);
	}
	kpl_leave_go(c, &l);
	switch (answer) {
	case KPL_RESUME:
		kpl_change_regs(c, &regs, &old, 1);
		if (c->debug_hits)
			kpl_debug_trap(c, regs.ip);
		break;
	case KPL_NOT_MINE:
		kpl_change_regs(c, &regs, &old, 1);
		if (vector == 1)
			kpl_debug_note(c, KPL_DR6_BS);
		fault(c, vector);
		break;
	default:
		stop(c, KPL_ERROR);
	}
}

static bool on_invalid(uc_engine *uc, void *user)
{
	kpl_cpu *c = running(user);

	if (c->reason < KPL_EXIT) {
		kpl_watch_forget(c);
		c->reason = KPL_FAULT;
		c->vector = 6;
		c->addr = 0;
		c->access = 0;
	}
	return false; /* which ends the run */
}

/* The hooks from here on are called in the middle of a block. A stop, or a write
 * of rip, would take effect at the block's next load, with half of the block
 * done and rip at its start. So they call stop_later. */

/* Shows the host a system call that the kernel gets. */
static void show_call(kpl_cpu *c, uint64_t ip)
{
	kpl_regs regs;

	kpl_read_regs(c, &regs);
	regs.ip = ip;
	struct level l = kpl_enter_go(c, 1);
	kplSeeSyscall(c->m->handle, &regs);
	kpl_leave_go(c, &l);
}

/* Whether the host takes the system call: one that it made itself has returned, or
 * one whose number is for it. */
static int host_call(kpl_cpu *c)
{
	uint64_t ip = 0, nr = 0, next;
	kpl_regs regs;

	uc_reg_read(c->uc, UC_X86_REG_RIP, &ip);
	uc_reg_read(c->uc, UC_X86_REG_RAX, &nr);
	if (ip != c->m->own_syscall && (!c->m->host_calls || nr >> 16 != c->m->host_calls)) {
		if (nr < 64 * sizeof(c->m->seen_calls) / sizeof(*c->m->seen_calls) && c->m->seen_calls[nr / 64] >> nr % 64 & 1)
			show_call(c, ip);
		return 0;
	}
	kpl_read_regs(c, &regs);
	regs.ip = ip;
	struct level l = kpl_enter_go(c, 1);
	int answer = kplSyscall(c->m->handle, c->n, &regs);
	kpl_leave_go(c, &l);
	if (answer == KPL_NOT_MINE) { /* the kernel's after all, as Go has changed it */
		kpl_change_regs(c, &regs, NULL, 0);
		return 0;
	}
	next = ip + 2;
	uc_reg_write(c->uc, UC_X86_REG_RAX, &regs.ax);
	uc_reg_write(c->uc, UC_X86_REG_RCX, &next);
	if (answer != KPL_RESUME)
		stop_later(c, c->reason ? c->reason : KPL_RETURN);
	return 1;
}

/* syscall and sysenter lead nowhere in a machine that has not booted: #UD. sysenter
 * is for 32-bit programs, which are not run. */
static void on_syscall(uc_engine *uc, void *user)
{
	kpl_cpu *c = running(user);

	if (c->reason >= KPL_EXIT)
		return;
	if (c->m->nram && (host_call(c) || kpl_syscall(c)))
		return;
	uc_reg_read(uc, UC_X86_REG_RIP, &c->at);
	c->vector = 6;
	c->addr = 0;
	c->access = 0;
	stop_later(c, KPL_FAULT);
}

/* The same of a frame that lies on two pages. */
static int read_split(kpl_machine *m, uint64_t at, void *to, uint64_t size)
{
	uint64_t n = PAGE - (at & (PAGE - 1));
	kpl_place a, b;

	if (n >= size || !kpl_at(m, at, &a) || !kpl_at(m, at + n, &b) || !(a.perm & b.perm & KPL_W))
		return 0;
	memcpy(to, a.host, n);
	memcpy((uint8_t *)to + n, b.host, size - n);
	return 1;
}

static void write_split(kpl_machine *m, uint64_t at, const void *from, uint64_t size)
{
	uint64_t n = PAGE - (at & (PAGE - 1));
	kpl_place a, b;

	if (!kpl_at(m, at, &a) || !kpl_at(m, at + n, &b))
		return;
	kpl_keep(m, &a);
	kpl_keep(m, &b);
	memcpy(a.host, from, n);
	memcpy(b.host, (const uint8_t *)from + n, size - n);
}

/* A stub begins with its out, so the stub's address is the block's. */
static void callout(kpl_cpu *c)
{
	uint64_t rdi;

	uc_reg_read(c->uc, UC_X86_REG_RDI, &rdi);
	kpl_regs *frame = stack_piece(c->m, rdi, sizeof *frame), copy;
	int split = !frame && read_split(c->m, rdi, &copy, sizeof copy);
	struct level l = kpl_enter_go(c, 1);
	int answer = kplCallout(c->m->handle, c->n, c->block, rdi, split ? &copy : frame);
	kpl_leave_go(c, &l);
	if (split)
		write_split(c->m, rdi, &copy, sizeof copy);
	if (answer != KPL_RESUME)
		stop_later(c, KPL_ERROR);
}

static void on_out(uc_engine *uc, uint32_t port, int size, uint32_t value, void *user)
{
	kpl_cpu *c = running(user);
	uint64_t v;

	if (c->reason >= KPL_EXIT)
		return;
	if (in_user_mode(c)) { /* a program that may use ports makes no hypercall */
		if (kpl_port_out(c, port, size, value))
			stop_later(c, KPL_RESET);
		return;
	}
	switch (port) {
	case KPL_PORT_CALLOUT:
		callout(c);
		return;
	case KPL_PORT_YIELD:
		if (c->depth == 1) /* deeper is a handler, with preemption off */
			stop_later(c, KPL_YIELD);
		return;
	case KPL_PORT_SLEEP:
		uc_reg_read(uc, UC_X86_REG_RDI, &c->arg);
		stop_later(c, KPL_SLEEP);
		return;
	case KPL_PORT_EXIT:
		stop_later(c, KPL_EXIT);
		return;
	case KPL_PORT_RETURN:
		if (c->depth == 1 && c->block == c->m->outer_end) {
			c->m->instrs -= c->m->every ? 1 : 2; /* the stub is not the guest's */
			stop_later(c, KPL_RETURN);
		}
		return;
	case KPL_PORT_CONSOLE:
		kpl_console_put(c->m, value);
		return;
	case KPL_PORT_CLOCK:
		v = c->m->instrs + c->m->extra;
		break;
	case KPL_PORT_TASK:
		v = c->m->task;
		break;
	case KPL_PORT_CPU:
		v = c->n;
		break;
	default:
		if (kpl_port_out(c, port, size, value))
			stop_later(c, KPL_RESET);
		return;
	}
	uc_reg_write(uc, UC_X86_REG_RAX, &v);
}

/* The place of an instruction in the list, or of the first one after it. */
static int own_at(const kpl_machine *m, uint64_t at)
{
	int low = 0, high = m->nown;

	while (low < high) {
		int mid = (low + high) / 2;
		if (m->own[mid].at < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Does what is to be done before the instruction. That may add more of it at other instructions. */
void kpl_do_own(kpl_cpu *c, uint64_t at)
{
	for (int n = 0, i; (i = own_at(c->m, at) + n) < c->m->nown && c->m->own[i].at == at; n++)
		c->m->own[i].what(c, at);
}

/* While accesses are watched, the hook for all instructions does it: of two hooks, the engine
 * calls first the one that was added first. */
static void on_own(uc_engine *uc, uint64_t at, uint32_t size, void *user)
{
	kpl_cpu *c = running(user);

	if (!c->watching)
		kpl_do_own(c, at);
}

void kpl_add_own(kpl_cpu *c, uint64_t at, void (*what)(kpl_cpu *, uint64_t))
{
	kpl_machine *m = c->m;
	int i = own_at(m, at), known = i < m->nown && m->own[i].at == at;
	uc_hook h;

	if (m->nown == m->cap_own) {
		int cap = m->cap_own ? 2 * m->cap_own : 64;
		kpl_own *o = realloc(m->own, cap * sizeof *o);
		if (!o)
			return;
		m->own = o;
		m->cap_own = cap;
	}
	while (i < m->nown && m->own[i].at == at)
		i++;
	memmove(&m->own[i + 1], &m->own[i], (m->nown - i) * sizeof *m->own);
	m->own[i] = (kpl_own){ at, what };
	m->nown++;
	if (!known)
		uc_hook_add(c->uc, &h, UC_HOOK_CODE, on_own, c, at, at);
}

/* The function that the kernel calls with a task that has ended is entered. */
static void task_exits(kpl_cpu *c, uint64_t at)
{
	uint64_t task = 0;

	uc_reg_read(c->uc, UC_X86_REG_RDI, &task);
	struct level l = kpl_enter_go(c, 1);
	kplTaskExit(c->m->handle, task);
	kpl_leave_go(c, &l);
}

void kpl_hook_exit(kpl_cpu *c, uint64_t at)
{
	kpl_add_own(c, at, task_exits);
}

/* The function in which a task ends is entered: it gives its CPU up for ever. */
static void task_dies(kpl_cpu *c, uint64_t at)
{
	struct level l = kpl_enter_go(c, 1);
	int callers = kplTaskDead(c->m->handle);

	kpl_leave_go(c, &l);
	if (callers && !c->reason)
		stop_before(c, at, KPL_DEAD);
}

void kpl_hook_dead(kpl_cpu *c, uint64_t at)
{
	kpl_add_own(c, at, task_dies);
}

/* The function that has the kernel's log kept, with why, is entered. */
static void dumps(kpl_cpu *c, uint64_t at)
{
	enum { KMSG_DUMP_PANIC = 1 }; /* include/linux/kmsg_dump.h */
	uint32_t why = 0;

	uc_reg_read(c->uc, UC_X86_REG_EDI, &why);
	if (why == KMSG_DUMP_PANIC && !c->reason)
		stop_before(c, at, KPL_PANIC);
}

void kpl_hook_dump(kpl_cpu *c, uint64_t at)
{
	kpl_add_own(c, at, dumps);
}

/* The run ends here, if it is the outermost one. */
static void stops(kpl_cpu *c, uint64_t at)
{
	if (at == c->m->stop_at_ip && c->depth == 1 && !c->reason)
		stop_before(c, at, KPL_RETURN);
}

void kpl_hook_stop(kpl_cpu *c, uint64_t at)
{
	kpl_add_own(c, at, stops);
}

/* An instruction that the host wants to see. */
static void shows(kpl_cpu *c, uint64_t at)
{
	kpl_regs regs;

	if (c->reason)
		return;
	kpl_read_regs(c, &regs);
	regs.ip = at;
	struct level l = kpl_enter_go(c, 1);
	kplExecuted(c->m->handle, &regs);
	kpl_leave_go(c, &l);
}

void kpl_hook_shown(kpl_cpu *c, uint64_t at)
{
	kpl_add_own(c, at, shows);
}

uc_err kpl_add_hooks(kpl_cpu *c)
{
	uc_engine *uc = c->uc;
	uc_hook h;
	uc_err e;

	(e = uc_hook_add(uc, &h, UC_HOOK_TLB_FILL, on_fill, c, 1, 0)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_BLOCK, c->m->every ? on_block_of_code : on_block, c, 1, 0)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_EDGE_GENERATED, on_translated, c, 1, 0)) ||
		(c->m->every && (e = uc_hook_add(uc, &h, UC_HOOK_CODE, on_code, c, 1, 0))) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INTR, on_intr, c, 1, 0)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN_INVALID, on_invalid, c, 1, 0)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN, on_out, c, 1, 0, UC_X86_INS_OUT)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN, on_syscall, c, 1, 0, UC_X86_INS_SYSCALL)) ||
		(e = uc_hook_add(uc, &h, UC_HOOK_INSN, on_syscall, c, 1, 0, UC_X86_INS_SYSENTER));
	return e;
}
