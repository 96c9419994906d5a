/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of ids when interfaces come, go and change: an id that listens on all of them
 * listens on a new one too, and an id whose interface got another MAC address is told
 * (ADDR_CHANGE). The kernel is asked by a thread of the pool.
 */
#include <stdlib.h>

#include "addr.h"
#include "interfaces.h"
#include "loop.h"

static struct {
	struct loop_work work;
	bool running, again;
	u32 generation; /* in which it was started */
	u32 round;
} news;

/* ---- pins ---- */

static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;

void addr_pin(struct rdmacm_id *id)
{
	id->pins++;
}

void addr_unpin(struct rdmacm_id *id)
{
	if (!--id->pins)
		pthread_cond_broadcast(&unpinned);
}

void addr_wait_unpinned(struct rdmacm_id *id)
{
	while (id->pins)
		pthread_cond_wait(&unpinned, &rdmacm_lock);
}

/* ---- new interfaces ---- */

static bool listening_is_on_all(const struct rdmacm_id *id)
{
	return id->state == ID_LISTEN && !id->device && id->binding;
}

/* Under the lock: one that was not looked at in this round, pinned; NULL: there is none. */
static struct rdmacm_id *listening_next(u32 round)
{
	for (struct rdmacm_id *id = id_all; id; id = id->all_next) {
		if (!listening_is_on_all(id) || id->binding->round == round)
			continue;
		id->binding->round = round;
		addr_pin(id);
		return id;
	}
	return NULL;
}

/* Claims that are of devices that have gone: under the lock. */
static struct addr_claim *listening_take_gone(struct addr_binding *b)
{
	struct addr_claim **at = &b->claims, *gone = NULL, *c;

	while ((c = *at)) {
		if (c->device->gone) {
			*at = c->next;
			c->next = gone;
			gone = c;
		} else {
			at = &c->next;
		}
	}
	return gone;
}

static void listening_look(struct rdmacm_id *id)
{
	struct rdmacm_device **devs;
	struct addr_claim *gone;
	int n;

	rdmacm_enter();
	gone = listening_take_gone(id->binding);
	rdmacm_leave();
	claim_drop(gone);
	n = cm_device_get_all(&devs);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		struct netdev nd;
		int err = interfaces_get(devs[i]->ifindex, &nd);

		if (!err)
			err = nd.is_up && nd.num_gids ? claim_at(id->binding, devs[i]) : -ENODEV;
		rdmacm_enter();
		/* what another process has there stays its own */
		if (!err && listening_is_on_all(id))
			listen_at(id, devs[i]);
		cm_device_put(devs[i]);
		rdmacm_leave();
	}
	free(devs);
}

/* ---- changed addresses ---- */

/* Under the lock. */
static void listening_tell_changed(u32 ifindex, const u8 mac[6])
{
	static const u8 unknown[6]; /* of an id that a request has made */

	for (struct rdmacm_id *id = id_all; id; id = id->all_next) {
		if (!id->device || id->device->ifindex != ifindex || id->device->gone)
			continue;
		if (memcmp(id->mac, mac, sizeof(id->mac)) &&
		    memcmp(id->mac, unknown, sizeof(id->mac)))
			event_tell(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		memcpy(id->mac, mac, sizeof(id->mac));
	}
}

/* The devices of this process whose interface may have another address. */
static void listening_look_at_macs(void)
{
	u32 seen = 0;

	for (;;) {
		struct rdmacm_device *dev;
		struct netdev nd;
		u32 ifindex = 0;

		rdmacm_enter();
		/* in the order of their indexes, whatever comes and goes meanwhile */
		for (dev = devices_first(); dev; dev = dev->next)
			if (dev->ifindex > seen && (!ifindex || dev->ifindex < ifindex))
				ifindex = dev->ifindex;
		rdmacm_leave();
		if (!ifindex)
			return;
		seen = ifindex;
		if (interfaces_get(ifindex, &nd))
			continue;
		rdmacm_enter();
		listening_tell_changed(ifindex, nd.mac);
		rdmacm_leave();
	}
}

/* ---- both ---- */

static void listening_work(struct loop_work *work)
{
	struct rdmacm_id *id;

	(void)work;
	listening_look_at_macs();
	rdmacm_enter();
	news.round++;
	while ((id = listening_next(news.round))) {
		rdmacm_leave();
		listening_look(id);
		rdmacm_enter();
		addr_unpin(id);
	}
	rdmacm_leave();
}

static void listening_done(struct loop_work *work)
{
	news.running = false;
	if (news.again)
		interfaces_changed();
}

void interfaces_changed(void)
{
	if (news.generation != rdmacm_generation) {
		news.generation = rdmacm_generation;
		news.running = false;
	}
	news.again = news.running;
	if (news.running)
		return;
	news.work.do_work = listening_work;
	news.work.done = listening_done;
	news.running = true;
	loop_work(&news.work);
}

