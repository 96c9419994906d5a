/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See watch.h. */
#define _GNU_SOURCE
#include "watch.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "../lib/ctl.h"

#define TRAP_FLAG 0x100

static struct {
	const struct job *j;
	uint8_t *memory;
	_Atomic uint32_t generation;
	_Atomic uint64_t added, looks, halves;
	atomic_int users; /* threads that look */
	atomic_bool on;
	char fault[160];
} watch;

static bool has_steps;
static pthread_t looker;
static _Thread_local bool is_me;

static void report(const char *what, uint32_t word, uint64_t is, uint64_t before)
{
	if (!watch.fault[0])
		snprintf(watch.fault, sizeof(watch.fault),
			 "%s: word %u, byte %u: %016llx after %016llx", what, word,
			 watch.j->words[word].msg, (unsigned long long)is,
			 (unsigned long long)before);
}

/* From the last word down: if a later word has arrived, all before it have. */
static void look_at_landing(const struct job *j)
{
	uint64_t last = 0, first = 0, before = 0;

	for (uint32_t i = j->num_words; i-- > 0;) {
		const uint64_t is = __atomic_load_n((uint64_t *)(watch.memory + j->words[i].at),
						    __ATOMIC_ACQUIRE);

		if (!job_is_whole(is))
			report("a word of two moments", i, is, before);
		else if (j->is_in_order && (uint16_t)is < (uint16_t)before)
			report("a word that is later than one after it", i, is, before);
		before = is;
		if (i == j->num_words - 1)
			last = is;
		first = is;
	}
	if (first != last)
		watch.halves++;
}

static void move_source(const struct job *j)
{
	const uint64_t stamp = job_stamp((uint16_t)++watch.generation);

	for (uint32_t i = 0; i < j->num_words; i++)
		for (uint32_t s = 0; s < SLOTS; s++)
			__atomic_store_n((uint64_t *)(watch.memory + SLOT(s) + j->words[i].at),
					 stamp, __ATOMIC_RELAXED);
}

/* Of compare and swap there and back, so that some succeed. */
static void add_to_word(const struct job *j)
{
	uint64_t *word = (uint64_t *)(watch.memory + LANDING + j->from.e[0].at);
	const bool back = j->op == IBV_WR_ATOMIC_CMP_AND_SWP && watch.looks % 2;

	__atomic_fetch_add(word, back ? -1ull : 1, __ATOMIC_RELAXED);
	watch.added += back ? -1ull : 1;
}

static void look(void)
{
	watch.users++;
	if (watch.on) {
		if (job_is_atomic(watch.j))
			add_to_word(watch.j);
		else if (watch.j->is_moving)
			move_source(watch.j);
		else
			look_at_landing(watch.j);
		watch.looks++;
	}
	watch.users--;
}

static void handle_step(int sig, siginfo_t *info, void *context)
{
#if defined(__x86_64__)
	ucontext_t *uc = context;

	if (!is_me)
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	else
		look();
#endif
}

static void *looker_main(void *arg)
{
	while (watch.on)
		look();
	return NULL;
}

void watch_install(bool steps)
{
	struct sigaction action = { .sa_sigaction = handle_step, .sa_flags = SA_SIGINFO };

#if defined(__x86_64__)
	has_steps = steps;
#endif
	must(!sigaction(SIGTRAP, &action, NULL), "sigaction");
}

void watch_begin(const struct job *j, uint8_t *memory)
{
	watch.j = j;
	watch.memory = memory;
	watch.fault[0] = 0;
	watch.generation = 0;
	watch.added = 0;
	watch.on = true;
	if (!has_steps)
		must(!pthread_create(&looker, NULL, looker_main, NULL), "pthread_create");
}

const char *watch_end(void)
{
	watch.on = false;
	while (watch.users)
		sched_yield();
	if (!has_steps)
		pthread_join(looker, NULL);
	return watch.fault[0] ? watch.fault : NULL;
}

uint64_t watch_added(void)
{
	return watch.added;
}

void watch_counts(uint64_t *looks, uint64_t *halves)
{
	*looks = watch.looks;
	*halves = watch.halves;
}

void watch_me(void)
{
#if defined(__x86_64__)
	if (!has_steps || !watch.on)
		return;
	is_me = true;
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
#endif
}

/* The handler takes the flag away. */
void watch_me_no_more(void)
{
	is_me = false;
}
