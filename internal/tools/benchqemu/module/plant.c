// SPDX-License-Identifier: GPL-2.0-only
/*
 * The probes of a subject: registered, seen in the text, removed. One subject
 * is planted at a time.
 */
#include <linux/delay.h>

#include "bench.h"

static struct kprobe kp, outer;
static struct kretprobe rp;
/* The byte under the probe while nothing is planted. */
static u8 bare_byte;

static unsigned long hits, returns;

target_fn *nested_fn;
unsigned int nested_calls;
u64 nested_ns;

static int count_hit(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}
NOKPROBE_SYMBOL(count_hit);

static void nothing_after(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(nothing_after);

static int count_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	returns++;
	return 0;
}
NOKPROBE_SYMBOL(count_return);

static int nothing_before(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return 0;
}
NOKPROBE_SYMBOL(nothing_before);

static int run_nested(struct kprobe *p, struct pt_regs *regs)
{
	if (nested_fn)
		nested_ns = time_calls(nested_fn, nested_calls);
	return 0;
}
NOKPROBE_SYMBOL(run_nested);

static bool has_kprobe(const struct subject *s)
{
	return s->plant != PLANT_RETURN && s->plant != PLANT_RETURN_ENTRY && s->plant != PLANT_MISSED_RETURN;
}

static bool has_return(const struct subject *s)
{
	return !has_kprobe(s) || s->plant == PLANT_BOTH || s->plant == PLANT_BOTH_POST || s->plant == PLANT_APART;
}

static u8 *address(const struct subject *s)
{
	target_fn *fn = s->plant == PLANT_NEXT_DOOR ? copy_of(target_next_door_0, s->rounds % COPIES) : s->at;

	return (u8 *)fn + (has_kprobe(s) ? s->offset : 0);
}

unsigned long counted(void)
{
	return hits + returns;
}

unsigned long missed(void)
{
	return kp.nmissed + rp.nmissed + rp.kp.nmissed;
}

/* becomes waits for the optimizer, which works a few ticks later. */
static bool becomes(const u8 *at, u8 byte)
{
	int i;

	for (i = 0; i < 1000 && READ_ONCE(*at) != byte; i++)
		msleep(5);
	return READ_ONCE(*at) == byte;
}

#define INT3	0xcc
#define JMP	0xe9
#define CALL	0xe8

enum how { STEPPED, BOOSTED, EMULATED, OPTIMIZED, TRACED, HOWS };

/*
 * The documentation's letters, and kprobelab's words where it has none. The
 * name follows from what is seen, not from what was meant.
 */
static const char *const names[][HOWS] = {
	[PLANT_KPROBE]		= { "k", "b", "emulated", "o", "ftrace" },
	[PLANT_POST]		= { "k-post", "b-post", "emulated-post", "o-post", "ftrace-post" },
	[PLANT_RETURN]		= { "r", "rb", "r-emulated", "ro", "r-ftrace" },
	[PLANT_RETURN_ENTRY]	= { "r-entry", "rb-entry", "r-entry-emulated", "ro-entry", "r-entry-ftrace" },
	[PLANT_BOTH]		= { "kr", "krb", "kr-emulated", "kro", "kr-ftrace" },
	[PLANT_BOTH_POST]	= { "kr-post", "krb-post", "kr-post-emulated", "kro-post", "kr-post-ftrace" },
	[PLANT_APART]		= { "kr-apart", "krb-apart", "kr-apart-emulated", "kro-apart", "kr-apart-ftrace" },
	[PLANT_MISSED_RETURN]	= { "r-missed-k", "r-missed-b", "r-missed-emulated", "r-missed-o", "r-missed" },
	[PLANT_NESTED]		= { "nested", "nested-b", "nested-emulated", "nested-o", "nested-ftrace" },
};

