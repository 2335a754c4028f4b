// processes.c: a program that makes processes, in all ways, and waits for them.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *self;
static volatile int value = 1, chld;
static volatile pid_t about;
static char stack[65536] __attribute__((aligned(64)));

static void tell(const char *what, pid_t pid, int status)
{
	if (pid < 0)
		printf("%s: %s\n", what, strerror(errno));
	else if (WIFEXITED(status))
		printf("%s: exit %d\n", what, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		printf("%s: signal %d\n", what, WTERMSIG(status));
	else
		printf("%s: stopped by %d\n", what, WSTOPSIG(status));
	fflush(stdout);
}

static __attribute__((noinline)) void ended(const char *what, pid_t pid, int options)
{
	int status = 0;
	pid = waitpid(pid, &status, options);
	tell(what, pid, status);
}

static void child(int sig, siginfo_t *info, void *context)
{
	chld++;
	about = info->si_pid;
	value = info->si_code * 1000 + info->si_status;
}

static __attribute__((noinline, noclone, optimize("O0"))) int deeper(int n)
{
	pid_t pid;
	if (n > 0)
		return deeper(n - 1) + 1;
	pid = fork();
	if (pid == 0)
		return 100;
	ended("returned in the child", pid, 0);
	return 0;
}

static void forks(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		value++;
		printf("child: value %d parent %d\n", value, getppid() != 1);
		fflush(stdout);
		_exit(value + 40);
	}
	ended("fork", pid, 0);
	printf("value %d here\n", value);
	pid = fork();
	if (pid == 0)
		kill(getpid(), SIGKILL);
	ended("killed", pid, 0);
	pid = fork();
	if (pid == 0)
		abort();
	ended("aborted", -1, 0);
	pid = fork();
	if (pid == 0) {
		*(volatile int *)16 = 1;
		_exit(0);
	}
	ended("fault", -1, 0);
	ended("none left", -1, 0);
	ended("no such child", 1, 0);
	ended("options", -1, 0x100);
}

static void nested(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		pid_t inner = fork();
		if (inner == 0)
			_exit(3);
		waitpid(inner, &status, 0);
		_exit(WEXITSTATUS(status) + 1);
	}
	ended("grandchild", pid, 0);
}

static void stops(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(8);
	}
	ended("stop", pid, WUNTRACED);
	printf("nothing yet: %d\n", waitpid(pid, &status, WNOHANG | WUNTRACED));
	kill(pid, SIGCONT);
	ended("continued", pid, 0);
}

static void signals(void)
{
	struct sigaction a = {.sa_sigaction = child, .sa_flags = SA_SIGINFO | SA_RESTART}, d = {.sa_handler = SIG_DFL};
	pid_t pid;
	sigset_t none;
	sigaction(SIGCHLD, &a, NULL);
	pid = fork();
	if (pid == 0)
		_exit(17);
	ended("with a handler", pid, 0);
	printf("handler: %d times, of it %d, said %d\n", chld, about == pid, value);
	sigemptyset(&none);
	pid = fork();
	if (pid == 0) {
		sigset_t all;
		sigfillset(&all);
		sigdelset(&all, SIGUSR1);
		signal(SIGUSR1, SIG_DFL);
		sigsuspend(&all);
		_exit(1);
	}
	kill(pid, SIGUSR1);
	ended("killed by its parent", pid, 0);
	printf("handler: %d times, said %d\n", chld, value);
	d.sa_handler = SIG_IGN;
	sigaction(SIGCHLD, &d, NULL);
	pid = fork();
	if (pid == 0)
		_exit(1);
	ended("ignored", pid, 0);
	d.sa_handler = SIG_DFL;
	sigaction(SIGCHLD, &d, NULL);
}

static int cloned(void *arg)
{
	value += (intptr_t)arg;
	return 9;
}

static void shares(void)
{
	volatile int *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile int *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct clone_args c = {.exit_signal = SIGCHLD};
	int status, n;
	pid_t pid;
	shared[0] = own[0] = 5;
	for (n = 0; n < 3; n++)
		if (fork() == 0) {
			shared[n + 1] = ++shared[0];
			own[0]++;
			_exit(0);
		}
	while (wait(&status) > 0)
		;
	printf("shared %d, own %d, %d\n", shared[0], own[0], shared[1] + shared[2] + shared[3]);
	value = 1;
	pid = clone(cloned, stack + sizeof stack, CLONE_VM | SIGCHLD, (void *)4);
	ended("clone of the memory", pid, 0);
	printf("value %d\n", value);
	pid = clone(cloned, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)5);
	printf("value %d\n", value);
	ended("vfork", pid, 0);
	pid = clone(cloned, stack + sizeof stack, SIGCHLD, (void *)6);
	ended("clone", pid, 0);
	pid = clone(cloned, stack + sizeof stack, 0, (void *)6);
	ended("without a signal", pid, 0);
	ended("of clones", pid, __WCLONE);
	printf("value %d\n", value);
	pid = syscall(SYS_clone3, &c, sizeof c);
	if (pid == 0)
		_exit(21);
	ended("clone3", pid, 0);
	tell("a short clone3", syscall(SYS_clone3, &c, 8), 0);
	c.exit_signal = 100;
	tell("a bad signal", syscall(SYS_clone3, &c, sizeof c), 0);
	tell("threads without memory", syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0), 0);
}

static void execs(void)
{
	char *args[] = {"again", "7", NULL}, *env[] = {"X=1", NULL};
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGUSR1, SIG_IGN);
		signal(SIGUSR2, (void (*)(int))child);
		execve(self, args, env);
		_exit(1);
	}
	ended("exec", pid, 0);
	pid = vfork();
	if (pid == 0) {
		execve(self, args, env);
		_exit(1);
	}
	ended("vfork and exec", pid, 0);
	if (posix_spawn(&pid, self, NULL, NULL, args, env) != 0)
		printf("no spawn\n");
	ended("spawn", pid, 0);
	execve("/no/such/file", args, env);
	printf("no file: %s\n", strerror(errno));
	syscall(SYS_execve, 16, args, env);
	printf("no name: %s\n", strerror(errno));
}

int main(int argc, char **argv)
{
	struct sigaction a;
	self = (const char *)getauxval(AT_EXECFN);
	if (argc == 2 && argv[1][0] == '7') {
		sigaction(SIGUSR1, NULL, &a);
		printf("%s: %d variables, ignored %d", argv[0], environ[0] != NULL && environ[1] == NULL, a.sa_handler == SIG_IGN);
		sigaction(SIGUSR2, NULL, &a);
		printf(" handled %d\n", a.sa_handler != SIG_DFL);
		return 70;
	}
	setvbuf(stdout, NULL, _IOLBF, 4096);
	forks();
	nested();
	stops();
	signals();
	shares();
	execs();
	if (deeper(5) >= 100)
		return 33;
	return 6;
}
