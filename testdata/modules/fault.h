/* SPDX-License-Identifier: GPL-2.0-only */
/* What the modules with a fault share: the probed function, which the command hostname enters once, and the end of the file. */
#ifndef FAULT_H
#define FAULT_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>

#define PROBED "__x64_sys_sethostname"

static int hits;

static int fault_init(void);
static void fault_exit(void);

module_init(fault_init);
module_exit(fault_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a module with a fault");

#endif
