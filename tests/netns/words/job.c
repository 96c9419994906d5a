/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See job.h. */
#include "job.h"

#include <stdio.h>
#include <string.h>

static uint64_t dice;

/* splitmix64 (Vigna); below n */
static uint32_t roll(uint32_t n)
{
	uint64_t z = (dice += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ (z >> 31)) >> 16) % n;
}

/* ---- lists ---- */

static void list_one(struct list *l, uint32_t base, uint32_t len)
{
	const uint32_t at = base + 512 + (roll(2) ? 0 : roll(64));

	*l = (struct list){ .n = 1, .e = { { at, len, false } } };
}

/* Odd lengths. Either in one piece of memory, or each apart and the later ones before. */
static void list_many(struct list *l, uint32_t base, uint32_t len, bool nulls)
{
	const bool apart = roll(2);
	uint32_t at = base + 512 + roll(64), left = len, most = 2 + roll(ELEMENTS - 1);

	l->n = 0;
	while (left || !l->n) {
		struct element *e = &l->e[l->n++];

		e->len = roll(12) ? 1 + roll(roll(2) ? 40 : left + 1) : 0;
		if (e->len > left || l->n == most)
			e->len = left;
		e->null = nulls && !roll(3);
		e->at = at;
		at += e->len + (apart ? 9 + roll(30) : 0);
		left -= e->len;
	}
	for (uint32_t i = 0; apart && i < l->n; i++)
		l->e[i].at = base + 512 + at - l->e[i].at - l->e[i].len;
}

static void list_draw(struct list *l, uint32_t base, uint32_t len, bool one)
{
	if (one || !roll(3))
		list_one(l, base, len);
	else
		list_many(l, base, len, !roll(3));
}

void list_put(const struct list *l, uint8_t *memory, uint32_t base, const uint8_t *bytes)
{
	for (uint32_t i = 0; i < l->n; bytes += l->e[i++].len)
		if (!l->e[i].null)
			memcpy(memory + base + l->e[i].at, bytes, l->e[i].len);
}

void list_get(const struct list *l, const uint8_t *memory, uint32_t base, bool skip_null,
	      uint8_t *bytes)
{
	for (uint32_t i = 0; i < l->n; bytes += l->e[i++].len)
		if (!l->e[i].null)
			memcpy(bytes, memory + base + l->e[i].at, l->e[i].len);
		else if (!skip_null)
			memset(bytes, 0, l->e[i].len);
}

bool list_is_null(const struct list *l, uint32_t pos, uint32_t len)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < l->n; at += l->e[i++].len)
		if (l->e[i].null && at < pos + len && pos < at + l->e[i].len)
			return true;
	return false;
}

/* ---- words ---- */

/*
 * The aligned words of the memory of l that lie in one element and one packet, in rising order of
 * the message, and neither come from a null element nor go to one. grh: of l.
 */
static void find_words(struct job *j, const struct list *l, uint32_t grh)
{
	const uint32_t mtu = 128u << j->mtu;
	uint32_t pos = 0;

	j->num_words = 0;
	for (uint32_t i = 0; i < l->n; pos += l->e[i++].len) {
		const struct element *e = &l->e[i];
		uint32_t at = (e->at + WORD - 1) / WORD * WORD;

		for (; !e->null && at + WORD <= e->at + e->len; at += WORD) {
			const uint32_t whole = pos + at - e->at, msg = whole - grh;

			if (whole < grh || msg / mtu != (msg + WORD - 1) / mtu ||
			    list_is_null(&j->from, msg, WORD) ||
			    list_is_null(&j->to, msg + j->grh, WORD))
				continue;
			j->words[j->num_words++] = (struct word){ at, msg };
		}
	}
}

/* ---- jobs ---- */

