// SPDX-License-Identifier: GPL-2.0-only
/*
 * One round of a subject: its calls timed without its probes and with them,
 * one right after the other, and counted.
 */
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sort.h>

#include "bench.h"

void fail(struct subject *s, const char *format, ...)
{
	va_list args;

	if (s->error[0])
		return;
	va_start(args, format);
	vsnprintf(s->error, sizeof(s->error), format, args);
	va_end(args);
}

noinline u64 time_calls(target_fn *fn, unsigned int calls)
{
	u64 start = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < calls; i++)
		fn(0);
	return ktime_get_ns() - start;
}
NOKPROBE_SYMBOL(time_calls);

static u64 timed(struct subject *s, unsigned int calls)
{
	switch (s->plant) {
	case PLANT_MISSED_RETURN:
		return s->at(calls);
	case PLANT_NESTED:
		nested_calls = calls;
		nested_fn = s->at;
		target_outer(0);
		nested_fn = NULL;
		return nested_ns;
	default:
		return time_calls(s->at, calls);
	}
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The median of some loops: each is short, to fit between what else the host does. */
static u64 warm_and_timed(struct subject *s, unsigned int calls)
{
	u64 ns[LOOPS];
	int i;

	/* What is new is translated before the clock starts. */
	timed(s, WARMING);
	for (i = 0; i < LOOPS; i++) {
		cond_resched();
		ns[i] = timed(s, calls);
	}
	sort(ns, LOOPS, sizeof(ns[0]), by_value, NULL);
	return ns[LOOPS / 2];
}

static void check_counts(struct subject *s, unsigned int calls)
{
	unsigned long hits = 0, misses = 0;

	calls = WARMING + LOOPS * calls;
	switch (s->plant) {
	case PLANT_MISSED_RETURN:
		hits = 1 + LOOPS;	/* the outermost calls' returns */
		misses = calls;
		break;
	case PLANT_NESTED:
		misses = calls;
		break;
	case PLANT_DISABLED:
	case PLANT_NEXT_DOOR:
		break;
	case PLANT_BOTH:
	case PLANT_BOTH_POST:
	case PLANT_APART:
		hits = 2 * calls;
		break;
	default:
		hits = calls;
	}
	if (counted() != hits || missed() != misses)
		fail(s, "%u calls: %lu hits and %lu missed, not %lu and %lu", calls, counted(), missed(), hits, misses);
}

void subject_round(struct subject *s, unsigned int calls)
{
	s64 bare, probed;

	if (s->error[0] || s->rounds == MAX_ROUNDS)
		return;
	s->at = copy_of(s->fn, s->rounds % COPIES);
	if (s->plant == PLANT_NESTED && plant_outer()) {
		fail(s, "the outer probe cannot be registered");
		return;
	}
	bare = warm_and_timed(s, calls);
	if (!plant(s)) {
		probed = warm_and_timed(s, calls);
		check_counts(s, calls);
		if (!unplant(s)) {
			s->calls = calls;
			s->bare[s->rounds] = bare;
			s->probed[s->rounds++] = probed;
		}
	}
	if (s->plant == PLANT_NESTED)
		unplant_outer();
}
