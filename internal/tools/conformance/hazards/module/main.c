// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reproducers of docs/hazards.md. name=vex_cli calls a function without a probe and
 * with one at its instruction, and says what it returned each time. at=0xffffffff81a17a0a
 * registers a probe at an address of the kernel, for where kprobe_events takes none;
 * return=1 makes it a return probe. It stays until the module goes.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

#include "cases.h"

static char *name = "";
module_param(name, charp, 0444);
static ulong at;
module_param(at, ulong, 0444);
static bool is_return;
module_param_named(return, is_return, bool, 0444);
static ulong hits;
module_param(hits, ulong, 0444);

static int count(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}
NOKPROBE_SYMBOL(count);

static int count_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	hits++;
	return 0;
}
NOKPROBE_SYMBOL(count_return);

static struct kprobe kp = { .pre_handler = count };
static struct kretprobe rp = { .handler = count_return, .maxactive = 64 };

static int reproduce(const struct hazard_case *c)
{
	unsigned long without, with;
	int err;

	without = c->call();
	kp.addr = c->at;
	err = register_kprobe(&kp);
	if (err)
		return err;
	/* What the host has to know when nothing comes after it. */
	pr_info("kprobelab_hazards: %s begins, without the probe %lu\n", c->name, without);
	with = c->call();
	unregister_kprobe(&kp);
	kp.addr = NULL;
	pr_info("kprobelab_hazards: %s without the probe %lu, with it %lu, hits %lu\n", c->name, without, with, hits);
	return 0;
}

static int __init start(void)
{
	const struct hazard_case *c;

	if (at && is_return) {
		rp.kp.addr = (kprobe_opcode_t *)at;
		return register_kretprobe(&rp);
	}
	if (at) {
		kp.addr = (kprobe_opcode_t *)at;
		return register_kprobe(&kp);
	}
	for (c = hazard_cases; c->name; c++)
		if (!strcmp(c->name, name))
			return reproduce(c);
	return -ENOENT;
}

static void __exit stop(void)
{
	if (at && is_return)
		unregister_kretprobe(&rp);
	else if (at)
		unregister_kprobe(&kp);
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("reproducers of hazards of kprobes");
