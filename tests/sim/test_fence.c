/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Fenced requests under every loss mask: the next, fenced request sends the data of a READ or an
 * atomic, and a READ with a repeated answer has not read bytes that the fenced request writes to
 * the same memory. XROCE_SIM_MASK=forward:backward (hexadecimal) runs one mask.
 */
#include "pair.h"
#include "runs.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU  256
#define BYTES 600u  /* three packets */
#define WORD  2048u /* of the remote buffer */
#define COPY  2056u /* where the word that was fetched is written */
#define COUNT 9u
#define PLACE 3072u /* where a word that was read is written at once */

struct scene {
	struct world *w;
	struct pair p;
	struct buffer *local, *remote;
};

static struct send request(const struct scene *s, enum wr_opcode opcode, u8 flags, u32 local,
			   u32 remote, u32 len)
{
	return (struct send){ .opcode = opcode,
			      .flags = WR_SIGNALED | flags,
			      .num_sge = 1,
			      .sge = { buffer_sge(s->local, local, len) },
			      .remote_addr = buffer_va(s->remote) + remote,
			      .rkey = s->remote->mr->key };
}

static u64 word_at(const u8 *bytes)
{
	u64 word;

	memcpy(&word, bytes, 8);
	return word;
}

static void run_mask(struct scene *s, u32 forward, u32 backward)
{
	const bool must = masks_within_retries(forward, backward);
	struct pair_options o = pair_defaults();
	struct send list[COUNT];
	struct side *a;
	u64 word = 41;
	u32 i = 0;

	o.pmtu = PMTU;
	o.timeout = 10;
	o.max_rd_atomic = o.max_dest_rd_atomic = (u8)(1 + backward % 4);
	o.psn[0] = (0xfffffb + forward) & ROCE_PSN_MASK;
	s->p = pair_connect(s->w, &o);
	a = &s->p.side[0];
	memset(s->local->bytes, 0xff, 4096);
	memset(s->local->bytes + 1024, 'n', BYTES);
	memset(s->remote->bytes, 'o', 4096);
	memcpy(s->remote->bytes + WORD, &word, 8);
	list[0] = request(s, WR_READ, 0, 0, 0, BYTES);
	list[1] = request(s, WR_WRITE, WR_FENCE, 1024, 0, BYTES);
	list[2] = request(s, WR_FETCH_ADD, 0, 2048, WORD, 8);
	list[2].compare_add = 1;
	list[3] = request(s, WR_WRITE, WR_FENCE, 2048, COPY, 8);
	list[4] = request(s, WR_READ, 0, 3000, 0, BYTES);
	list[5] = (struct send){ .opcode = WR_ATOMIC_WRITE,
				 .flags = WR_SIGNALED | WR_FENCE,
				 .length = 8,
				 .swap = 999,
				 .remote_addr = buffer_va(s->remote) + WORD,
				 .rkey = s->remote->mr->key };
	list[6] = request(s, WR_FETCH_ADD, 0, 2056, WORD, 8);
	list[6].compare_add = 1;
	list[7] = request(s, WR_WRITE, WR_FENCE, 0, 1024, BYTES);
	/* its elements are the second READ's */
	list[8] = request(s, WR_ATOMIC_WRITE, WR_FENCE, 3000, PLACE, 8);
	for (u32 k = 0; k < COUNT; k++)
		list[k].wr_id = k;
	s->w->node[0].to[1] = (struct faults){ .drop = forward };
	s->w->node[1].to[0] = (struct faults){ .drop = backward };
	post_sends(a, list, COUNT);
	world_run(s->w);
	check_eq(s->w, a->send->n, COUNT);
	while (i < COUNT && a->send->log[i].status == CQE_SUCCESS)
		i++;
	if (i < COUNT) {
		check(s->w, !must && a->send->log[i].status == CQE_RETRY_EXC_ERR);
	} else {
		for (u32 k = 0; k < BYTES; k++) {
			check_eq(s->w, s->local->bytes[k], 'o');
			check_eq(s->w, s->local->bytes[3000 + k], 'n');
			check_eq(s->w, s->remote->bytes[k], 'n');
			check_eq(s->w, s->remote->bytes[1024 + k], 'o');
		}
		check(s->w, !memcmp(s->remote->bytes + PLACE, "nnnnnnnn", 8));
		check_eq(s->w, word_at(s->local->bytes + 2048), 41);
		check_eq(s->w, word_at(s->local->bytes + 2056), 999);
		check_eq(s->w, word_at(s->remote->bytes + WORD), 1000);
		check_eq(s->w, word_at(s->remote->bytes + COPY), 41);
	}
	pair_destroy(&s->p);
}

static void loss__a_fence_holds_under_every_mask(void **state)
{
	struct masks m = masks_of(7, 7);
	struct scene s = { .w = world_create(2, 36) };

	s.w->keep_frames = false;
	s.local = world_buffer(&s.w->node[0], 4096, PAIR_ACCESS_ALL);
	s.remote = world_buffer(&s.w->node[1], 4096, PAIR_ACCESS_ALL);
	for (u32 forward = m.forward; forward < m.forward_end; forward++)
		for (u32 backward = m.backward; backward < m.backward_end; backward++) {
			world_label(s.w, "XROCE_SIM_MASK=%x:%x test_fence", forward, backward);
			run_mask(&s, forward, backward);
			s.w->node[0].num_events = s.w->node[1].num_events = 0;
		}
	world_destroy(s.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss__a_fence_holds_under_every_mask),
	};

	return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
