/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a hit costs on each path of the real kernel: the same functions probed
 * in the same ways as kprobelab bench probes its guest kernel's.
 */
#ifndef KPROBELAB_BENCH_H
#define KPROBELAB_BENCH_H

#include <linux/kprobes.h>
#include <linux/types.h>

#include "copies.h"

typedef unsigned long target_fn(unsigned long);

/* targets.S and traced.c: the first copies of the probed functions. */
target_fn target_plain_0, target_next_door_0, target_stepped_0, target_jmp_0, target_call_0, target_jcc_0;
target_fn target_traced_0, target_recursive_0, target_outer;
target_fn *copy_of(target_fn *fn, unsigned int copy);

enum plant {
	PLANT_KPROBE,
	PLANT_POST,		/* with a post_handler */
	PLANT_RETURN,
	PLANT_RETURN_ENTRY,	/* with an entry_handler */
	PLANT_BOTH,		/* a kprobe and a return probe */
	PLANT_BOTH_POST,
	PLANT_APART,		/* a kprobe further on than the return probe */
	PLANT_MISSED_RETURN,	/* no instance is left */
	PLANT_NESTED,		/* hit inside another probe's handler */
	PLANT_DISABLED,
	PLANT_NEXT_DOOR,	/* on a neighbour of what is called */
};

#define MAX_ROUNDS	256
#define LOOPS		9	/* in a round, with the probe and without */
#define WARMING		200	/* calls before them */

/* subject is something to be measured with and without its probes. */
struct subject {
	const char *form;
	target_fn *fn;		/* the first copy; each round takes another one */
	unsigned int offset;	/* of the kprobe; the return probe is at the entry */
	enum plant plant;
	bool optimized;		/* measured while optimization is allowed, and has to be */

	/* What was seen. */
	target_fn *at;		/* the copy of the last round */
	const char *path;
	u8 byte;		/* at the probed address, with the probe in */
	unsigned int rounds, calls;
	s64 bare[MAX_ROUNDS], probed[MAX_ROUNDS];	/* ns of that many calls */
	char error[96];
};

/* plant.c: probes in and out. Both leave the reason in the subject's error. */
int plant(struct subject *s);
int unplant(struct subject *s);
int plant_outer(void);
void unplant_outer(void);
/* How often the handlers ran, and how often they were passed over, since plant. */
unsigned long counted(void);
unsigned long missed(void);

/* While it is set, the handler of the probe on target_outer times its calls. */
extern target_fn *nested_fn;
extern unsigned int nested_calls;
extern u64 nested_ns;

/* subject.c: one round of a subject, and the ns that so many calls of fn take. */
void subject_round(struct subject *s, unsigned int calls);
u64 time_calls(target_fn *fn, unsigned int calls);
__printf(2, 3) void fail(struct subject *s, const char *format, ...);

#endif
