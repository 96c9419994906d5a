/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Actors, steps and time; see sim.h. */
#include "sim.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (256u << 10)
#define STEP_NS	    NSEC_PER_USEC
#define STEPS_MAX   50000 /* of a run that comes to no end */

static struct actor {
	ucontext_t context;
	actor_fn *fn;
	void *arg;
	void *stack;
	bool lives;
	bool waits;	/* until then, or until another has made a step */
	bool sleeps;	/* until then */
	u64 until_ns;
	u32 steps;
	u32 dies;
} actors[ACTORS];

static ucontext_t scheduler;
static int running = -1;
static u64 now_ns, policy, random_state;
static u32 last, steps, forks;

u64 clock_now_ns(void)
{
	return now_ns;
}

u32 sim_random(u32 below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(random_state >> 33) % below;
}

int actor_self(void)
{
	return running;
}

bool actor_lives(u32 actor)
{
	return actors[actor].lives;
}

void actors_begin(const struct run *r)
{
	now_ns = NSEC_PER_SEC;
	policy = r->seed;
	random_state = r->seed * 2654435761u + 1;
	forks = r->forks;
	last = steps = 0;
	running = -1;
	for (u32 i = 0; i < ACTORS; i++)
		actors[i] = (struct actor){ .stack = actors[i].stack, .dies = r->dies[i] };
}

void actors_stop(void)
{
	running = -1;
}

static void actor_leave(void)
{
	struct actor *a = &actors[running];

	running = -1;
	swapcontext(&a->context, &scheduler);
}

static void actor_main(void)
{
	struct actor *a = &actors[running];

	a->fn(a->arg);
	a->lives = false;
	actor_leave();
}

void actor_start(u32 actor, actor_fn *fn, void *arg)
{
	struct actor *a = &actors[actor];

	if (!a->stack)
		a->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	must(a->stack != MAP_FAILED && !getcontext(&a->context));
	if (outcome.died[actor])
		a->dies = 0;
	a->fn = fn;
	a->arg = arg;
	a->lives = true;
	a->waits = a->sleeps = false;
	a->context.uc_stack.ss_sp = a->stack;
	a->context.uc_stack.ss_size = STACK_BYTES;
	a->context.uc_link = NULL;
	makecontext(&a->context, actor_main, 0);
}

static void actors_look_again(void)
{
	for (u32 i = 0; i < ACTORS; i++)
		actors[i].waits &= actors[i].sleeps && actors[i].until_ns > now_ns;
}

static void actor_count(void)
{
	struct actor *a = &actors[running];
	const u32 self = (u32)running;

	a->steps++;
	steps++;
	must(steps < STEPS_MAX);
	if (!outcome.died[self])
		outcome.steps[self]++;
	if (!self && a->steps == forks)
		process_fork(self);
	if (a->steps == a->dies) {
		outcome.died[self] = true;
		a->lives = false;
		fds_close(self);
		if (self == BROKER)
			faked_lose_broker();
		actors_look_again();
		actor_leave();
	}
}

void actor_step(void)
{
	now_ns += STEP_NS;
	actors_look_again();
	actor_count();
	actor_leave();
}

void actor_waits_on(void)
{
	actor_count();
}

void actor_wait(u64 until_ns)
{
	struct actor *a = &actors[running];

	if (until_ns <= now_ns)
		return;
	a->waits = true;
	a->until_ns = until_ns;
	actor_leave();
}

void actor_sleep(u64 ns)
{
	struct actor *a = &actors[running];

	a->sleeps = true;
	actor_wait(now_ns + ns);
	a->sleeps = false;
}

/* The next that can go on: -1, none. */
static int actors_next(void)
{
	u32 can[ACTORS], n = 0;

	for (u32 i = 1; i <= ACTORS; i++) {
		const u32 k = (last + i) % ACTORS;

		if (actors[k].lives && !actors[k].waits)
			can[n++] = k;
	}
	if (!n)
		return -1;
	if (policy > 2)
		return (int)can[sim_random(n)];
	for (u32 i = 0; policy && i < n; i++)
		if ((can[i] == BROKER) == (policy == 2))
			return (int)can[i];
	return (int)can[0];
}

/* If no actor can run, jumps to the time when one can. Returns false if all wait for ever. */
static bool actors_jump(void)
{
	u64 next_ns = NSEC_NEVER;

	for (u32 i = 0; i < ACTORS; i++)
		if (actors[i].lives)
			next_ns = min_u64(next_ns, actors[i].until_ns);
	if (next_ns == NSEC_NEVER)
		return false;
	now_ns = max_u64(now_ns, next_ns);
	for (u32 i = 0; i < ACTORS; i++)
		actors[i].waits &= actors[i].until_ns > now_ns;
	return true;
}

void actors_go(void (*after)(void))
{
	/* something may have changed from outside */
	for (u32 i = 0; i < ACTORS; i++)
		actors[i].waits = false;
	do {
		for (int next; (next = actors_next()) >= 0; after()) {
			last = (u32)next;
			running = next;
			swapcontext(&scheduler, &actors[next].context);
		}
	} while (actors_jump());
}
