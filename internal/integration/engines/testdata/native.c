/* Executes instructions on the processor that there is: reads records from standard input, and
 * writes the registers after each. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct record {
	unsigned char code[16], xmm[4][16];
	uint64_t ax, cx, dx, bx, flags;
};

int main(void)
{
	unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static struct record r;

	if (page == MAP_FAILED)
		return 1;
	while (fread(&r, sizeof r, 1, stdin) == 1) {
		memcpy(page, r.code, sizeof r.code);
		page[sizeof r.code] = 0xc3;
		__asm__ volatile(
			"movups 16(%0), %%xmm0\n movups 32(%0), %%xmm1\n movups 48(%0), %%xmm2\n movups 64(%0), %%xmm3\n"
			"mov 80(%0), %%rax\n mov 88(%0), %%rcx\n mov 96(%0), %%rdx\n mov 104(%0), %%rbx\n"
			"push 112(%0)\n popf\n call *%1\n"
			"movups %%xmm0, 16(%0)\n movups %%xmm1, 32(%0)\n movups %%xmm2, 48(%0)\n movups %%xmm3, 64(%0)\n"
			"mov %%rax, 80(%0)\n mov %%rcx, 88(%0)\n mov %%rdx, 96(%0)\n mov %%rbx, 104(%0)\n"
			"pushf\n pop 112(%0)\n"
			: : "r"(&r), "r"(page) : "rax", "rcx", "rdx", "rbx", "rdi", "rsi", "xmm0", "xmm1", "xmm2", "xmm3", "memory", "cc");
		fwrite(&r, sizeof r, 1, stdout);
	}
	return 0;
}
