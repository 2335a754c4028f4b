// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/kprobelab_bench: "int3 500" or "optimized 500" written to it makes a
 * round of every subject of that kind, in loops of so many calls; reading it
 * tells what was measured. Whether probes are optimized is the writer's affair
 * (/proc/sys/debug/kprobes-optimization).
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>
#include <asm/processor.h>

#include "bench.h"

static struct subject subjects[] = {
	{ "plain", target_plain_0, 0, PLANT_KPROBE },
	{ "not-boostable", target_stepped_0, 0, PLANT_KPROBE },
	{ "jcc", target_jcc_0, 3, PLANT_KPROBE },
	{ "jmp", target_jmp_0, 0, PLANT_KPROBE },
	{ "call", target_call_0, 0, PLANT_KPROBE },
	{ "plain", target_plain_0, 0, PLANT_POST },
	{ "plain", target_traced_0, 0, PLANT_KPROBE },
	{ "plain", target_plain_0, 0, PLANT_RETURN },
	{ "plain", target_plain_0, 0, PLANT_RETURN_ENTRY },
	{ "not-boostable", target_stepped_0, 0, PLANT_RETURN },
	{ "plain", target_traced_0, 0, PLANT_RETURN },
	{ "plain", target_plain_0, 0, PLANT_BOTH },
	{ "plain", target_plain_0, 0, PLANT_BOTH_POST },
	{ "not-boostable", target_stepped_0, 0, PLANT_BOTH },
	{ "plain", target_plain_0, 7, PLANT_APART },
	{ "plain", target_traced_0, 0, PLANT_BOTH },
	{ "plain", target_recursive_0, 0, PLANT_MISSED_RETURN },
	{ "plain", target_plain_0, 0, PLANT_NESTED },
	{ "plain", target_plain_0, 0, PLANT_DISABLED },
	{ "plain", target_plain_0, 0, PLANT_NEXT_DOOR },

	{ "plain", target_plain_0, 0, PLANT_KPROBE, .optimized = true },
	{ "plain", target_plain_0, 0, PLANT_RETURN, .optimized = true },
	{ "plain", target_plain_0, 0, PLANT_RETURN_ENTRY, .optimized = true },
	{ "plain", target_plain_0, 0, PLANT_BOTH, .optimized = true },
	{ "plain", target_plain_0, 7, PLANT_APART, .optimized = true },
};

static ssize_t write_round(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	char text[32], kind[16];
	unsigned int calls;
	size_t i;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = 0;
	if (sscanf(text, "%15s %u", kind, &calls) != 2 || !calls || calls > 10000000)
		return -EINVAL;
	if (strcmp(kind, "int3") && strcmp(kind, "optimized"))
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(subjects); i++)
		if (subjects[i].optimized == !strcmp(kind, "optimized"))
			subject_round(&subjects[i], calls);
	return size;
}

/* per_call writes ns a call, with two decimals. */
static void per_call(struct seq_file *m, s64 ns, unsigned int calls)
{
	u64 hundredths = div_u64(100 * abs(ns), calls);

	seq_printf(m, "%s%llu.%02llu", ns < 0 && hundredths ? "-" : "", hundredths / 100, hundredths % 100);
}

static void show_subject(struct seq_file *m, const struct subject *s)
{
	unsigned int i;

	seq_printf(m, "bench path=%s form=%s byte=%02x calls=%u", s->path ?: "none", s->form, s->byte, s->calls);
	if (s->error[0]) {
		seq_printf(m, " error=\"%s\"\n", s->error);
		return;
	}
	for (i = 0; i < s->rounds; i++) {
		seq_puts(m, i ? "," : " bare=");
		per_call(m, s->bare[i], s->calls);
	}
	for (i = 0; i < s->rounds; i++) {
		seq_puts(m, i ? "," : " ns=");
		per_call(m, s->probed[i] - s->bare[i], s->calls);
	}
	seq_putc(m, '\n');
}

static int show_all(struct seq_file *m, void *v)
{
	size_t i;

	seq_printf(m, "kernel release=%s preemption=%d hz=%d\n", utsname()->release, IS_ENABLED(CONFIG_PREEMPTION), HZ);
	for (i = 0; i < ARRAY_SIZE(subjects); i++)
		show_subject(m, &subjects[i]);
	return 0;
}

static int open_file(struct inode *inode, struct file *file)
{
	return single_open(file, show_all, NULL);
}

static const struct proc_ops file_ops = {
	.proc_open = open_file,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = write_round,
};

#define FILE_NAME "kprobelab_bench"

static int __init start(void)
{
	return proc_create(FILE_NAME, 0600, NULL, &file_ops) ? 0 : -ENOMEM;
}

static void __exit stop(void)
{
	remove_proc_entry(FILE_NAME, NULL);
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("what a kprobe's hit costs on each of its paths");
