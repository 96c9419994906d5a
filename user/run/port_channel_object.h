/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A completion channel, for the port's own files: a descriptor that is readable when there may be
 * an event. It is an eventfd; for the first channels it is an epoll set of an eventfd and, once a
 * CQ has joined, a ring buffer that XDP writes to. port_channel.c makes it, channel_sleep.c sleeps
 * on it.
 */
#ifndef RUN_PORT_CHANNEL_OBJECT_H
#define RUN_PORT_CHANNEL_OBJECT_H

#include <pthread.h>
#include <xroce/abi.h>

#include "port_channel.h"

/* Records in a full ring: 16 bytes each with the header. */
#define RECORDS_MAX (XROCE_RING_BYTES / 16)

struct cq;
struct cq_notify;
struct ring_reader;

struct port_channel {
	/*
	 * Polled by the application: event_fd, or an epoll set of event_fd and, once joined, the
	 * ring. Changes only in port_channel_leave_fd(), under lock. A thread that sleeps on the
	 * old number is woken by events of the file that then has it.
	 */
	_Atomic int fd;
	int event_fd;	/* constant */
	/* the fields below are under lock */
	pthread_mutex_t lock;
	struct cq_notify *cq_notify; /* of the port whose CQs are on the channel; NULL: no CQ */
	struct cq **cq;	/* num_cqs of them, room for max_cqs */
	u32 num_cqs, max_cqs;
	u32 slot;	/* in xroce_channel, or XROCE_CHANNEL_WORKER without a ring */
	bool has_left;	/* after port_channel_leave_fd(): no ring any more */
	int ring_fd;
	struct ring_reader *ring; /* NULL: none */
	/* CQs of consumed records */
	u32 record[RECORDS_MAX];
	u32 records;
	u32 last;	/* CQ of the last record taken */
};

/*
 * Adds a CQ of the port. Returns 0, -EINVAL if CQs of another port are on the channel, or -ENOMEM.
 * Call channel_leave() before the CQ is freed.
 */
int channel_join(struct port_channel *ch, struct cq_notify *notify, struct cq *cq);
void channel_leave(struct port_channel *ch, struct cq *cq);
/* Returns the channel's key in xroce_channel, or XROCE_CHANNEL_WORKER, for its CQs. */
static inline u32 channel_slot(const struct port_channel *ch)
{
	return ch->slot;
}
/* Takes all complete records: CQs, possibly repeated. Returns how many. */
u32 channel_consume(struct port_channel *ch, u32 record[RECORDS_MAX]);
/*
 * Waits while a record is reserved but not complete: XDP makes the descriptor readable before the
 * record can be taken. Returns after a bounded time.
 */
void channel_await_record(struct port_channel *ch);
/*
 * Sets *index to the CQ for an event that only a record announced: the CQ of the last record or, if
 * that CQ is gone, another one of the channel. Returns false if the channel has no CQ.
 */
bool channel_extra(struct port_channel *ch, u32 *index);

#endif
