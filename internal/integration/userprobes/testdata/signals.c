// signals.c: a program of many signals. With an argument it also prints what a
// stepped instruction is known to change: the trap's number, the code of a trap.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int full, hits, last, steps;
static sigjmp_buf back;
static char stack[65536] __attribute__((aligned(64)));
static volatile uintptr_t wanted;

static void tell(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	greg_t *g = u->uc_mcontext.gregs;
	char here;
	hits++;
	printf("signal %d code %d at %d on %d mask %d ip %d", sig, info->si_code, info->si_addr == (void *)wanted,
	       &here >= stack && &here < stack + sizeof stack, (int)sigismember(&u->uc_sigmask, SIGUSR2), (uintptr_t)g[REG_RIP] == wanted);
	if (full)
		printf(" trap %d error %d flags %#llx", (int)g[REG_TRAPNO], (int)g[REG_ERR], (long long)g[REG_EFL] & 0x10f00);
	printf("\n");
}

static void leave(int sig, siginfo_t *info, void *context)
{
	tell(sig, info, context);
	siglongjmp(back, sig);
}

// skip goes on after an instruction of two bytes.
static void skip(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	tell(sig, info, context);
	u->uc_mcontext.gregs[REG_RIP] += 2;
	u->uc_mcontext.gregs[REG_RAX] = 77;
}

static void step(int sig, siginfo_t *info, void *context)
{
	steps++;
	if (full && info->si_code != TRAP_TRACE)
		printf("code %d\n", info->si_code);
}

static void order(int sig, siginfo_t *info, void *context)
{
	last = last * 100 + sig;
	if (sig >= SIGRTMIN)
		printf("queued %d %d from %d\n", sig - SIGRTMIN, info->si_value.sival_int, info->si_code);
}

static void nest(int sig)
{
	double x = 3.25;
	asm volatile("movsd %0,%%xmm7\n\tfninit" : : "m"(x));
	printf("nest %d of %d\n", sig, hits);
	if (++hits < 4)
		raise(sig);
}

static void on(int sig, void (*f)(int, siginfo_t *, void *), int flags)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_sigaction = f;
	a.sa_flags = SA_SIGINFO | flags;
	sigaddset(&a.sa_mask, SIGUSR2);
	if (sigaction(sig, &a, NULL))
		printf("sigaction of %d: %d\n", sig, errno);
}

static __attribute__((noinline)) int deep(int n)
{
	volatile char room[64];
	room[n] = n;
	if (n == 0)
		*(volatile int *)wanted = 1;
	return deep(n - 1) + room[n];
}

static __attribute__((noinline)) int fault(void)
{
	int r;
	asm volatile("mov %1,%%rbx\n\tmov (%%rbx),%%eax\n\tmov %%eax,%0" : "=r"(r) : "m"(wanted) : "rax", "rbx");
	return r;
}

static __attribute__((noinline)) int divide(void)
{
	int r;
	asm volatile("lea 1f(%%rip),%%rax\n\tmov %%rax,%1\n\txor %%ecx,%%ecx\n\txor %%edx,%%edx\n1:\tdiv %%ecx\n\tmov %%eax,%0"
		     : "=r"(r), "=m"(wanted) : : "rax", "rcx", "rdx");
	return r;
}

static __attribute__((noinline)) int none(void)
{
	int r;
	asm volatile("lea 1f(%%rip),%%rax\n\tmov %%rax,%1\n1:\tud2\n\tmov %%eax,%0" : "=r"(r), "=m"(wanted) : : "rax");
	return r;
}

static __attribute__((noinline)) int stepped(void)
{
	int r;
	asm volatile("mov $5,%%ecx\n\txor %%eax,%%eax\n\tpushf\n\torl $0x100,(%%rsp)\n\tpopf\n"
		     "1:\tadd %%ecx,%%eax\n\tpush %%rax\n\tpop %%rdx\n\tdec %%ecx\n\tjne 1b\n\tpushf\n\tandl $~0x100,(%%rsp)\n\tpopf\n\tmov %%eax,%0"
		     : "=r"(r) : : "rax", "rcx", "rdx", "memory");
	return r;
}

