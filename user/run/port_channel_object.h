/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A completion channel as a port's own files know it: a descriptor that is readable when there may
 * be an event. It is an eventfd or, of the first channels, a set of an eventfd and, once a CQ has
 * joined it to a port, a ring buffer that XDP writes to. port_channel.c makes it,
 * channel_sleep.c sleeps on it.
 */
#ifndef RUN_PORT_CHANNEL_OBJECT_H
#define RUN_PORT_CHANNEL_OBJECT_H

#include <pthread.h>
#include <xroce/abi.h>

#include "port_channel.h"

/* A ring's worth: 16 bytes a record with its header. */
#define RECORDS_MAX (XROCE_RING_BYTES / 16)

struct cq;
struct cq_notify;
struct ring_reader;

struct port_channel {
	/*
	 * Polled by the application: event_fd; or a set of event_fd and, once joined, the ring.
	 * Change under lock, in port_channel_leave_fd() only. A thread that sleeps on the number
	 * before is woken by the events of the file that has it then.
	 */
	_Atomic int fd;
	int event_fd;
	/* under lock */
	pthread_mutex_t lock;
	struct cq_notify *wake; /* of the port whose CQs are on it; NULL: none is */
	struct cq **cq;	/* they: num_cqs of them, room for max_cqs */
	u32 num_cqs, max_cqs;
	u32 slot;	/* in xroce_channel, or XROCE_CHANNEL_SERVICE: without a ring; wake->lock */
	bool has_left;	/* port_channel_leave_fd(): no ring from there on */
	int ring_fd;
	struct ring_reader *ring; /* NULL: none */
	/* what kernel_ring_consume() found */
	u32 record[RECORDS_MAX];
	u32 records;
	u32 last;	/* the CQ of the last one that was taken */
};

/*
 * A CQ of the port joins. Returns 0, -EINVAL: CQs of another port are on the channel; or -ENOMEM.
 * Before the CQ is freed, it leaves.
 */
int channel_join(struct port_channel *ch, struct cq_notify *wake, struct cq *cq);
void channel_leave(struct port_channel *ch, struct cq *cq);
/* Its key in xroce_channel, or XROCE_CHANNEL_SERVICE, for the CQs that are on it. */
static inline u32 channel_slot(const struct port_channel *ch)
{
	return ch->slot;
}
/* Take the records that are there: CQs, each once or more. Returns how many. */
u32 channel_consume(struct port_channel *ch, u32 record[RECORDS_MAX]);
/*
 * XDP reserves a record before it writes it, and from then on the descriptor is readable; it can be
 * taken once it is whole. Returns when records can be taken, or there is none on its way.
 */
void channel_await_record(struct port_channel *ch);
/*
 * *index: the CQ whose event it is that nothing but a record announced. That of the last one that
 * was taken; or another of the channel's, if the record is of a CQ that has gone. False: it has
 * none.
 */
bool channel_extra(struct port_channel *ch, u32 *index);

#endif
