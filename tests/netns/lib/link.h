/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endless checked traffic between two processes: an RC, a UC and a UD queue pair to one partner,
 * each with a fixed number of messages that circulate for ever. So one message that is lost, late,
 * duplicate, out of order or wrong in one byte is noticed, with UC and UD too. The partners find
 * each other, and part, over a TCP connection that never blocks.
 */
#ifndef NETNS_LINK_H
#define NETNS_LINK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { LINK_RC, LINK_UC, LINK_UD, LINK_STREAMS };

#define LINK_SLOTS 16 /* sends under way on a QP, and receives posted */

/* What all links of a process share. */
struct link_port {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	int gid_index;
	union ibv_gid gid;
	bool lost; /* the device: a call returned EIO */
	uint64_t messages, bytes; /* received, and right */
};

struct link_stream {
	struct ibv_qp *qp;
	uint32_t peer_qpn;
	uint64_t sent, completed, received;
	uint64_t last; /* the partner's total, once it has reported it */
	uint32_t owed; /* messages still to be sent */
};

/* One message between the partners. */
struct link_word {
	uint32_t type;
	uint32_t qpn[LINK_STREAMS];
	uint64_t sent[LINK_STREAMS];
	union ibv_gid gid;
};

struct link {
	struct link_port *port;
	uint16_t number; /* of the process's links, never used again in its life */
	int fd;		 /* the TCP connection; the link's */
	uint64_t limit;	 /* messages on each stream, after which it ends by itself; 0: none */
	struct link_word word;
	uint32_t word_bytes; /* bytes of the next one received so far */
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct link_stream stream[LINK_STREAMS];
	bool connected, stopping, partner_stopped, done, partner_done;
	const char *broken; /* what went wrong: error completions, as if the partner had died */
};

/* Memory, CQ with a channel; dies if the device refuses. */
void link_port_open(struct link_port *p, const char *device, int gid_index);
void link_port_close(struct link_port *p);

/*
 * A link over that connection; both sides do the same. Its QPs are made here. NULL: the device is
 * lost, as p->lost says then.
 */
struct link *link_open(struct link_port *p, int fd, uint64_t limit);
/* The connection is readable. False: the partner has hung up. */
bool link_read(struct link *l);
/* Handles a completion whose wr_id identifies the link, see link_of(). */
void link_complete(struct link *l, const struct ibv_wc *wc);
static inline uint16_t link_of(uint64_t wr_id)
{
	return (uint16_t)(wr_id >> 16);
}
/* Sends no more messages: notifies the partner, which does the same. */
void link_stop(struct link *l);
/* Whether all that was sent has been received, on both sides. */
static inline bool link_is_over(const struct link *l)
{
	return l->done && l->partner_done;
}
/* Destroys the link and its objects. */
void link_close(struct link *l);

#endif
