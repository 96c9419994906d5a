/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An OpenSHMEM program that knows each byte that it receives: puts and gets of many sizes, blocking
 * and not, strided ones, atomic operations of all PEs on the words of one, a lock, waiting for a
 * word, collectives. oshmem.sh compiles it with oshcc; nothing in it is ours.
 *
 * PE 0 prints "data ok: N PEs on H hosts, M bytes checked, W on interfaces" when all PEs have found
 * all of it right; W is the bytes received by the interfaces of PE 0's host except `lo`. A PE that
 * finds an error prints its place, and ends all of them.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t sizes[] = { 1, 7, 8, 64, 127, 1000, 4096, 4097, 16385, 65536, 200001, 1048576 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define MOST  1048576
#define ROUND 200 /* atomic operations of each kind that a PE does */
#define MANY  64  /* puts that are under way at once */
#define SMALL 512
#define WORDS 1000
#define SYNC  (SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE)

static int me, pes;
static uint64_t checked;

/* Byte `at` of the transfer `what` from PE `from` to PE `to`. */
static uint8_t data_byte(int from, int to, int what, size_t at)
{
	uint64_t x = at / 8 * 0x9e3779b97f4a7c15ull + (uint64_t)from * 0xbf58476d1ce4e5b9ull +
		     (uint64_t)to * 0x94d049bb133111ebull + (uint64_t)what * 0xd6e8feb86659fd93ull;

	x ^= x >> 29;
	x *= 0xff51afd7ed558ccdull;
	return (uint8_t)((x ^ x >> 32) >> at % 8 * 8);
}

static void fill(uint8_t *to_memory, size_t n, int from, int to, int what)
{
	for (size_t i = 0; i < n; i++)
		to_memory[i] = data_byte(from, to, what, i);
}

static void bad(const char *what, long at, long got, long want)
{
	printf("PE %d: %s: at %ld is %ld, not %ld\n", me, what, at, got, want);
	fflush(stdout);
	shmem_global_exit(1);
}

static void check(const char *name, const uint8_t *got, size_t n, int from, int to, int what)
{
	for (size_t i = 0; i < n; i++)
		if (got[i] != data_byte(from, to, what, i))
			bad(name, (long)i, got[i], data_byte(from, to, what, i));
	checked += n;
}

static void check_word(const char *name, long at, long got, long want)
{
	if (got != want)
		bad(name, at, got, want);
	checked += sizeof(got);
}

/* Each PE puts into the next one, then fetches the same bytes back and what its neighbour has. */
static void puts_and_gets(void)
{
	uint8_t *there = shmem_malloc(MOST + 1), *mine = malloc(MOST);
	int next = (me + 1) % pes, last = (me + pes - 1) % pes;

	for (size_t i = 0; i < SIZES; i++) {
		size_t n = sizes[i];

		memset(there, 0, MOST + 1);
		shmem_barrier_all();
		fill(mine, n, me, next, (int)i);
		shmem_putmem(there, mine, n, next);
		shmem_barrier_all();
		check("put", there, n, last, me, (int)i);
		check_word("behind a put", (long)n, there[n], 0);
		memset(mine, 0, n);
		shmem_getmem(mine, there, n, next);
		check("get", mine, n, me, next, (int)i);
		memset(mine, 0, n);
		shmem_getmem_nbi(mine, there, n, last);
		shmem_quiet();
		check("get_nbi", mine, n, (last + pes - 1) % pes, last, (int)i);
		shmem_barrier_all();
	}
	free(mine);
	shmem_free(there);
}

/* Many puts at once; a word sent after a fence must not come before them. */
static void ordered(void)
{
	uint8_t *there = shmem_malloc(MANY * SMALL), *mine = malloc(MANY * SMALL);
	long *word = shmem_calloc(1, sizeof(*word)), one;
	int next = (me + 1) % pes, last = (me + pes - 1) % pes;

	/* Open MPI's shmem_calloc() clears the memory after its barrier */
	shmem_barrier_all();
	for (int round = 0; round < 20; round++) {
		fill(mine, MANY * SMALL, me, next, 100 + round);
		for (int i = 0; i < MANY; i++)
			shmem_putmem_nbi(there + i * SMALL, mine + i * SMALL, SMALL, next);
		shmem_fence();
		one = round + 1;
		shmem_long_put(word, &one, 1, next);
		shmem_long_wait_until(word, SHMEM_CMP_EQ, round + 1);
		check("put_nbi", there, MANY * SMALL, last, me, 100 + round);
		shmem_barrier_all();
	}
	shmem_free(word);
	free(mine);
	shmem_free(there);
}

static void strided(void)
{
	long *there = shmem_calloc(3 * WORDS, sizeof(*there)), mine[2 * WORDS], back[WORDS];
	int next = (me + 1) % pes, last = (me + pes - 1) % pes;

	for (int i = 0; i < 2 * WORDS; i++)
		mine[i] = me * 100000L + i;
	shmem_barrier_all();
	shmem_long_iput(there, mine, 3, 2, WORDS, next);
	shmem_barrier_all();
	for (int i = 0; i < 3 * WORDS; i++)
		check_word("iput", i, there[i], i % 3 ? 0 : last * 100000L + i / 3 * 2);
	shmem_long_iget(back, there, 1, 3, WORDS, next);
	for (int i = 0; i < WORDS; i++)
		check_word("iget", i, back[i], me * 100000L + i * 2);
	shmem_barrier_all();
	shmem_free(there);
}

/* All PEs change the words of PE 0. Bits are the PE's own, so each change is seen by its PE. */
static void atomics(void)
{
	long *sum = shmem_calloc(1, sizeof(*sum)), *turn = shmem_calloc(1, sizeof(*turn));
	uint64_t *bits = shmem_calloc(1, sizeof(*bits));
	int *small = shmem_calloc(1, sizeof(*small));
	int *tickets = shmem_calloc((size_t)ROUND * pes, sizeof(*tickets));
	long *token = shmem_calloc(1, sizeof(*token)), taken = 0, held;
	long *sums = shmem_calloc(2, sizeof(*sums)), *work = shmem_calloc(64, sizeof(*work));
	long *sync = shmem_malloc(SHMEM_REDUCE_SYNC_SIZE * sizeof(*sync));
	uint64_t mask = 1ull << me;

	shmem_barrier_all();
	for (int i = 0; i < ROUND; i++) {
		int got = shmem_int_atomic_fetch_inc(small, 0);

		/* a ticket that two PEs got would be counted twice */
		if (got < 0 || got >= ROUND * pes)
			bad("fetch_inc", i, got, 0);
		shmem_int_atomic_inc(tickets + got, 0);
		shmem_long_atomic_add(sum, me + 1, 0);
		if (shmem_uint64_atomic_fetch_or(bits, mask, 0) & mask)
			bad("fetch_or", i, 1, 0);
		if (!(shmem_uint64_atomic_fetch_and(bits, ~mask, 0) & mask))
			bad("fetch_and", i, 0, 1);
		shmem_uint64_atomic_xor(bits, mask << 16, 0);
	}
	/* one token circulates: PEs took from PE 0 exactly the data that they put there */
	for (int i = 0; i < ROUND; i++) {
		held = shmem_long_atomic_swap(token, me * 1000L + i, 0);
		taken += held - (me * 1000L + i);
	}
	/* PE 0 serves the others only where it waits: calls to the same PE make no progress */
	for (int i = 0; i < 10; i++) {
		if (!me)
			shmem_long_wait_until(turn, SHMEM_CMP_EQ, i * pes);
		while (shmem_long_atomic_compare_swap(turn, i * pes + me, i * pes + me + 1, 0) !=
		       i * pes + me)
			usleep(50);
	}
	shmem_barrier_all();
	for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
		sync[i] = SHMEM_SYNC_VALUE;
	sums[0] = taken;
	shmem_barrier_all();
	shmem_long_sum_to_all(sums + 1, sums, 1, 0, 0, pes, work, sync);
	if (!me) {
		check_word("sum", 0, *sum, (long)ROUND * pes * (pes + 1) / 2);
		check_word("fetch_inc", 0, *small, ROUND * pes);
		for (int i = 0; i < ROUND * pes; i++)
			check_word("ticket", i, tickets[i], 1);
		check_word("bits", 0, (long)*bits, 0);
		check_word("turn", 0, *turn, 10 * pes);
		check_word("swaps", 0, sums[1] + *token, 0);
	}
	check_word("fetch", 0, shmem_long_atomic_fetch(sum, 0), (long)ROUND * pes * (pes + 1) / 2);
	shmem_barrier_all();
}

/* A lock guards a word that is changed by a plain get and a plain put. */
static void locked(void)
{
	static long lock, word;
	long seen;

	for (int i = 0; i < 20; i++) {
		shmem_set_lock(&lock);
		shmem_long_get(&seen, &word, 1, 0);
		seen++;
		shmem_long_put(&word, &seen, 1, 0);
		shmem_quiet();
		shmem_clear_lock(&lock);
	}
	shmem_barrier_all();
	check_word("lock", 0, shmem_long_g(&word, 0), 20L * pes);
	shmem_barrier_all();
}

static void collectives(void)
{
	static long sync[3 * SYNC];
	uint64_t *from = shmem_malloc(WORDS * 8), *to = shmem_calloc((size_t)WORDS * pes, 8);

	for (size_t i = 0; i < 3 * SYNC; i++)
		sync[i] = SHMEM_SYNC_VALUE;
	fill((uint8_t *)from, WORDS * 8, me, 0, 200);
	shmem_barrier_all();
	shmem_broadcast64(to, from, WORDS, 0, 0, 0, pes, sync);
	if (me)
		check("broadcast", (uint8_t *)to, WORDS * 8, 0, 0, 200);
	shmem_barrier_all();
	shmem_fcollect64(to, from, WORDS, 0, 0, pes, sync + SYNC);
	for (int p = 0; p < pes; p++)
		check("fcollect", (uint8_t *)(to + (size_t)p * WORDS), WORDS * 8, p, 0, 200);
	uint64_t *all = shmem_malloc((size_t)WORDS * pes * 8);

	for (int p = 0; p < pes; p++)
		fill((uint8_t *)(all + (size_t)p * WORDS), WORDS * 8, me, p, 201);
	shmem_barrier_all();
	shmem_alltoall64(to, all, WORDS, 0, 0, pes, sync + 2 * SYNC);
	for (int p = 0; p < pes; p++)
		check("alltoall", (uint8_t *)(to + (size_t)p * WORDS), WORDS * 8, p, me, 201);
	shmem_barrier_all();
	shmem_free(all);
	shmem_free(to);
	shmem_free(from);
}

/* The bytes that the interfaces of this network namespace but `lo` have received. */
static uint64_t received(void)
{
	char line[512];
	uint64_t sum = 0;
	FILE *f = fopen("/proc/net/dev", "r");

	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (colon && !strstr(line, " lo:"))
			sum += strtoull(colon + 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return sum;
}

/* On how many hosts the PEs are, by their names. */
static int hosts(void)
{
	char(*names)[64] = shmem_calloc((size_t)pes, sizeof(*names)), name[64] = "";
	int n = 0;

	gethostname(name, sizeof(name) - 1);
	shmem_barrier_all();
	shmem_putmem(names[me], name, sizeof(name), 0);
	shmem_barrier_all();
	for (int p = 0; p < pes; p++) {
		int q = 0;

		while (q < p && strcmp(names[q], names[p]))
			q++;
		n += q == p;
	}
	return n;
}

int main(void)
{
	uint64_t before;
	long *counts;

	shmem_init();
	me = shmem_my_pe();
	pes = shmem_n_pes();
	before = received();
	puts_and_gets();
	ordered();
	strided();
	atomics();
	locked();
	collectives();
	counts = shmem_calloc(1, sizeof(*counts));
	shmem_barrier_all();
	shmem_long_atomic_add(counts, (long)checked, 0);
	shmem_barrier_all();
	int n = hosts();

	if (!me)
		printf("data ok: %d PEs on %d hosts, %ld bytes checked, %llu on interfaces\n", pes,
		       n, *counts, (unsigned long long)(received() - before));
	fflush(stdout);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