/* The conditions of the hit path itself, arch/x86/kernel/kprobes/core.c, setup_singlestep. */
static enum how how_of(const struct kprobe *p, u8 byte, bool post)
{
	if (p->flags & KPROBE_FLAG_FTRACE)
		return TRACED;
	if (byte == JMP)
		return OPTIMIZED;
	if (p->ainsn.emulate_op)
		return EMULATED;
	if (!IS_ENABLED(CONFIG_PREEMPTION) && p->ainsn.boostable && !post)
		return BOOSTED;
	return STEPPED;
}

static const char *path_of(const struct subject *s, u8 byte)
{
	switch (s->plant) {
	case PLANT_DISABLED:
		return byte == bare_byte ? "disabled" : NULL;
	case PLANT_NEXT_DOOR:
		return byte == INT3 ? "next-door" : NULL;
	default:
		break;
	}
	if (byte == bare_byte || (byte != INT3 && byte != JMP && byte != CALL))
		return NULL;
	/* A post_handler of any probe at the address keeps it from being boosted. */
	return names[s->plant][how_of(has_kprobe(s) ? &kp : &rp.kp, byte, s->plant == PLANT_POST || s->plant == PLANT_BOTH_POST)];
}

static int plant_kprobe(struct subject *s)
{
	kp = (struct kprobe){ .addr = (kprobe_opcode_t *)address(s), .pre_handler = count_hit };
	if (s->plant == PLANT_POST || s->plant == PLANT_BOTH_POST)
		kp.post_handler = nothing_after;
	if (s->plant == PLANT_DISABLED)
		kp.flags = KPROBE_FLAG_DISABLED;
	return register_kprobe(&kp);
}

static int plant_return(struct subject *s)
{
	rp = (struct kretprobe){ .kp.addr = (kprobe_opcode_t *)s->at, .handler = count_return, .maxactive = 16 };
	if (s->plant == PLANT_RETURN_ENTRY)
		rp.entry_handler = nothing_before;
	if (s->plant == PLANT_MISSED_RETURN)
		rp.maxactive = 1;
	return register_kretprobe(&rp);
}

/* plant_outer is there while the calls of a nested subject are timed, with and without its own probe. */
int plant_outer(void)
{
	outer = (struct kprobe){ .addr = (kprobe_opcode_t *)target_outer, .pre_handler = run_nested };
	return register_kprobe(&outer);
}

void unplant_outer(void)
{
	unregister_kprobe(&outer);
}

/* planted is false, and the subject's error says why, unless the text is as it has to be. */
static bool planted(struct subject *s)
{
	const char *path;

	if (s->optimized && (!becomes(address(s), JMP) || (has_return(s) && !becomes((u8 *)s->at, JMP)))) {
		fail(s, "not optimized within 5 s");
		return false;
	}
	s->byte = READ_ONCE(*address(s));
	path = path_of(s, s->byte);
	if (!path || (s->path && s->path != path)) {
		fail(s, "byte %02x at the probed address: path %s, was %s", s->byte, path ?: "none", s->path ?: "none");
		return false;
	}
	s->path = path;
	return true;
}

int plant(struct subject *s)
{
	int err;

	bare_byte = READ_ONCE(*address(s));
	kp = (struct kprobe){};
	rp = (struct kretprobe){};
	hits = returns = 0;
	err = has_kprobe(s) ? plant_kprobe(s) : 0;
	if (!err && has_return(s)) {
		err = plant_return(s);
		if (err && has_kprobe(s))
			unregister_kprobe(&kp);
	}
	if (err) {
		fail(s, "registering: error %d", err);
		return err;
	}
	if (planted(s))
		return 0;
	unplant(s);
	return -EINVAL;
}

int unplant(struct subject *s)
{
	bool same = READ_ONCE(*address(s)) == s->byte;

	if (has_kprobe(s))
		unregister_kprobe(&kp);
	if (has_return(s))
		unregister_kretprobe(&rp);
	if (!same)
		fail(s, "the probed address changed meanwhile");
	else if (!becomes(address(s), bare_byte))
		fail(s, "the probe stays in the text");
	return s->error[0] ? -EINVAL : 0;
}
