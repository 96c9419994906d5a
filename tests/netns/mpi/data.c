/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An MPI program that knows each byte that it receives: point to point of many sizes, in order and
 * against it, there and back, all-to-all, reductions, one-sided transfers, and words that all ranks
 * fetch and change. mpi.sh compiles it with the mpicc
 * of each MPI; nothing in it is ours.
 *
 *   data [ROUNDS]
 *
 * Rank 0 prints "data ok: N ranks on H hosts, M bytes checked, W on interfaces" when all ranks have
 * found all of it right; W is the bytes received by the interfaces of rank 0's host except `lo`. A
 * rank that finds an error prints its place, and ends all of them.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int sizes[] = { 0,	   1,	 7,	64,    127,   1000,   4095,
			     4096, 4097, 8192, 16385, 65536, 200001, 1048576 };
#define SIZES	  (int)(sizeof(sizes) / sizeof(sizes[0]))
#define MOST	  1048576
#define FAR	  65536
#define REDUCED	  20000
#define CELL	  3000 /* bytes of a one-sided transfer */
#define TICKETS	  5

static int rank, ranks;
static uint64_t checked;

/* Eight bytes of what `from` sends to `to` in the transfer `what`: the `at`th eight. */
static uint64_t data_word(int from, int to, int what, size_t at)
{
	uint64_t x = (uint64_t)at * 0x9e3779b97f4a7c15ull + (uint64_t)from * 0xbf58476d1ce4e5b9ull +
		     (uint64_t)to * 0x94d049bb133111ebull + (uint64_t)what * 0xd6e8feb86659fd93ull;

	x ^= x >> 29;
	x *= 0xff51afd7ed558ccdull;
	return x ^ x >> 32;
}

static void data_fill(uint8_t *buf, size_t len, int from, int to, int what)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = data_word(from, to, what, i / 8);

		memcpy(buf + i, &word, len - i < 8 ? len - i : 8);
	}
}

static void data_fail(const char *where, int from, size_t at)
{
	fprintf(stderr, "rank %d: %s: from rank %d, wrong at %zu\n", rank, where, from, at);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void data_check(const uint8_t *buf, size_t len, int from, int to, int what,
		       const char *where)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = data_word(from, to, what, i / 8);

		if (memcmp(buf + i, &word, len - i < 8 ? len - i : 8))
			data_fail(where, from, i);
	}
	checked += len;
}

static uint8_t *data_alloc(size_t len)
{
	uint8_t *p = malloc(len ? len : 1);

	if (!p)
		data_fail("no memory", rank, len);
	/* the previous content differs from the sent data */
	memset(p, 0x5a, len);
	return p;
}

/*
 * Each rank to every other, one distance and one size after the other; the sizes above FAR only to
 * the neighbours, as they take the same path as the smaller ones.
 */
static void run_in_order(int round)
{
	uint8_t *out = data_alloc(MOST), *in = data_alloc(MOST);

	for (int step = 1; step < ranks; step++) {
		int to = (rank + step) % ranks, from = (rank - step + ranks) % ranks;

		for (int i = 0; i < SIZES; i++) {
			MPI_Status status;
			int what = round * SIZES + i, got;

			if (sizes[i] > FAR && step > 1 && step < ranks - 1)
				continue;
			data_fill(out, (size_t)sizes[i], rank, to, what);
			memset(in, 0x5a, (size_t)sizes[i]);
			MPI_Sendrecv(out, sizes[i], MPI_BYTE, to, what, in, MOST, MPI_BYTE, from,
				     what, MPI_COMM_WORLD, &status);
			MPI_Get_count(&status, MPI_BYTE, &got);
			if (got != sizes[i] || status.MPI_SOURCE != from || status.MPI_TAG != what)
				data_fail("status", status.MPI_SOURCE, (size_t)got);
			data_check(in, (size_t)got, from, rank, what, "in order");
		}
	}
	free(out);
	free(in);
}

