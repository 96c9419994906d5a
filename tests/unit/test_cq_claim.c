/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* crashes: test_cq_claim */
/* tier: core */
/* tier: core san */
/*
 * A CQ with ignore_overrun whose reader is at the oldest entry while the engine takes that entry
 * away and writes another in its place. The ring is a page that cannot be read: the reader is
 * interrupted at the entry, and the engine has its turn.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "../../user/engine/cq.h"

#define CAPACITY 4

static struct cq cq;
static void *page;
static size_t page_bytes;
static u64 next_wr_id;
static volatile sig_atomic_t turns, pushes;

static void push(void)
{
	const struct cqe e = { .wr_id = next_wr_id++, .qpn = 7 };

	if (!cq_push(&cq, &e))
		_exit(1);
}

/* The engine's turn; then the read goes on. */
static void engine(int signal, siginfo_t *info, void *context)
{
	if (info->si_addr < page || (char *)info->si_addr >= (char *)page + page_bytes)
		_exit(1);
	if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE))
		_exit(1);
	turns++;
	for (int i = 0; i < pushes; i++)
		push();
}

/* The reader of a full ring is interrupted by n completions: it gets the oldest that is left. */
static void reader_is_interrupted(u32 n)
{
	const struct sigaction ours = { .sa_sigaction = engine, .sa_flags = SA_SIGINFO };
	struct sigaction before;
	struct cqe *ring;

	assert_int_equal(cq_init(&cq, CAPACITY), 0);
	cq.ignore_overrun = true;
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	ring = cq.ring;
	cq.ring = page;
	next_wr_id = turns = 0;
	pushes = (int)n;
	for (u32 i = 0; i < CAPACITY; i++)
		push();
	assert_int_equal(mprotect(page, page_bytes, PROT_NONE), 0);
	assert_int_equal(sigaction(SIGSEGV, &ours, &before), 0);
	for (u32 i = 0; i < CAPACITY; i++) {
		const struct cqe *e = cq_peek(&cq);

		assert_non_null(e);
		assert_int_equal(e->wr_id, n + i);
		assert_int_equal(e->qpn, 7);
		cq_pop(&cq);
	}
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(turns, 1);
	assert_null(cq_peek(&cq));
	munmap(page, page_bytes);
	cq.ring = ring;
	cq_free(&cq);
}

static void cq_peek__entry_taken_away_under_the_reader(void **state)
{
	for (u32 n = 0; n <= 2 * CAPACITY; n++)
		reader_is_interrupted(n);
}

/* Nothing of the next completion is written where the reader may be at work. */
static void cq_push_begin__aside_of_the_reader(void **state)
{
	assert_int_equal(cq_init(&cq, CAPACITY), 0);
	for (u32 ignore = 0; ignore < 2; ignore++) {
		const struct cqe *to;

		cq.ignore_overrun = ignore;
		to = cq_push_begin(&cq);
		assert_int_equal(to >= cq.ring && to < cq.ring + CAPACITY, !ignore);
	}
	cq_free(&cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cq_peek__entry_taken_away_under_the_reader),
		cmocka_unit_test(cq_push_begin__aside_of_the_reader),
	};

	return cmocka_run_group_tests_name("cq_claim", tests, NULL, NULL);
}
