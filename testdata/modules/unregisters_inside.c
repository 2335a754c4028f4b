// SPDX-License-Identifier: GPL-2.0-only
/* Unregisters its kprobe in the handler of that. */
#include "fault.h"

static int before(struct kprobe *p, struct pt_regs *regs)
{
	if (!hits++)
		unregister_kprobe(p);
	return 0;
}

static struct kprobe probe = { .symbol_name = PROBED, .pre_handler = before };

static int __init fault_init(void)
{
	return register_kprobe(&probe);
}

static void __exit fault_exit(void)
{
	if (!hits)
		unregister_kprobe(&probe);
	pr_info("%d hits\n", hits);
}
