// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions with a fentry site, and copies of them.
 */
#include "bench.h"

/* They differ, lest the compiler makes one of them all. */
#define TRACED(n)							\
	noinline unsigned long target_traced_##n(unsigned long x);	\
	noinline __aligned(64) unsigned long target_traced_##n(unsigned long x) \
	{								\
		barrier();						\
		return x + n;						\
	}

/* With a return probe of one instance, the outermost call takes it. */
#define RECURSIVE(n)							\
	noinline unsigned long target_recursive_##n(unsigned long calls); \
	noinline __aligned(64) unsigned long target_recursive_##n(unsigned long calls) \
	{								\
		if (!calls)						\
			return n;					\
		return time_calls(target_recursive_##n, calls);		\
	}

#define COPY(n) TRACED(n) RECURSIVE(n)

COPY(0) COPY(1) COPY(2) COPY(3) COPY(4) COPY(5) COPY(6) COPY(7)

#define ALL(name) { name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7 }

static target_fn *const traced[COPIES] = ALL(target_traced), *const recursive[COPIES] = ALL(target_recursive);

target_fn *copy_of(target_fn *fn, unsigned int copy)
{
	if (fn == target_traced_0)
		return traced[copy];
	if (fn == target_recursive_0)
		return recursive[copy];
	return (target_fn *)((char *)fn + copy * COPY_STRIDE);
}
