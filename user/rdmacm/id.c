/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ids: creation, destruction, moving to another channel, and waiting of synchronous ids. */
#include "id.h"

#include <stdlib.h>

#include "../os/clock.h"
#include "conn.h"

struct rdmacm_id *id_all;

int id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	   enum ibv_qp_type type, struct rdmacm_id **out)
{
	struct rdmacm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return -ENOMEM;
	id->pub.channel = channel ? channel : channel_new(true);
	if (!id->pub.channel) {
		free(id);
		return -errno;
	}
	id->sync = !channel;
	id->generation = rdmacm_generation;
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = type;
	pthread_cond_init(&id->all_acked, NULL);
	*out = id;
	return 0;
}

void id_list(struct rdmacm_id *id)
{
	id->all_next = id_all;
	id->all_prev = &id_all;
	if (id_all)
		id_all->all_prev = &id->all_next;
	id_all = id;
}

static void id_unlist(struct rdmacm_id *id)
{
	*id->all_prev = id->all_next;
	if (id->all_next)
		id->all_next->all_prev = id->all_prev;
}

static void id_free(struct rdmacm_id *id)
{
	if (id->sync)
		rdma_destroy_event_channel(id->pub.channel);
	pthread_cond_destroy(&id->all_acked);
	free(id->pub.route.path_rec);
	free(id->qp_init_attr);
	free(id->connect);
	free(id);
}

int id_make(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
	    enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdmacm_id *id;
	int err;

	if (channel && to_channel(channel)->generation != rdmacm_generation)
		return -EIO;
	err = id_new(channel, context, ps, type, &id);
	if (err)
		return err;
	rdmacm_enter();
	id_list(id);
	rdmacm_leave();
	*out = &id->pub;
	return 0;
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps)
{
	CANCEL_HELD;
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		return rdmacm_report(id_make(channel, id, context, ps, IBV_QPT_RC));
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return rdmacm_report(id_make(channel, id, context, ps, IBV_QPT_UD));
	default:
		return rdmacm_report(-EINVAL);
	}
}

void id_silence(struct rdmacm_id *id)
{
	struct rdmacm_event *ev, *next;

	listen_leave(id, NULL);
	conn_close(id);
	for (ev = channel_remove(to_channel(id->pub.channel), id); ev; ev = next) {
		next = ev->next;
		if (ev->discard)
			ev->discard(ev);
		free(ev);
	}
}

void id_end(struct rdmacm_id *id)
{
	id_silence(id);
	id_unlist(id);
	if (id->device)
		cm_device_put(id->device);
	rdmacm_leave();
	id_free(id);
	rdmacm_enter();
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *cm_id)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);

	if (id_check(id)) { /* it was never listed in this process */
		id_free(id);
		return 0;
	}
	rdmacm_enter();
	id->state = ID_DESTROYING;
	addr_forget(id);
	id_silence(id);
	rdmacm_leave();
	/* from a synchronous call or rdma_get_request() */
	if (id->pub.event)
		rdma_ack_cm_event(id->pub.event);
	rdmacm_enter();
	while (id->acked != id->delivered)
		pthread_cond_wait(&id->all_acked, &rdmacm_lock);
	id_end(id);
	rdmacm_leave();
	return 0;
}

/* ---- channels ---- */

/* Moves queued events. Undelivered requests move with their listener. Caller holds the lock. */
static void id_move_events(struct rdmacm_id *id, struct rdma_event_channel *channel)
{
	struct rdmacm_event *ev = channel_remove(to_channel(id->pub.channel), id), *next;

	id->pub.channel = channel;
	for (; ev; ev = next) {
		next = ev->next;
		channel_append(to_channel(channel), ev);
		if (ev->pub.listen_id)
			id_move_events(to_id(ev->pub.id), channel);
	}
}

/*
 * Waits until delivered events are acknowledged: later no thread uses the id from the old channel.
 */
EXPORT int rdma_migrate_id(struct rdma_cm_id *cm_id, struct rdma_event_channel *channel)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	struct rdma_event_channel *before = cm_id->channel;
	const bool was_sync = id->sync;
	int err = id_check(id);

	if (err)
		return rdmacm_report(err);
	if (id->sync && !channel)
		return rdmacm_report(-EINVAL);
	id->sync = !channel;
	if (!channel)
		channel = channel_new(true);
	if (!channel) {
		id->sync = was_sync;
		return -1;
	}
	if (was_sync && cm_id->event) {
		rdma_ack_cm_event(cm_id->event);
		cm_id->event = NULL;
	}
	rdmacm_enter();
	id_move_events(id, channel);
	while (id->acked != id->delivered)
		pthread_cond_wait(&id->all_acked, &rdmacm_lock);
	rdmacm_leave();
	if (was_sync)
		rdma_destroy_event_channel(before);
	return 0;
}

/* ---- synchronous calls ---- */

int id_complete(struct rdmacm_id *id)
{
	struct rdma_cm_event *ev;
	int err;

	if (!id->sync)
		return 0;
	if (id->pub.event) {
		rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	err = channel_get(id->pub.channel, &id->pub.event);
	if (err)
		return err;
	ev = id->pub.event;
	if (ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return -ENODEV;
	if (!ev->status)
		return 0;
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return ev->status < 0 ? ev->status : -ev->status;
}

int id_show_device(struct rdmacm_id *id)
{
	struct rdmacm_device *dev = id->device;

	if (!dev)
		return -ENODEV;
	id->pub.verbs = dev->verbs;
	if (!id->pub.pd)
		id->pub.pd = dev->pd;
	id->pub.port_num = RDMACM_PORT;
	id->pub.route.addr.addr.ibaddr.pkey = htobe16(RDMACM_PKEY);
	return 0;
}