static __attribute__((noinline)) uint64_t floats(void)
{
	double in = 1.5, out;
	unsigned csr = 0x3f80, got;
	short cw = 0x27f, cwout;
	asm volatile("ldmxcsr %3\n\tfldcw %5\n\tmovsd %2,%%xmm7\n\tmov $39,%%eax\n\tsyscall\n\tmov %%eax,%%edi\n\tmov $10,%%esi\n\tmov $62,%%eax\n\tsyscall\n\t"
		     "movsd %%xmm7,%0\n\tstmxcsr %1\n\tfnstcw %4"
		     : "=m"(out), "=m"(got), "+m"(in), "+m"(csr), "=m"(cwout), "+m"(cw) : : "rax", "rcx", "r11", "rdi", "rsi", "xmm7", "memory");
	return (uint64_t)(out * 100) << 32 | got << 16 | (unsigned short)cwout;
}

int main(int argc, char **argv)
{
	stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack}, old;
	sigset_t set, pending;
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	full = argc > 1;
	sigaltstack(&alt, &old);
	printf("stack %d %zu\n", old.ss_flags, old.ss_size);
	alt.ss_size = 100;
	printf("small %d\n", sigaltstack(&alt, NULL) ? errno : 0);

	on(SIGSEGV, leave, SA_ONSTACK);
	wanted = 16;
	if (!sigsetjmp(back, 1))
		printf("fault %d\n", fault());
	if (!sigsetjmp(back, 1))
		printf("deep %d\n", deep(9));
	wanted = (uintptr_t)page + 8;
	volatile int present = *page;
	if (!sigsetjmp(back, 1))
		printf("deep %d\n", deep(5) + present);
	on(SIGFPE, skip, 0);
	printf("divided %d\n", divide());
	on(SIGILL, skip, SA_ONSTACK | SA_RESETHAND);
	printf("none %d\n", none());
	on(SIGTRAP, step, SA_NODEFER);
	printf("stepped %d", stepped());
	printf(" in %d\n", steps);
	steps = 0;
	asm volatile("int3");
	printf("int3 %d\n", steps);

	for (int i = 0; i < 5; i++)
		on(i < 3 ? SIGRTMIN + i : i == 3 ? SIGUSR1 : SIGUSR2, order, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	for (int i = 0; i < 3; i++)
		sigaddset(&set, SIGRTMIN + i);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 3; i++) {
		union sigval v = {.sival_int = i};
		sigqueue(getpid(), SIGRTMIN + 2 - i, v);
		sigqueue(getpid(), SIGRTMIN + 1, v);
		raise(SIGUSR1);
		kill(getpid(), SIGUSR2);
	}
	sigpending(&pending);
	printf("pending %d %d %d\n", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGUSR2), sigismember(&pending, SIGINT));
	sigfillset(&set);
	sigdelset(&set, SIGUSR1);
	int r = sigsuspend(&set);
	printf("suspended %d %d", r, errno);
	printf(" last %d\n", last);
	last = 0;
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	printf("last %d\n", last);

	signal(SIGUSR1, nest);
	hits = 0;
	printf("floats %#llx\n", (long long)floats());
	struct sigaction again = {.sa_handler = nest, .sa_flags = SA_NODEFER};
	sigaction(SIGUSR1, &again, NULL);
	hits = 0;
	raise(SIGUSR1);
	signal(SIGCHLD, SIG_DFL);
	raise(SIGCHLD);
	signal(SIGUSR2, SIG_IGN);
	raise(SIGUSR2);
	r = kill(getpid(), 65);
	printf("kill %d %d\n", r, errno);
	printf("hits %d\n", hits);
	fflush(stdout);
	wanted = 16;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGFPE + 2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return fault();
}
