//go:build unicorn && cgo && linux && amd64

/* Where the engine's buffer of translations is. Each block calls its hook and other functions of the program. From far
 * away such a call is indirect, and a processor foresees the targets of a few thousand places only; within 2 GB of
 * the text it is a direct one. The engine takes whatever address mmap gives, so the linker gives it this mmap
 * (--wrap, engine.go). An engine of a shared library keeps the system's. */

#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum {
	HEAP = 512 << 20,      /* what follows the text is left to the heap */
	REACH = 2047 << 20,    /* a direct call's, without the program's own size */
	PROGRAM = 128 << 20,
	LEAST = 1 << 20,       /* a buffer of translations has more */
};

void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t at);
void *__real_mmap64(void *addr, size_t size, int prot, int flags, int fd, off_t at);

/* Memory in the reach of the text, MAP_FAILED where there is none. */
static void *near_text(size_t size, int prot, int flags)
{
	uint64_t text = (uintptr_t)near_text & ~(uint64_t)(LEAST - 1), end = text + REACH - PROGRAM;

	for (uint64_t at = text + HEAP; at + size <= end; at += size) {
		void *p = __real_mmap64((void *)(uintptr_t)at, size, prot, flags | MAP_FIXED_NOREPLACE, -1, 0);
		if ((uintptr_t)p == at)
			return p;
		if (p != MAP_FAILED) /* a kernel before 4.17 takes the address for a wish */
			munmap(p, size);
	}
	return MAP_FAILED;
}

static void *map(void *addr, size_t size, int prot, int flags, int fd, off_t at)
{
	void *p = MAP_FAILED;

	if (!addr && fd == -1 && prot & PROT_EXEC && size >= LEAST)
		p = near_text(size, prot, flags);
	return p != MAP_FAILED ? p : __real_mmap64(addr, size, prot, flags, fd, at);
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t at)
{
	return map(addr, size, prot, flags, fd, at);
}

void *__wrap_mmap64(void *addr, size_t size, int prot, int flags, int fd, off_t at)
{
	return map(addr, size, prot, flags, fd, at);
}
