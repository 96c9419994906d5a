/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ids: creation, destruction, moving to another channel, and waiting of synchronous ids; endpoints;
 * the end of all ids of a process.
 */
#include <rdma/rdma_verbs.h>
#include <stdlib.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "../os/process.h"
#include "addr.h"
#include "channel.h"
#include "cm_device.h"
#include "cm_thread.h"
#include "id.h"

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
	process_own();
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
	rdma_freeaddrinfo(id->info);
	free(id->qp_init_attr);
	free(id->connect);
	free(id);
}

/* rdma_create_id() for any QP type. Without the lock. Returns 0 or -errno. */
static int id_make(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
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

/* Stops further events of the id and discards the queued ones. Caller holds the lock. */
static void id_silence(struct rdmacm_id *id)
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
	info_forget(id);
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

/* ---- endpoints: an id with its address, route and QP in one call ---- */

#define RESOLVE_MS 2000

static void ep_forget_qp_attr(struct rdmacm_id *id)
{
	free(id->qp_init_attr);
	id->qp_init_attr = NULL;
}

/* Sets up a listener: rdma_get_request() creates the QPs of its requests. */
static int ep_listener(struct rdmacm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		       const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->pub, res->ai_src_addr))
		return -errno;
	id->pub.pd = pd ? pd : id->pub.pd;
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*attr));
	if (!id->qp_init_attr)
		return -ENOMEM;
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

static int ep_set_data(struct rdmacm_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->connect = malloc(res->ai_connect_len);
	if (!id->connect)
		return -ENOMEM;
	memcpy(id->connect, res->ai_connect, res->ai_connect_len);
	id->connect_len = res->ai_connect_len;
	return 0;
}

static int ep_active(struct rdmacm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		     struct ibv_qp_init_attr *attr)
{
	int err = 0;

	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS))
		return -errno;
	if (res->ai_route_len ?
		    rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
				    res->ai_route_len) :
		    rdma_resolve_route(&id->pub, RESOLVE_MS))
		return -errno;
	/* the route's event is this call's */
	if (res->ai_route_len)
		err = id_complete(id);
	if (err)
		return err;
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (rdma_create_qp(&id->pub, pd, attr))
			return -errno;
	}
	return ep_set_data(id, res);
}

EXPORT int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	CANCEL_HELD;
	struct rdma_cm_id *id;
	int err = id_make(NULL, &id, NULL, (enum rdma_port_space)res->ai_port_space,
			  (enum ibv_qp_type)res->ai_qp_type);

	if (err)
		return rdmacm_report(err);
	if (res->ai_flags & RAI_PASSIVE)
		err = ep_listener(to_id(id), res, pd, attr);
	else
		err = ep_active(to_id(id), res, pd, attr);
	if (err) {
		rdma_destroy_ep(id);
		return rdmacm_report(err);
	}
	*out = id;
	return 0;
}

EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	CANCEL_HELD;
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	ep_forget_qp_attr(to_id(id));
	rdma_destroy_id(id);
}

/* The listener keeps an event that is not a request, or whose QP fails. */
static int ep_take_request(struct rdmacm_id *listener, struct rdma_cm_event *ev)
{
	struct ibv_qp_init_attr attr;

	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	if (ev->status)
		return ev->status < 0 ? ev->status : -ev->status;
	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return -EINVAL;
	if (!listener->qp_init_attr)
		return 0;
	attr = *listener->qp_init_attr;
	return rdma_create_qp(ev->id, listener->pub.pd, &attr) ? -errno : 0;
}

EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	CANCEL_HELD;
	struct rdmacm_id *listener = to_id(listen);
	struct rdma_cm_event *ev;
	int err = id_check(listener);

	if (!err && !listener->sync)
		err = -EINVAL;
	if (err)
		return rdmacm_report(err);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	cancel_point();
	err = channel_get(listen->channel, &ev);
	if (!err) {
		err = ep_take_request(listener, ev);
		*(err ? &listen->event : &ev->id->event) = ev;
	}
	if (!err)
		*id = ev->id;
	return rdmacm_report(err);
}

/* ---- exit and fork ---- */

/*
 * A process that exits without destroying its ids: the kernel's CM notifies the peers after the
 * process has exited. Here the process itself notifies them, if it exits by exit(3). The peers of a
 * killed process are not notified.
 */

/* A signal handler that interrupted the lock's holder may have called exit(3). */
#define WAIT_NS (100 * NSEC_PER_MSEC)

/* A destructor with a priority runs after the others: rsockets finish their sending before. */
__attribute__((destructor(101))) static void exit_close_all(void)
{
	u64 until_ns, now_ns;

	if (!id_all || !process_is_owner())
		return;
	now_ns = clock_now_ns();
	until_ns = now_ns + WAIT_NS;
	cancel_hold();
	/* polls: pthread_mutex_timedlock() uses a clock that may be set back */
	while (pthread_mutex_trylock(&rdmacm_lock)) {
		if (now_ns >= until_ns) {
			cancel_release();
			return;
		}
		kernel_await(NULL, 0, now_ns + NSEC_PER_MSEC);
		now_ns = clock_now_ns();
	}
	for (struct rdmacm_id *id = id_all; id; id = id->all_next)
		conn_close(id);
	rdmacm_leave();
}

/*
 * fork(): the lock is held across it, so the guarded data is consistent in the child. All objects
 * in the child belong to an older generation: no call on them reaches the core, a device or the
 * parent. Devices are forgotten, so that the child opens its own.
 */

u32 rdmacm_generation;

static void fork_child(void)
{
	rdmacm_generation++;
	id_all = NULL;
	process_after_fork_child();
	devices_after_fork();
	cm_thread_after_fork();
	cm_work_after_fork();
	channel_after_fork();
	interfaces_after_fork_child();
	neighbours_after_fork();
	qp_after_fork();
	pthread_mutex_init(&rdmacm_lock, NULL);
	cancel_release();
}

static void fork_before(void)
{
	rdmacm_enter();
	interfaces_before_fork();
}

static void fork_parent(void)
{
	interfaces_after_fork();
	rdmacm_leave();
}

/* libibverbs' handlers were registered earlier, so its prepare handler runs after this one. */
__attribute__((constructor)) static void fork_register(void)
{
	pthread_atfork(fork_before, fork_parent, fork_child);
}
