// SPDX-License-Identifier: GPL-2.0-only
/* Sleeps in its handler. */
#include <linux/delay.h>
#include "fault.h"

static int before(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	msleep(20);
	return 0;
}

static struct kprobe probe = { .symbol_name = PROBED, .pre_handler = before };

static int __init fault_init(void)
{
	return register_kprobe(&probe);
}

static void __exit fault_exit(void)
{
	unregister_kprobe(&probe);
	pr_info("%d hits\n", hits);
}
