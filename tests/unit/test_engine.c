/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine against an application that arms a CQ: engine_complete() pushes the completion before it takes the arm word, so that either the application
 * finds the completion when it looks once more after arming, or the engine reports the event. Neither is a lost wake-up. On two threads, where chance
 * decides who comes first; and with an application that comes exactly before the push.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "../../user/transport/internal.h"

#define DUELS 200000
#define LAGS  40

static struct xroce_engine_stats stats;
static struct xroce_drops drops;
static struct engine *engine;
static struct cq cq;

/* What the two threads agree on before each series. */
static u32 arm_for;
static bool solicited;
static _Atomic u32 start_line, finish_line;
static _Atomic bool reported;

static u64 next_number(void *arg)
{
	static u64 n;

	return n += 0x9e3779b97f4a7c15;
}

static int make(void **state)
{
	struct engine_config config = { .random = next_number, .stats = &stats, .drops = &drops };

	return engine_create(&config, &engine) || cq_init(&cq, 4);
}

static int drop(void **state)
{
	engine_destroy(engine);
	cq_free(&cq);
	return 0;
}

/* Both at once, in each round: on one processor too, though nothing is found there. */
static void meet(_Atomic u32 *line, u32 round)
{
	atomic_fetch_add(line, 1);
	for (u32 spins = 0; atomic_load(line) < 2 * round; spins++)
		if (spins > 2000)
			sched_yield();
}

/* Who starts how much later than the other: every combination in turn. */
static void lag(u32 steps)
{
	for (volatile u32 i = 0; i < steps; i++)
		;
}

static void *completer(void *arg)
{
	for (u32 round = 1; round <= DUELS; round++) {
		const struct cqe cqe = { .wr_id = round, .opcode = CQE_RECV };
		struct engine_event event;
		bool any = false;

		meet(&start_line, round);
		lag(round % LAGS);
		engine_complete(engine, &cq, &cqe, solicited);
		while (engine_next_event(engine, &event))
			any |= event.type == EVENT_COMPLETION && event.cq == &cq;
		atomic_store(&reported, any);
		meet(&finish_line, round);
	}
	return NULL;
}

static void duel(void)
{
	u32 lost = 0, wrong = 0;
	pthread_t thread;

	atomic_store(&start_line, 0);
	atomic_store(&finish_line, 0);
	assert_int_equal(pthread_create(&thread, NULL, completer, NULL), 0);
	for (u32 round = 1; round <= DUELS; round++) {
		const struct cqe *e;
		bool sees;

		meet(&start_line, round);
		lag(round / LAGS % LAGS);
		atomic_store(&cq.armed, arm_for);
		sees = cq_peek(&cq) != NULL;
		meet(&finish_line, round);
		/* between the lines nobody else is at it: the other thread waits for the next start */
		lost += !sees && !atomic_load(&reported);
		atomic_store(&cq.armed, CQ_DISARMED);
		e = cq_peek(&cq);
		wrong += !e || e->wr_id != round;
		if (e)
			cq_pop(&cq);
	}
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
	assert_int_equal(wrong, 0);
}

static void engine_complete__against_arming(void **state)
{
	arm_for = CQ_ARMED_ANY;
	solicited = false;
	duel();
}

static void engine_complete__against_arming_for_solicited(void **state)
{
	arm_for = CQ_ARMED_SOLICITED;
	solicited = true;
	duel();
}

/* ---- the ring is a page that cannot be written: who pushes is interrupted, and the application has its turn ---- */

static void *page;
static size_t page_bytes;
static volatile sig_atomic_t turns, saw;

/* The application: arm, look once more. Then the push goes on. */
static void application(int signal, siginfo_t *info, void *context)
{
	if (info->si_addr < page || (char *)info->si_addr >= (char *)page + page_bytes)
		_exit(1);
	turns++;
	atomic_store(&cq.armed, arm_for);
	saw = cq_peek(&cq) != NULL;
	if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE))
		_exit(1);
}

static void completion_while_arming(bool reports)
{
	const struct sigaction ours = { .sa_sigaction = application, .sa_flags = SA_SIGINFO };
	const struct cqe cqe = { .wr_id = 7, .opcode = CQE_RECV };
	struct sigaction before;
	struct engine_event event;
	struct cqe *ring = cq.ring;
	u64 wr_id;

	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	turns = 0;
	cq.ring = page;
	assert_int_equal(sigaction(SIGSEGV, &ours, &before), 0);
	engine_complete(engine, &cq, &cqe, solicited);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	wr_id = ((struct cqe *)page)->wr_id;
	cq.ring = ring;
	munmap(page, page_bytes);
	assert_int_equal(turns, 1);
	assert_false(saw);
	assert_int_equal(engine_next_event(engine, &event), reports);
	if (reports) {
		assert_int_equal(event.type, EVENT_COMPLETION);
		assert_ptr_equal(event.cq, &cq);
	}
	assert_int_equal(cq_is_armed(&cq), !reports);
	assert_int_equal(wr_id, 7);
}

static void engine_complete__armed_before_the_push(void **state)
{
	arm_for = CQ_ARMED_ANY;
	solicited = false;
	completion_while_arming(true);
}

static void engine_complete__armed_for_solicited_before_the_push(void **state)
{
	arm_for = CQ_ARMED_SOLICITED;
	solicited = true;
	completion_while_arming(true);
}

static void engine_complete__armed_for_solicited_before_another(void **state)
{
	arm_for = CQ_ARMED_SOLICITED;
	solicited = false;
	completion_while_arming(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(engine_complete__against_arming, make, drop),
		cmocka_unit_test_setup_teardown(engine_complete__against_arming_for_solicited, make, drop),
		cmocka_unit_test_setup_teardown(engine_complete__armed_before_the_push, make, drop),
		cmocka_unit_test_setup_teardown(engine_complete__armed_for_solicited_before_the_push, make, drop),
		cmocka_unit_test_setup_teardown(engine_complete__armed_for_solicited_before_another, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
