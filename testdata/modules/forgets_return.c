// SPDX-License-Identifier: GPL-2.0-only
/* Forgets to unregister its kretprobe. */
#include "fault.h"

static int after(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static struct kretprobe probe = { .kp.symbol_name = PROBED, .handler = after, .maxactive = 4 };

static int __init fault_init(void)
{
	return register_kretprobe(&probe);
}

static void __exit fault_exit(void)
{
	pr_info("%d hits\n", hits);
}
