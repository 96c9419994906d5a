/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules that rogue.c breaks, one after another, and the required result of each at victim.c:
 * the permitted statuses of its requests, whether its QP lives, how many of its receives complete.
 */
#ifndef NETNS_ROGUE_H
#define NETNS_ROGUE_H

#include <stdbool.h>

#include "lib/rc.h"

#define ROGUE_PORT	 "18662"
#define ROGUE_QPN	 0x4321
#define ROGUE_RECEIVES	 16
#define ROGUE_ROUNDS	 40 /* of an attack that the victim does not end */
#define ROGUE_MTU	 1024
#define ROGUE_RECV_BYTES 2048u
#define ROGUE_REGION	 (64u * 1024)		 /* the peer may reach it all */
#define ROGUE_PROOF	 (ROGUE_REGION - 8)	 /* written last, where the QP must be alive */
#define ROGUE_RD_ATOMIC	 8			 /* that rc_connect() grants */
#define ANY		 -1

#define S(status) (1u << IBV_WC_##status)

enum request { NO_REQUEST, SEND, READ, ADD };

/*
 * kind, the victim's requests and their bytes, statuses that these end with (without SUCCESS: none
 * succeeds), does the QP live, receives that complete with success.
 */
#define ROGUE_KINDS(X)                                                                        \
	/* responses to SENDs */                                                              \
	X(silent, SEND, 512, S(RETRY_EXC_ERR), false, 0)                                      \
	X(rnr_for_ever, SEND, 512, S(RNR_RETRY_EXC_ERR), false, 0)                            \
	X(rnr_storm, SEND, 512, S(RNR_RETRY_EXC_ERR) | S(RETRY_EXC_ERR), false, 0)            \
	X(nak_storm, SEND, 512, S(RETRY_EXC_ERR), false, 0)                                   \
	X(ack_of_unsent, SEND, 512, S(RETRY_EXC_ERR), false, 0)                               \
	X(ack_of_past, SEND, 512, S(RETRY_EXC_ERR), false, 0)                                 \
	X(ack_reserved, SEND, 512, S(RETRY_EXC_ERR), false, 0)                                \
	X(nak_unknown, SEND, 512, S(RETRY_EXC_ERR), false, 0)                                 \
	X(nak_of_past, SEND, 512, S(RETRY_EXC_ERR), false, 0)                                 \
	X(nak_invalid_request, SEND, 512, S(REM_INV_REQ_ERR), false, 0)                       \
	X(nak_access, SEND, 512, S(REM_ACCESS_ERR), false, 0)                                 \
	X(nak_operation, SEND, 512, S(REM_OP_ERR), false, 0)                                  \
	X(send_gets_read_response, SEND, 512, S(RETRY_EXC_ERR) | S(BAD_RESP_ERR), false, 0)   \
	X(send_gets_atomic_ack, SEND, 512, S(RETRY_EXC_ERR) | S(BAD_RESP_ERR), false, 0)      \
	X(credit_none, SEND, 512, S(SUCCESS), true, 0)                                        \
	X(credit_random, SEND, 512, S(SUCCESS), true, 0)                                      \
	/* responses to READs and atomics */                                                  \
	X(read_short, READ, 3000, S(BAD_RESP_ERR), false, 0)                                  \
	X(read_long, READ, 1000, S(BAD_RESP_ERR), false, 0)                                   \
	X(read_empty, READ, 1000, S(BAD_RESP_ERR), false, 0)                                  \
	X(read_never_last, READ, 3000, S(BAD_RESP_ERR), false, 0)                             \
	X(read_last_first, READ, 3000, S(BAD_RESP_ERR), false, 0)                             \
	X(read_middle_first, READ, 3000, S(BAD_RESP_ERR), false, 0)                           \
	X(read_dribbles, READ, 3000, S(RETRY_EXC_ERR) | S(BAD_RESP_ERR), false, 0)             \
	X(read_gets_ack, READ, 1000, S(RETRY_EXC_ERR) | S(BAD_RESP_ERR), false, 0)            \
	X(read_gets_atomic_ack, READ, 1000, S(RETRY_EXC_ERR) | S(BAD_RESP_ERR), false, 0)     \
	X(atomic_gets_read_response, ADD, 8, S(RETRY_EXC_ERR) | S(BAD_RESP_ERR), false, 0)    \
	/* requests */                                                                        \
	X(read_of_2gib, NO_REQUEST, 0, 0, false, 0)                                           \
	X(read_of_4gib, NO_REQUEST, 0, 0, false, 0)                                           \
	X(read_duplicates, NO_REQUEST, 0, 0, true, 0)                                         \
	X(read_one_too_many, NO_REQUEST, 0, 0, false, 0)                                      \
	X(atomic_misaligned, NO_REQUEST, 0, 0, false, 0)                                      \
	X(atomic_duplicates, NO_REQUEST, 0, 0, true, 0)                                       \
	X(sends_ahead, NO_REQUEST, 0, 0, true, ANY)                                           \
	X(first_twice, NO_REQUEST, 0, 0, false, 0)                                            \
	X(middle_without_first, NO_REQUEST, 0, 0, false, 0)                                   \
	X(last_without_first, NO_REQUEST, 0, 0, false, 0)                                     \
	X(middles_without_end, NO_REQUEST, 0, 0, false, 0)                                    \
	X(sends_past_receives, NO_REQUEST, 0, 0, true, ROGUE_RECEIVES)                        \
	X(send_duplicates, NO_REQUEST, 0, 0, true, 1)                                         \
	X(congestion_storm, NO_REQUEST, 0, 0, true, 0)                                        \
	X(probe_storm, NO_REQUEST, 0, 0, true, 0)                                             \
	X(probe_answers, NO_REQUEST, 0, 0, true, 0)                                           \
	X(write_wrong_key, NO_REQUEST, 0, 0, false, 0)                                        \
	X(write_of_2gib, NO_REQUEST, 0, 0, false, 0)                                          \
	X(write_around_the_end, NO_REQUEST, 0, 0, false, 0)                                   \
	X(write_longer_than_said, NO_REQUEST, 0, 0, false, 0)                                 \
	X(write_shorter_than_said, NO_REQUEST, 0, 0, false, 0)                                \
	X(invalidate_a_region, NO_REQUEST, 0, 0, false, 0)                                    \
	X(flush_of_no_type, NO_REQUEST, 0, 0, false, 0)

#define ROGUE_ENUM(kind, ...) KIND_##kind,
enum rogue_kind { ROGUE_KINDS(ROGUE_ENUM) ROGUE_NUM_KINDS };

#define ROGUE_ROW(kind, request, bytes, statuses, lives, receives) \
	{ #kind, request, bytes, statuses, lives, receives },
static const struct rogue_row {
	const char *name;
	enum request request;
	uint32_t bytes;
	unsigned int statuses;
	bool lives;
	int receives;
} rogue_rows[] = { ROGUE_KINDS(ROGUE_ROW) };

#endif
