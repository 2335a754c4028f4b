// SPDX-License-Identifier: GPL-2.0-only
/* Registers its kprobe twice. */
#include "fault.h"

static int before(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static struct kprobe probe = { .symbol_name = PROBED, .pre_handler = before };

static int __init fault_init(void)
{
	int err = register_kprobe(&probe);

	if (!err)
		pr_info("again: %d\n", register_kprobe(&probe));
	return err;
}

static void __exit fault_exit(void)
{
	unregister_kprobe(&probe);
	pr_info("%d hits\n", hits);
}
