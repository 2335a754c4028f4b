// threads.c: a program of threads, whose output is the same in whatever order they run.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

enum { WORKERS = 6, ROUNDS = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t full = PTHREAD_COND_INITIALIZER, empty = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t sem;
static int queue[4], queued, begun, ended, handled, unlocked;
static long sum;
static __thread int own = 7;
static __thread double ownFloat;

static void begin(void) { begun++; }
static void finish(void *p) { __atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST); free(p); }
static void handler(int sig) { own += sig; __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST); }

static __attribute__((noipa)) long fib(int n)
{
	if (n < 2)
		return n;
	if (n == 5)
		sched_yield();
	return fib(n - 1) + fib(n - 2);
}

static void *worker(void *arg)
{
	long n = (long)arg;
	double x = 1;
	pthread_once(&once, begin);
	pthread_setspecific(key, malloc(16));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		int u = unlocked;
		if (i % 8 == 0)
			sched_yield();
		unlocked = u + 1;
		while (queued == 4)
			pthread_cond_wait(&empty, &lock);
		queue[queued++] = n * 1000 + i;
		pthread_cond_signal(&full);
		pthread_mutex_unlock(&lock);
		x = x * 1.25 + n;
		own++;
		ownFloat += 0.5;
		if (i % 16 == 3)
			pthread_kill(pthread_self(), SIGUSR1);
	}
	pthread_barrier_wait(&barrier);
	char *s;
	if (asprintf(&s, "%ld %d %.2f %.4g %ld %d", n, own, ownFloat, x, fib(9), gettid() != getpid()) < 0)
		abort();
	sem_post(&sem);
	return s;
}

static void *waits(void *arg)
{
	sigset_t set;
	sigemptyset(&set);
	sem_post(&sem);
	return (void *)(long)sigsuspend(&set);
}

static void *forever(void *arg)
{
	sem_t *s = arg;
	for (;;)
		sem_wait(s);
}

int main(int argc, char **argv)
{
	pthread_t t[WORKERS], other;
	struct timespec ts = {0, 2000000};
	signal(SIGUSR1, handler);
	pthread_key_create(&key, finish);
	pthread_barrier_init(&barrier, NULL, WORKERS + 1);
	sem_init(&sem, 0, 0);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, (void *)(i + 1));
	for (int i = 0; i < WORKERS * ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (queued == 0)
			pthread_cond_wait(&full, &lock);
		sum += queue[--queued];
		pthread_cond_broadcast(&empty);
		pthread_mutex_unlock(&lock);
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < WORKERS; i++)
		sem_wait(&sem);
	for (int i = 0; i < WORKERS; i++) {
		void *s;
		pthread_join(t[i], &s);
		puts(s);
		free(s);
	}
	printf("sum %ld begun %d ended %d handled %d unlocked %d\n", sum, begun, ended, handled, unlocked);
	int r = sem_timedwait(&sem, &ts);
	printf("timed %d %d\n", r, errno);
	nanosleep(&ts, NULL);

	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&other, NULL, waits, NULL);
	sem_wait(&sem);
	kill(getpid(), SIGUSR1);
	void *value;
	pthread_join(other, &value);
	printf("suspended %ld handled %d own %d\n", (long)value, handled, own);

	pthread_create(&other, NULL, forever, &sem);
	sched_yield();
	pthread_cancel(other);
	pthread_join(other, &value);
	printf("cancelled %d\n", value == PTHREAD_CANCELED);
	pthread_create(&other, NULL, forever, &sem);
	return 5;
}
