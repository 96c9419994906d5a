/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether an interface does take super-packets, by what becomes of them: the kernel refuses one
 * while nothing of ours waits, or accepts them and the interface's counter says that it dropped
 * them. When that goes on they are given up for a time, twice as long after each try. It makes no
 * system call; under the shard's lock.
 */
#ifndef PORT_TX_HEALTH_H
#define PORT_TX_HEALTH_H

#include "../engine/types.h"

#define TX_HEALTH_REFUSALS   16u		   /* in a row, */
/* and for so long: a full ring of the other end empties sooner */
#define TX_HEALTH_REFUSED_NS (20 * NSEC_PER_MSEC)
#define TX_HEALTH_LOOKS	     3u			   /* in a row that found half of them dropped, */
#define TX_HEALTH_SENDS	     8u			   /* and of so many super-packets at least */
#define TX_HEALTH_AWAY_NS    (10 * NSEC_PER_SEC)
#define TX_HEALTH_AWAY_MAX_NS (640 * NSEC_PER_SEC)

struct tx_health {
	u32 refusals;
	u64 refused_ns;	   /* of the first of these */
	u32 bad_looks;
	u64 bad_sends;	   /* super-packets in these */
	u64 sends;	   /* since the last look */
	u64 dropped;	   /* the interface's counter then */
	bool has_looked;
	u64 away_ns;	   /* how long they are given up the next time */
	u64 until_ns;	   /* given up until then; 0: not */
};

/* Returned once for each time that they are given up. */
enum tx_verdict { TX_HEALTHY, TX_REFUSES, TX_DROPS };

/* n super-packets were accepted. */
void tx_health_sent(struct tx_health *h, u32 n);
/* One was refused, and nothing of ours was on its way. */
enum tx_verdict tx_health_refused(struct tx_health *h, u64 now_ns);
/* The interface has dropped so many packets in all, of all senders. */
enum tx_verdict tx_health_look(struct tx_health *h, u64 dropped, u64 now_ns);
/* They are given up, for now. */
bool tx_health_is_away(struct tx_health *h, u64 now_ns);

#endif
