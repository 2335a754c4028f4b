//go:build unicorn && cgo && linux && amd64

/* Runs from which the process comes back although the engine calls abort().
 *
 * The engine checks itself while it translates, and aborts where it finds itself
 * wrong. Guest code can bring it there: "lock bts %eax,%eax" does, which is #UD on
 * a processor. An abort is a check that held, so nothing has been overwritten; what
 * is lost is the run, and the engine, which is not used again.
 *
 * The C library lets a handler of SIGABRT leave by a jump (POSIX, abort()). The jump
 * goes to where the innermost run began, over the engine's frames alone: while Go
 * runs inside a hook there is nowhere to jump to, and an abort ends the process. */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "shim_private.h"

/* Where this thread's innermost run began; NULL while it runs no engine. */
static __thread sigjmp_buf *began;
static struct sigaction gos; /* the handler that was there before */

static void on_abort(int sig, siginfo_t *info, void *context)
{
	if (began && info->si_code == SI_TKILL && info->si_pid == getpid()) /* not a signal of another's */
		siglongjmp(*began, 1);
	if (gos.sa_flags & SA_SIGINFO)
		gos.sa_sigaction(sig, info, context);
	else if (gos.sa_handler != SIG_DFL && gos.sa_handler != SIG_IGN)
		gos.sa_handler(sig);
}

/* Once, before the first run. */
void kpl_rescue(void)
{
	struct sigaction a = { .sa_sigaction = on_abort, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigemptyset(&a.sa_mask);
	sigaction(SIGABRT, &a, &gos);
}

int kpl_start(kpl_cpu *c, uint64_t ip, uint64_t until)
{
	sigjmp_buf here, *volatile outer = began;
	volatile uc_err e = UC_ERR_EXCEPTION;

	if (sigsetjmp(here, 0) == 0) {
		began = &here;
		e = uc_emu_start((uc_engine *)c->uc, ip, until, 0, 0);
	} else {
		sigset_t set;

		c->broken = 1;
		sigemptyset(&set);
		sigaddset(&set, SIGABRT); /* which was blocked while its handler ran */
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	began = outer;
	return e;
}

void *kpl_pause_rescue(void)
{
	void *was = began;

	began = NULL;
	return was;
}

/* After what starts no run. */
void kpl_go_on_rescue(void *was) { began = was; }

/* Goes on in the engine, or leaves it where a run inside a hook has broken it: it
 * would take frames of that run for its own. */
void kpl_resume_rescue(kpl_cpu *c, void *was)
{
	began = was;
	if (c->broken && began)
		siglongjmp(*began, 1);
}
