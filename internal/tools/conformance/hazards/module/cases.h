/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KPROBELAB_HAZARDS_CASES_H
#define KPROBELAB_HAZARDS_CASES_H

#include <linux/kprobes.h>

/* A function of few instructions, one of which is probed. */
struct hazard_case {
	const char *name;
	/* Where the probe is put. */
	kprobe_opcode_t *at;
	/* Calls the function, and returns what tells. */
	unsigned long (*call)(void);
};

/* The last one has no name. */
extern const struct hazard_case hazard_cases[];

#endif
