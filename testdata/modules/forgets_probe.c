// SPDX-License-Identifier: GPL-2.0-only
/* Forgets to unregister its kprobe. */
#include "fault.h"

static int before(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static struct kprobe probe = { .symbol_name = PROBED, .pre_handler = before };

static int __init fault_init(void)
{
	return register_kprobe(&probe);
}

static void __exit fault_exit(void)
{
	pr_info("%d hits\n", hits);
}
