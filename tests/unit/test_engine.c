/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* crashes: test_engine */
/* tier: core */
/* tier: core san */
/* tier: long tsan */
/*
 * The engine against an application that arms a CQ: engine_complete() pushes the completion before
 * it takes the arm word, so that either the application finds the completion when it looks once
 * more after arming, or the engine reports the event. Neither is a lost wake-up. On two threads, in
 * random order; and with an application that comes exactly before the push.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "duel.h"
#include "../../user/engine/internal.h"
#include "bare_engine.h"

/* How the application arms, and what the engine completes. */
static u32 arm_for;
static bool solicited;

/* Completes as the engine does; true if it reports the event. */
static bool engine_completes(u64 wr_id)
{
	const struct cqe cqe = { .wr_id = wr_id, .opcode = CQE_RECV };
	struct engine_event event;
	bool reported = false;

	engine_complete(engine, &cq, &cqe, solicited);
	while (engine_next_event(engine, &event))
		reported |= event.type == EVENT_COMPLETION && event.cq == &cq;
	return reported;
}

static void engine_complete__against_arming(void **state)
{
	arm_for = CQ_ARMED_ANY;
	solicited = false;
	duel(&cq, arm_for, engine_completes);
}

static void engine_complete__against_arming_for_solicited(void **state)
{
	arm_for = CQ_ARMED_SOLICITED;
	solicited = true;
	duel(&cq, arm_for, engine_completes);
}

/*
 * ---- the ring is a page that cannot be written: who pushes is interrupted, and the application
 * has its turn ----
 */

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

/* at_end: not where the entry is written, but where it is handed over. */
static void completion_interrupted(bool at_end, bool reports)
{
	const struct sigaction ours = { .sa_sigaction = application, .sa_flags = SA_SIGINFO };
	const int writable = at_end ? PROT_READ | PROT_WRITE : PROT_READ;
	struct cqe *ring = cq.ring, *cqe;
	struct sigaction before;
	struct engine_event event;
	int written_turns, locked;
	u64 wr_id;

	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, page_bytes, writable, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	turns = 0;
	cq.ring = page;
	assert_int_equal(sigaction(SIGSEGV, &ours, &before), 0);
	cqe = engine_complete_begin(&cq);
	*cqe = (struct cqe){ .wr_id = 7, .opcode = CQE_RECV };
	/* the compiler writes the entry before it reads what the handler of that write has done */
	atomic_signal_fence(memory_order_seq_cst);
	written_turns = turns;
	locked = at_end && mprotect(page, page_bytes, PROT_READ);
	engine_complete_end(engine, &cq, cqe, solicited);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	wr_id = cq_peek(&cq)->wr_id;
	cq_pop(&cq);
	cq.ring = ring;
	munmap(page, page_bytes);
	assert_int_equal(locked, 0);
	assert_int_equal(written_turns, !at_end);
	assert_int_equal(turns, 1);
	assert_false(saw);
	assert_int_equal(engine_next_event(engine, &event), reports);
	if (reports) {
		assert_int_equal(event.type, EVENT_COMPLETION);
		assert_ptr_equal(event.cq, &cq);
	}
	assert_int_equal(cq_is_armed(&cq), !reports);
	assert_int_equal(wr_id, 7);
	atomic_store(&cq.armed, CQ_DISARMED);
}

static void completion_while_arming(bool reports)
{
	completion_interrupted(false, reports);
	completion_interrupted(true, reports);
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
		WITH_ENGINE(engine_complete__against_arming),
		WITH_ENGINE(engine_complete__against_arming_for_solicited),
		WITH_ENGINE(engine_complete__armed_before_the_push),
		WITH_ENGINE(engine_complete__armed_for_solicited_before_the_push),
		WITH_ENGINE(engine_complete__armed_for_solicited_before_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
