/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The required fields of a completion and a GRH. */
#ifndef NETNS_JUDGE_H
#define NETNS_JUDGE_H

#include "side.h"

/* wr_ids name round and message, so that a completion of another round is seen. */
static inline uint64_t send_id(uint32_t round, unsigned int i)
{
	return 0x5e4d000000000000ull | (uint64_t)round << 8 | i;
}

static inline uint64_t recv_id(uint32_t round, unsigned int i)
{
	return 0x7ec0000000000000ull | (uint64_t)round << 8 | i;
}

/*
 * Check one completion that cq gave and advance the round; does not return if anything in it is
 * wrong.
 */
void judge(struct side *s, const struct ibv_cq *cq, const struct ibv_wc *wc);
/* The 40 bytes in front of a UD message in its receive slot. */
void judge_grh(const struct side *s, const uint8_t *slot, const struct message *m);

#endif
