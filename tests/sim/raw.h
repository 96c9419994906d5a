/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A QP of node 1 whose peer is the test itself: packets made by hand go in, and what the QP answers is looked at. Node 0's engine takes
 * no part.
 */
#ifndef SIM_RAW_H
#define SIM_RAW_H

#include "pair.h"

#define RAW_PEER_QPN 0x00abcd
#define RAW_PSN	     0x1000 /* expected first */
#define RAW_SQ_PSN   0x2000

struct raw {
	struct world *w;
	struct side s;
	struct path path;	/* of packets to it */
	struct buffer *mem;	/* 16 KiB on its node, all rights */
	u32 answers;		/* of w->sent[] that raw_answer() has given */
	u8 *frame;		/* the last one sent, PACKET_FRAME_MAX */
	u32 frame_len;
};

struct raw raw_create(const struct pair_options *o, const char *label);
void raw_destroy(struct raw *r);

/*
 * Send one packet: p with dest_qpn, pkey and payload_len filled in where they are 0, and len bytes of payload (NULL: the bytes of
 * buffer_fill(psn)). Returns what engine_input() did; its answers are out when this returns.
 */
int raw_send(struct raw *r, struct packet p, const void *payload, u32 len);
/* The frame of it, without sending. */
u32 raw_build(struct raw *r, struct packet p, const void *payload, u32 len);
/* Send the frame as it lies in r->frame. */
int raw_send_frame(struct raw *r);

/* The next packet the QP sent that was not yet asked for, or NULL. */
const struct packet *raw_answer(struct raw *r);
/* The next answer is an ACKNOWLEDGE with this syndrome, PSN and MSN; or there is none. */
void raw_expect_ack(struct raw *r, u8 syndrome, u32 psn, u32 msn, const char *file, int line);
void raw_expect_silence(struct raw *r, const char *file, int line);
#define expect_ack(r, syndrome, psn, msn) raw_expect_ack((r), (syndrome), (psn), (msn), __FILE__, __LINE__)
#define expect_silence(r) raw_expect_silence((r), __FILE__, __LINE__)

#define SYNDROME_ACK (AETH_ACK | AETH_CREDIT_NONE)
#define RC(low) OPCODE(XROCE_RC, OP5_##low)
#define UC(low) OPCODE(XROCE_UC, OP5_##low)
#define UD(low) OPCODE(XROCE_UD, OP5_##low)
#define XRC(low) OPCODE(XROCE_XRC, OP5_##low)

#endif
