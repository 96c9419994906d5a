/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <unistd.h>

#include "../attach/attach_error.h"
#include "client.h"
#include "first.h"
#include "message.h"

int first_begin(struct broker *b)
{
	const int *fd = b->options.inherited;
	const struct mux_heirloom heirloom = { fd[INHERIT_LINK], fd[INHERIT_HAIRPIN] };
	int err;

	b->holder_fd = fd[INHERIT_HOLDER];
	b->visitor_fd = fd[INHERIT_VISITOR];
	b->first_prog_fd = fd[INHERIT_PROGRAM];
	err = netdev_take_over(b->holder_fd);
	return err ? attach_failed(&b->dev, "take over the interface", err) :
		     mux_make(&b->mux, &b->dev, &b->options.pkeys, &heirloom);
}

int first_welcome(struct broker *b)
{
	struct visitor v;
	int err = broker_socket_adopt(&b->door, b->options.inherited[INHERIT_DOOR], b->dev.ifindex);

	if (!err)
		err = broker_socket_visitor(b->options.inherited[INHERIT_FIRST], &v);
	if (!err)
		err = client_make(b, &v);
	if (err)
		return attach_failed(&b->dev, "serve the process that owns the interface", err);
	b->first = b->clients;
	b->first->rights = (struct rights){ true, true, true, true };
	return 0;
}

/* ---- its questions ---- */

static int first_enter(struct client *c, u32 tap)
{
	struct bpf_prog_info info = { 0 };
	u32 len = sizeof(info);
	const u32 taps[INSTANCE_TAPS] = { tap };
	int err = bpf_obj_get_info_by_fd(c->broker->first_prog_fd, &info, &len);

	if (!err)
		err = readonly_maps_open_program(&c->shown, info.id);
	if (!err)
		err = client_enter(c, c->broker->first_prog_fd, info.id, taps);
	if (err)
		readonly_maps_close(&c->shown);
	return err;
}

int first_answer_join(struct client *c, bool native, struct ask_port *port, int fd[ASK_JOIN_FDS])
{
	struct broker *b = c->broker;
	int err = c != b->first			? -EPERM :
		  c->number != CLIENT_NONE	? -EALREADY :
						  quota_take(&b->quota, c->user, QUOTA_CLIENTS);
	u32 tap;

	if (err)
		return err;
	fd[ASK_JOIN_TAP] = instance_make_tap(&b->stock.plan, &tap);
	err = fd[ASK_JOIN_TAP] < 0 ? fd[ASK_JOIN_TAP] : first_enter(c, tap);
	if (err) {
		if (fd[ASK_JOIN_TAP] >= 0)
			close(fd[ASK_JOIN_TAP]);
		quota_give(&b->quota, c->user, QUOTA_CLIENTS, 1);
		return err;
	}
	b->mux.native = native;
	fd[ASK_JOIN_HAIRPIN] = b->mux.hairpin_fd;
	fd[ASK_JOIN_CLIENTS] = mux_clients_fd(&b->mux);
	fd[ASK_JOIN_MUX] = mux_prog_fd(&b->mux);
	*port = (struct ask_port){ .client = c->number,
				   .ifindex = b->dev.ifindex,
				   .prog_id = c->prog_id,
				   .native = native,
				   .privileged = true,
				   .pkeys = b->options.pkeys };
	return 0;
}

/* Opens the door to other processes, and serves the visitor that was accepted before. */
static int first_let_in(struct broker *b)
{
	const int fd = b->visitor_fd;
	struct visitor v;
	int err = loop_add(b->loop, &b->door_source);

	if (err)
		return err;
	b->is_open = true;
	b->visitor_fd = -1;
	if (broker_socket_visitor(fd, &v) || client_make(b, &v))
		close(fd);
	return 0;
}

int first_answer_open(struct client *c)
{
	struct broker *b = c->broker;

	if (c != b->first || c->number == CLIENT_NONE)
		return -EPERM;
	if (b->is_open)
		return -EALREADY;
	return mux_is_attached(&b->mux) ? first_let_in(b) : -ENOENT;
}

bool first_has_left(int fd)
{
	struct ask ask;

	while (message_read(fd, &ask) > 0)
		if (ask.what == ASK_LEAVE)
			return true;
	return false;
}

/*
 * Ends the broker if the process goes on without it. If the process has died, takes its interface
 * over, and serves the clients that wait for it.
 */
void first_gone(struct broker *b)
{
	int err = 0;

	b->first = NULL;
	if (b->first_died && !mux_is_attached(&b->mux))
		err = mux_put_on(&b->mux);
	if (b->first_died && !err && !b->is_open)
		err = first_let_in(b);
	if (err)
		attach_failed(&b->dev, "take over the interface", err);
	b->ended |= !b->first_died || err;
}