static const enum ibv_wr_opcode ops[] = {
	IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* Every eighth job is the one whose source has most to go wrong: inline, with a list. */
static bool is_inline_job(uint32_t number)
{
	return number % 8 == 7;
}

static uint32_t draw_len(uint32_t mtu)
{
	switch (roll(5)) {
	case 0:
		return 8 + roll(120);
	case 1:
		return 8 + roll(2000);
	case 2:
		return mtu - 40 + roll(80);
	case 3:
		return 2 * mtu + roll(3 * mtu > LONGEST / 2 ? LONGEST / 2 : 3 * mtu);
	default:
		return 8 * (1 + roll(300));
	}
}

void job_draw(struct job *j, uint64_t seed, uint32_t number, uint32_t limit)
{
	const uint32_t draws = number + 1;
	uint32_t mtu;

	dice = seed * 1000003 + draws * 7919;
	memset(j, 0, sizeof(*j));
	j->number = number;
	j->service = (enum service)roll(SERVICES);
	do {
		j->mtu = (enum ibv_mtu)(IBV_MTU_256 + roll(5));
		mtu = 128u << j->mtu;
	} while (mtu > limit);
	j->op = ops[roll(j->service == ON_UD ? 2 : j->service == ON_UC ? 4 : 8)];
	j->is_moving = roll(2);
	j->len = draw_len(mtu);
	if (is_inline_job(number)) {
		j->op = ops[roll(2)];
		j->is_moving = true;
		j->len = 60 + roll(INLINE - 60);
	}
	if (j->service == ON_UD) {
		j->grh = GRH;
		if (j->len > mtu)
			j->len = mtu;
	}
	j->messages = 60000 / j->len;
	j->messages = j->messages < 3 ? 3 : j->messages > MESSAGES ? MESSAGES : j->messages;
	for (int i = 0; i < 2; i++) {
		j->region[i] = (enum region)roll(REGIONS);
		j->skew[i] = j->region[i] == ZERO_BASED ? roll(16) : 0;
	}
	if (job_is_atomic(j)) {
		j->len = WORD;
		j->messages = 16;
		list_draw(&j->to, LANDING, WORD, false);
		list_one(&j->from, 0, WORD);
		j->from.e[0].at = 512;
		j->skew[0] &= WORD;
		for (uint32_t i = 0; j->op == IBV_WR_ATOMIC_CMP_AND_SWP && i < j->to.n; i++)
			j->to.e[i].null = false;
		return;
	}
	if (j->service != ON_UD && j->op != IBV_WR_SEND && j->op != IBV_WR_SEND_WITH_IMM &&
	    !roll(3)) {
		j->has_window = j->service == ON_RC || j->service == ON_SRQ;
		j->has_zero_window = j->has_window && roll(2);
	}
	j->is_inline =
		j->op != IBV_WR_RDMA_READ && j->len <= INLINE && (is_inline_job(number) || roll(2));
	if (is_inline_job(number))
		list_many(&j->from, 0, j->len, false);
	else
		list_draw(&j->from, 0, j->len, j->op == IBV_WR_RDMA_READ);
	if (j->is_inline)
		for (uint32_t i = 0; i < j->from.n; i++)
			j->from.e[i].null = false;
	list_draw(&j->to, LANDING, j->grh + j->len,
		  j->op == IBV_WR_RDMA_WRITE || j->op == IBV_WR_RDMA_WRITE_WITH_IMM);
	if (j->is_moving)
		find_words(j, &j->from, 0);
	else
		find_words(j, &j->to, j->grh);
}

static void print_list(const char *name, const struct list *l)
{
	printf("#   %s:", name);
	for (uint32_t i = 0; i < l->n; i++)
		printf(" %s%u+%u", l->e[i].null ? "null " : "", l->e[i].at, l->e[i].len);
	printf("\n");
}

void job_print(const struct job *j)
{
	static const char *const services[] = { "RC", "RC with an SRQ", "XRC", "UC", "UD" };
	static const char *const regions[] = { "plain", "zero based", "iova", "on demand", "all" };

	printf("# job %u: %s, opcode %d, MTU %u, %u messages of %u bytes, %s%s%s%s\n", j->number,
	       services[j->service], (int)j->op, 128u << j->mtu, j->messages, j->len,
	       j->is_moving ? "the source moves" : "the landing is watched",
	       j->is_inline ? ", inline" : "", j->has_window ? ", window" : "",
	       j->has_zero_window ? " zero based" : "");
	printf("#   regions: server %s, client %s, skews %u %u, %u words\n", regions[j->region[0]],
	       regions[j->region[1]], j->skew[0], j->skew[1], j->num_words);
	print_list("from", &j->from);
	print_list("to", &j->to);
	fflush(stdout);
}

void job_image(const struct job *j, uint16_t generation, uint8_t *out)
{
	const uint64_t stamp = job_stamp(generation);

	for (uint32_t i = 0; i < j->len; i++)
		out[i] = (uint8_t)(generation * 31 + i * 7 + i / 251);
	for (uint32_t i = 0; i < j->num_words; i++)
		memcpy(out + j->words[i].msg, &stamp, WORD);
	for (uint32_t i = 0; i < j->len; i++)
		if (list_is_null(&j->from, i, 1))
			out[i] = 0;
}
