//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// objectSource is a BPF object with what a loader reads: maps, constants, records of CO-RE, functions.
const objectSource = `
#define SEC(name) __attribute__((section(name), used))
struct task_struct { int pid; int nosuch; } __attribute__((preserve_access_index));
struct { int (*type)[1]; int (*max_entries)[16]; int *key; long *value; } counts SEC(".maps");
const volatile int setting = 7;
int counter = 5;
static void *(*lookup)(void *map, const void *key) = (void *)1;
static void *(*task)(void) = (void *)35;
static long (*read)(void *to, unsigned size, const void *from) = (void *)113;
__attribute__((noinline)) int part(int x) { asm volatile("" : "+r"(x)); return x + 1; }
SEC("kprobe/vfs_read") int one(void *ctx) {
	int key = part(setting), pid = 0;
	long *v = lookup(&counts, &key);
	struct task_struct *t = task();
	read(&pid, sizeof(pid), &t->pid);
	if (__builtin_preserve_field_info(t->nosuch, 2)) read(&pid, sizeof(pid), &t->nosuch);
	return v ? *v + pid : counter++;
}
SEC("fentry/vfs_write") int two(void *ctx) { return 0; }
char LICENSE[] SEC("license") = "GPL";
`

// object compiles the object; nil without clang.
func (a *attacker) object() []byte {
	clang, err := exec.LookPath("clang")
	if err != nil {
		return nil
	}
	source, file := filepath.Join(a.dir, "seed.bpf.c"), filepath.Join(a.dir, "seed.bpf.o")
	if os.WriteFile(source, []byte(objectSource), 0o600) != nil || exec.Command(clang, "-target", "bpfel", "-O2", "-g", "-c", source, "-o", file).Run() != nil {
		return nil
	}
	object, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return object
}

// damagedObject damages a BPF object, and has a booted kernel load it.
func damagedObject(c *tryOut) {
	if c.seeds.object == nil || len(c.seeds.dumps) == 0 {
		return
	}
	dump := c.seeds.dumps[c.rng.IntN(len(c.seeds.dumps))]
	args := []string{"bpf", "--timeout", "60s", "--max-output", "1000000", "--kernel", dump, c.file("tool.bpf.o", mutate(c.rng, c.seeds.object))}
	if c.rng.IntN(4) == 0 {
		args = append(args, "--json", "--verbose")
	}
	c.says = true // a table with the refusal
	c.run(nil, args...)
}