/* All sizes at once to the next rank, whose receives stand in the opposite order. */
static void run_reversed(int round)
{
	MPI_Request requests[2 * SIZES];
	uint8_t *out[SIZES], *in[SIZES];
	int to = (rank + 1) % ranks, from = (rank - 1 + ranks) % ranks;

	for (int i = 0; i < SIZES; i++) {
		out[i] = data_alloc((size_t)sizes[i]);
		in[i] = data_alloc((size_t)sizes[i]);
		data_fill(out[i], (size_t)sizes[i], rank, to, 1000 + round + i);
		MPI_Isend(out[i], sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = SIZES - 1; i >= 0; i--)
		MPI_Irecv(in[i], sizes[i], MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[SIZES + i]);
	MPI_Waitall(2 * SIZES, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < SIZES; i++) {
		data_check(in[i], (size_t)sizes[i], from, rank, 1000 + round + i, "reversed");
		free(out[i]);
		free(in[i]);
	}
}

/* There and back, each byte changed by the one who returns it; by pairs of neighbours. */
static void run_ping_pong(int round)
{
	int even = rank & ~1, peer = rank ^ 1;
	uint8_t *buf = data_alloc(MOST);

	for (int i = 0; peer < ranks && i < SIZES; i++) {
		size_t len = (size_t)sizes[i];
		int what = 4000 + round * SIZES + i;

		if (rank == even) {
			data_fill(buf, len, even, peer, what);
			MPI_Send(buf, sizes[i], MPI_BYTE, peer, what, MPI_COMM_WORLD);
			memset(buf, 0x5a, len);
		}
		MPI_Recv(buf, sizes[i], MPI_BYTE, peer, what, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (size_t k = 0; k < len; k++)
			buf[k] ^= (uint8_t)(rank == even ? 0xa5 : 0);
		data_check(buf, len, even, even + 1, what, "there and back");
		if (rank != even) {
			for (size_t k = 0; k < len; k++)
				buf[k] ^= 0xa5;
			MPI_Send(buf, sizes[i], MPI_BYTE, peer, what, MPI_COMM_WORLD);
		}
	}
	free(buf);
}

static void run_all_to_all(int round, int len)
{
	size_t each = (size_t)len;
	uint8_t *out = data_alloc(each * (size_t)ranks), *in = data_alloc(each * (size_t)ranks);

	for (int i = 0; i < ranks; i++)
		data_fill(out + each * (size_t)i, each, rank, i, 2000 + round);
	MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		data_check(in + each * (size_t)i, each, i, rank, 2000 + round, "all-to-all");
	free(out);
	free(in);
}

/* Element i of rank r is (r + 1) * (i + 3): the sum and the maximum are known. */
static void run_allreduce(void)
{
	static int64_t in[REDUCED], sum[REDUCED], most[REDUCED];

	for (int i = 0; i < REDUCED; i++)
		in[i] = (int64_t)(rank + 1) * (i + 3);
	MPI_Allreduce(in, sum, REDUCED, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(in, most, REDUCED, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
	for (int i = 0; i < REDUCED; i++) {
		if (sum[i] != (int64_t)ranks * (ranks + 1) / 2 * (i + 3))
			data_fail("sum", -1, (size_t)i);
		if (most[i] != (int64_t)ranks * (i + 3))
			data_fail("maximum", -1, (size_t)i);
	}
	checked += sizeof(sum) + sizeof(most);
}

/* Puts into each rank's window, gets of the same data, and a counter that all add to. */
static void run_one_sided(int round)
{
	size_t room = (size_t)ranks * CELL;
	uint8_t *window_of_bytes, *out = data_alloc(room), *in = data_alloc(room);
	int64_t *count, one = 1;
	MPI_Win bytes, counts;

	MPI_Win_allocate((MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_of_bytes,
			 &bytes);
	MPI_Win_allocate(sizeof(*count), sizeof(*count), MPI_INFO_NULL, MPI_COMM_WORLD, &count,
			 &counts);
	memset(window_of_bytes, 0x5a, room);
	*count = 0;
	MPI_Win_fence(0, bytes);
	MPI_Win_fence(0, counts);
	for (int i = 0; i < ranks; i++) {
		data_fill(out + CELL * i, CELL, rank, i, 3000 + round);
		MPI_Put(out + CELL * i, CELL, MPI_BYTE, i, (MPI_Aint)CELL * rank, CELL, MPI_BYTE,
			bytes);
		MPI_Accumulate(&one, 1, MPI_INT64_T, i, 0, 1, MPI_INT64_T, MPI_SUM, counts);
	}
	MPI_Win_fence(0, bytes);
	MPI_Win_fence(0, counts);
	for (int i = 0; i < ranks; i++)
		data_check(window_of_bytes + CELL * i, CELL, i, rank, 3000 + round, "put");
	if (*count != ranks)
		data_fail("accumulate", -1, (size_t)*count);
	/* of what the rank after each one put there */
	for (int i = 0; i < ranks; i++)
		MPI_Get(in + CELL * i, CELL, MPI_BYTE, i, (MPI_Aint)CELL * ((i + 1) % ranks), CELL,
			MPI_BYTE, bytes);
	MPI_Win_fence(0, bytes);
	for (int i = 0; i < ranks; i++)
		data_check(in + CELL * i, CELL, (i + 1) % ranks, i, 3000 + round, "get");
	MPI_Win_free(&bytes);
	MPI_Win_free(&counts);
	free(out);
	free(in);
}

/*
 * Tickets: each rank draws TICKETS from each rank's counter, and no number comes twice: the sum of
 * all is known. A word that is swapped only if it is what the rank before left there: round all
 * ranks in turn. Passive targets, so no rank helps another but by its progress.
 */
static void run_fetch_and_op(void)
{
	int64_t *word, one = 1, sum = 0, total, draws = (int64_t)ranks * TICKETS;
	MPI_Win win;

	MPI_Win_allocate(2 * sizeof(*word), sizeof(*word), MPI_INFO_NULL, MPI_COMM_WORLD, &word,
			 &win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	word[0] = word[1] = 0;
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int to = 0; to < ranks; to++) {
		int64_t last = -1, got = -1;

		for (int i = 0; i < TICKETS; i++) {
			MPI_Fetch_and_op(&one, &got, MPI_INT64_T, to, 0, MPI_SUM, win);
			MPI_Win_flush(to, win);
			if (got <= last || got >= draws)
				data_fail("fetch and op", to, (size_t)got);
			last = got;
			sum += got;
		}
	}
	MPI_Allreduce(&sum, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (total != ranks * (draws * (draws - 1) / 2))
		data_fail("sum of tickets", -1, (size_t)total);
	for (int to = 0; to < ranks; to++) {
		int64_t mine = rank + 1, before = rank, got = -1;

		for (;;) {
			int flag;

			MPI_Compare_and_swap(&mine, &before, &got, MPI_INT64_T, to, 1, win);
			MPI_Win_flush(to, win);
			if (got > before)
				data_fail("compare and swap", to, (size_t)got);
			if (got == before)
				break;
			/*
			 * Open MPI's calls of a rank to itself make no progress: the swap of the
			 * rank before would wait for ever.
			 */
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
				   MPI_STATUS_IGNORE);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(win);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	if (word[0] != draws || word[1] != ranks)
		data_fail("words", rank, (size_t)word[1]);
	MPI_Win_unlock(rank, win);
	MPI_Win_free(&win);
	checked += sizeof(*word) * (size_t)(draws + ranks);
}

static int count_hosts(void)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "", *names;
	int len, hosts = 0;

	names = (char *)data_alloc((size_t)ranks * sizeof(name));
	MPI_Get_processor_name(name, &len);
	MPI_Allgather(name, sizeof(name), MPI_CHAR, names, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		int before = 0;

		while (before < i && strcmp(names + sizeof(name) * (size_t)before,
					    names + sizeof(name) * (size_t)i))
			before++;
		hosts += before == i;
	}
	free(names);
	return hosts;
}

/* By /proc/net/dev, whose lines are "  name: bytes ...". */
static unsigned long long received_by_interfaces(void)
{
	FILE *f = fopen("/proc/net/dev", "r");
	unsigned long long bytes, sum = 0;
	char line[512], name[64];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " %63[^:]: %llu", name, &bytes) == 2 && strcmp(name, "lo"))
			sum += bytes;
	if (f)
		fclose(f);
	return sum;
}

int main(int argc, char **argv)
{
	static const int all_to_all[] = { 1, 64, 4096, 20000 };
	int rounds = argc > 1 ? atoi(argv[1]) : 1, hosts;
	uint64_t total;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int round = 0; round < rounds; round++) {
		run_in_order(round);
		run_reversed(round);
		run_ping_pong(round);
		for (size_t i = 0; i < sizeof(all_to_all) / sizeof(all_to_all[0]); i++)
			run_all_to_all(round, all_to_all[i]);
		run_allreduce();
		run_one_sided(round);
		run_fetch_and_op();
	}
	MPI_Allreduce(&checked, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	hosts = count_hosts();
	if (!rank)
		printf("data ok: %d ranks on %d hosts, %llu bytes checked, %llu on interfaces\n",
		       ranks, hosts, (unsigned long long)total, received_by_interfaces());
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
