/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A QP of node 1 whose peer is the test itself: handmade packets go in, and the QP's answers are
 * checked. Node 0's engine takes no part.
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
	bool is_rxe;		/* the peer is as rxe: its packets have no MigReq */
};

struct raw raw_create(const struct pair_options *o, const char *label);
/* The same in a world with these options, except the options turned off. */
struct raw raw_create_with(const struct pair_options *o, const struct world_options *wo,
			   const char *label);
/* The defaults but for a path MTU of RAW_PMTU and room for two READs and atomics. */
struct raw raw_create_small(const char *label);
#define RAW_PMTU 256
void raw_destroy(struct raw *r);

/* A request that wants to be acknowledged; raw_access(): for len bytes of mem from offset on. */
struct packet raw_request(u8 opcode, u32 psn);
struct packet raw_access(const struct raw *r, u8 opcode, u32 psn, u32 offset, u32 len);
/* The word at an offset of mem. */
u64 raw_load(const struct raw *r, u32 offset);
void raw_store(struct raw *r, u32 offset, u64 value);

/*
 * Send one packet: p with dest_qpn, pkey and payload_len filled in where they are 0, and len bytes
 * of payload (NULL: the bytes of buffer_fill(psn)). Returns what engine_input() did; the answers
 * are out when this returns.
 */
enum xroce_drop raw_send(struct raw *r, struct packet p, const void *payload, u32 len);
/* The same, without collecting the answers: world_settle() does that. */
enum xroce_drop raw_deliver(struct raw *r, struct packet p, const void *payload, u32 len);
/* Builds the frame without sending it. */
u32 raw_build(struct raw *r, struct packet p, const void *payload, u32 len);
/* Sends the frame in r->frame unchanged. */
enum xroce_drop raw_send_frame(struct raw *r);

/* The next packet the QP sent that was not yet asked for, or NULL. */
const struct packet *raw_answer(struct raw *r);
/* Expects as the next answer an ACKNOWLEDGE with this syndrome, PSN and MSN; or none. */
void raw_expect_ack(struct raw *r, u8 syndrome, u32 psn, u32 msn, const char *file, int line);
void raw_expect_silence(struct raw *r, const char *file, int line);
/*
 * Expects that a fatal NAK of this code was sent: the QP is in error, its application was notified,
 * and it drops all packets silently.
 */
void raw_expect_failed(struct raw *r, u8 nak, const char *file, int line);
#define expect_ack(r, syndrome, psn, msn)                                                          \
	raw_expect_ack((r), (syndrome), (psn), (msn), __FILE__, __LINE__)
#define expect_silence(r) raw_expect_silence((r), __FILE__, __LINE__)
#define expect_failed(r, nak) raw_expect_failed((r), (nak), __FILE__, __LINE__)

#define SYNDROME_ACK (AETH_ACK | AETH_CREDIT_NONE)
#define RC(low) OPCODE(XROCE_RC, OP5_##low)
#define UC(low) OPCODE(XROCE_UC, OP5_##low)
#define UD(low) OPCODE(XROCE_UD, OP5_##low)
#define XRC(low) OPCODE(XROCE_XRC, OP5_##low)

#endif
