/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "client.h"
#include "client_cm.h"
#include "dead_peers.h"

u32 client_cm_place(const struct client *c)
{
	return XROCE_CM_PLACE_OF(c->number);
}

/* Returns whether the client's own MADs do not pass the broker. */
static bool client_cm_is_unseen(const struct client *c)
{
	return c->host || c == c->broker->sole.client;
}

/* ---- the client that refuses MADs without an owner ---- */

static struct xroce_cm_client client_cm_describe(const struct client *c)
{
	return (struct xroce_cm_client){
		.client = c->number,
		.pid = c->pid,
		.serial = c->cm_serial,
		.first_port = c->rights.low_ports ? 0 : mux_first_port(&c->broker->mux),
		.by_sockets = client_cm_is_unseen(c),
	};
}

static void client_cm_set_refuser(struct broker *b, struct client *c)
{
	struct xroce_cm_client place;

	b->refuser = c;
	if (c) {
		place = client_cm_describe(c);
		if (!mux_put_place(&b->mux, XROCE_CM_PLACE_NONE, &place))
			return;
		/* the broker refuses them then (mad_refuser.c) */
		b->refuser = NULL;
	}
	mux_put_place(&b->mux, XROCE_CM_PLACE_NONE, NULL);
}

static bool client_cm_is_better(const struct client *c, const struct client *than)
{
	return !than || (c->rights.low_ports && !than->rights.low_ports);
}

/* Chooses a client with a QP 1, preferably one with CAP_NET_BIND_SERVICE. */
static void client_cm_find_refuser(struct broker *b)
{
	struct client *found = NULL;

	for (u32 i = 0; i < XROCE_MAX_CLIENT; i++) {
		struct client *c = b->of[i];

		if (c && c->has_cm && client_cm_is_better(c, found))
			found = c;
	}
	client_cm_set_refuser(b, found);
}

/* ---- QP 1 ---- */

int client_cm_claim(struct client *c)
{
	struct broker *b = c->broker;
	struct xroce_cm_client place;
	int err;

	if (c->has_cm)
		return -EALREADY;
	/* a new serial: requests to an earlier QP 1 are not for this one */
	c->cm_serial = ++b->cm_serial;
	place = client_cm_describe(c);
	err = mux_put_place(&b->mux, client_cm_place(c), &place);
	if (err)
		return err;
	c->has_cm = true;
	if (client_cm_is_better(c, b->refuser))
		client_cm_find_refuser(b);
	return 0;
}

int client_cm_release(struct client *c)
{
	struct broker *b = c->broker;

	if (!c->has_cm)
		return -ENOENT;
	c->has_cm = false;
	mux_put_place(&b->mux, client_cm_place(c), NULL);
	if (b->refuser == c)
		client_cm_find_refuser(b);
	dead_peers_take(b, client_cm_place(c), c->cm_serial, client_cm_is_unseen(c));
	return 0;
}

/* ---- services ---- */

int client_cm_bind(struct client *c, const struct ask_service *s)
{
	struct broker *b = c->broker;
	struct binding_keys keys;
	int err;

	if (c->number == CLIENT_NONE)
		return -ENOTCONN;
	if (!c->rights.low_ports && binding_is_privileged(s, mux_first_port(&b->mux)))
		return -EACCES;
	err = quota_take(&b->quota, c->user, QUOTA_SERVICES);
	if (err)
		return err;
	err = bindings_add(&b->bindings, s, c->number, &c->bound, &keys);
	if (!err) {
		err = mux_bind(&b->mux, &keys, client_cm_place(c), c->pid);
		if (err)
			bindings_remove(&b->bindings, s, c->number, &c->bound, &keys);
	}
	if (err)
		quota_give(&b->quota, c->user, QUOTA_SERVICES, 1);
	else
		c->services++;
	return err;
}

int client_cm_unbind(struct client *c, const struct ask_service *s)
{
	struct broker *b = c->broker;
	struct binding_keys keys;

	if (c->number == CLIENT_NONE ||
	    bindings_remove(&b->bindings, s, c->number, &c->bound, &keys))
		return -ENOENT;
	mux_unbind(&b->mux, &keys);
	quota_give(&b->quota, c->user, QUOTA_SERVICES, 1);
	c->services--;
	return 0;
}

void client_cm_end(struct client *c)
{
	struct broker *b = c->broker;
	struct binding_keys keys;

	while (bindings_pop(&b->bindings, &c->bound, &keys))
		mux_unbind(&b->mux, &keys);
	quota_give(&b->quota, c->user, QUOTA_SERVICES, c->services);
	c->services = 0;
	client_cm_release(c);
}
