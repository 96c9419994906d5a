/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <unistd.h>

#include "../client/attach_error.h"
#include "../client/shared_maps.h"
#include "../os/clock.h"
#include "client.h"
#include "client_cm.h"
#include "client_port.h"
#include "client_report.h"
#include "held.h"
#include "pinned.h"
#include "sole.h"
#include "unread.h"

/* ---- memory ---- */

/* Counts kernel memory for the client's user. Returns 0, -EDQUOT or -ENOSPC. */
static int client_port_take_memory(struct client *c, u32 kib)
{
	int err = quota_take_some(&c->broker->quota, c->user, QUOTA_MEMORY, kib);

	if (!err)
		c->memory_kib += kib;
	return err;
}

static void client_port_give_memory(struct client *c, u32 kib)
{
	quota_give(&c->broker->quota, c->user, QUOTA_MEMORY, kib);
	c->memory_kib -= kib;
}

/* ---- a port ---- */

void client_port_ask(struct client *c, const struct ask *ask)
{
	int err = c->waiting || c->number != CLIENT_NONE ? -EALREADY :
		  ask->number & ~ASK_HELLO_ALL		 ? -EINVAL :
		  quota_take(&c->broker->quota, c->user, QUOTA_CLIENTS);

	if (err) {
		client_reply(c, ASK_HELLO, err);
		return;
	}
	client_wait(c, ask);
	if (held_may_return(c->broker, c->user, INSTANCE_KIB))
		held_hurry(c->broker);
}

/* Returns the next free number in turn; early reuse could misdirect packets in flight. */
static u32 client_port_number(struct broker *b)
{
	u32 number = b->last_number;

	do
		number = (number + 1) % XROCE_MAX_CLIENT;
	while (b->of[number]);
	b->last_number = number;
	return number;
}

struct mux_client client_port_sender(const struct client *c)
{
	return (struct mux_client){ .number = c->number,
				    .place = client_cm_place(c),
				    .privileged = c->rights.raw,
				    .host = c->host };
}

int client_port_enter(struct client *c, int prog_fd, u32 prog_id, const u32 tap[INSTANCE_TAPS])
{
	struct broker *b = c->broker;
	struct mux_client sender;
	int err;

	c->number = client_port_number(b);
	sender = client_port_sender(c);
	err = mux_enter(&b->mux, &sender, prog_fd, tap);
	if (err) {
		c->number = CLIENT_NONE;
		return err;
	}
	memcpy(c->tap, tap, sizeof(c->tap));
	c->prog_id = prog_id;
	b->of[c->number] = c;
	return 0;
}

void client_port_drop_taps(struct client *c)
{
	struct broker *b = c->broker;

	for (u32 i = 0; i < INSTANCE_TAPS; i++)
		mux_remove_tap(&b->mux, c->tap[i]);
	client_pool_doom(&b->client_pool, c->tap, c->single_link_fd, clock_now_ns());
	memset(c->tap, 0, sizeof(c->tap));
	c->single_link_fd = -1;
}

void client_port_leave(struct client *c)
{
	struct broker *b = c->broker;

	mux_leave(&b->mux, c->number, c->tap);
	b->of[c->number] = NULL;
	c->number = CLIENT_NONE;
}

/* Notes the maps, or files, among the descriptors of a port. Returns 0 or -ENOMEM. */
static int client_port_note_maps(struct client *c, const struct instance *i, const int *fd)
{
	const int err = held_reserve(&c->maps, ASK_FDS);

	if (err)
		return err;
#define X(name, map, which, n) held_note(c->broker, c->user, &c->maps, fd[which]);
	SHARED_MAPS(X)
#undef X
	held_note(c->broker, c->user, &c->maps, fd[ASK_FD_RX]);
	held_note(c->broker, c->user, &c->maps, fd[ASK_FD_WAKE]);
	/* of ASK_FD_TRACE */
	if (!i->host)
		held_note(c->broker, c->user, &c->maps, i->readonly_maps.slot.trace_fd);
	return 0;
}

static int client_port_give(struct client *c, const struct instance *i)
{
	struct ask_answer answer = {
		.what = ASK_HELLO,
		.port = { .client = c->number,
			  .ifindex = c->broker->dev.ifindex,
			  .prog_id = i->prog_id,
			  .ring_bytes = i->ring_bytes,
			  .native = c->broker->mux.hook.native,
			  .privileged = c->rights.raw,
			  .sockets = i->has_sockets,
			  .udp = i->host ? host_receive_room(&c->broker->mux.receive) : 0,
			  .pkeys = c->broker->options.pkeys },
	};
	/* with UDP sockets there is no program that the client could run */
	const bool by_socket = c->asked.number & ASK_REPORTS_BY_SOCKET || i->host;
	int fd[ASK_SOCKETS_FDS], err;

	answer.num_fds = instance_fds(i, fd);
	err = client_port_note_maps(c, i, fd);
	if (!err && by_socket)
		err = client_report_begin(c, &fd[ASK_FD_TRACE]);
	if (!err) {
		err = client_answer(c, &answer, fd);
		if (by_socket)
			close(fd[ASK_FD_TRACE]);
		if (err)
			client_report_end(c);
	}
	if (err)
		held_forget(&c->maps);
	return err;
}

/*
 * The sole client's program in a dispatcher replaces a function there. The kernel accepts no such
 * program in an array of programs; the mux never calls it, as it does not get that hook back.
 */
static bool client_port_may_be_called(const struct client *c, const struct instance *i)
{
	return !i->has_sockets || !hook_is_in_dispatcher(&c->broker->mux.hook);
}

/* Enters the client's program and sends the descriptors; or neither. Returns 0 or -errno. */
static int client_port_connect(struct client *c, const struct instance *i)
{
	const u32 tap[INSTANCE_TAPS] = { i->tap, i->single };
	int err;

	c->host = i->host;
	err = client_port_enter(c, client_port_may_be_called(c, i) ? instance_prog_fd(i) : -1,
				i->prog_id, tap);
	if (!err) {
		err = client_port_give(c, i);
		if (err)
			client_port_leave(c);
	}
	if (err)
		c->host = NULL;
	return err;
}

/* Keeps what the broker needs of a given instance; all other descriptors are the client's alone. */
static void client_port_keep(struct client *c, struct instance *i)
{
	pinned_client(c, i);
	c->single_link_fd = i->single_link_fd;
	i->single_link_fd = -1;
	c->readonly_maps = i->readonly_maps;
	i->readonly_maps = readonly_maps_none;
	c->rings_left = i->rings;
	i->rings = (struct instance_rings)INSTANCE_RINGS_NONE;
	if (i->host)
		host_client_given(i->host);
	i->host = NULL;
	instance_close(i);
}

/* Gives the client a port beside others. Returns 0 or -errno. */
static int client_port_serve_beside(struct client *c)
{
	struct broker *b = c->broker;
	struct instance i;
	const char *step;
	/* with UDP sockets nothing is on the interface */
	int err = b->options.udp ? 0 : sole_make_way(b);

	if (err)
		return err;
	err = client_pool_take(&b->client_pool, clock_now_ns(), &i, &step);
	if (err)
		return attach_failed(&b->dev, step, err);
	err = client_port_connect(c, &i);
	if (err)
		client_pool_return(&b->client_pool, &i);
	else
		client_port_keep(c, &i);
	return err;
}

/* Gives the client a port with sockets. Returns 0 or -errno. */
static int client_port_serve_sole(struct client *c)
{
	struct broker *b = c->broker;
	struct instance i;
	int err = sole_take(b, &i);

	if (err)
		return err;
	err = sole_enter(c, &i);
	if (!err) {
		err = client_port_connect(c, &i);
		if (err)
			sole_leave(c);
	}
	if (err)
		sole_return(b, &i);
	else
		client_port_keep(c, &i);
	return err;
}

void client_port_serve(struct client *c)
{
	int err = unread_check(c);

	if (!err)
		err = client_port_take_memory(c, INSTANCE_KIB);
	if (!err) {
		err = sole_fits(c)			? client_port_serve_sole(c) :
		      c->asked.number & ASK_TO_BE_ALONE ? -EBUSY :
							  client_port_serve_beside(c);
		if (err)
			client_port_give_memory(c, INSTANCE_KIB);
	}
	if (err) {
		quota_give(&c->broker->quota, c->user, QUOTA_CLIENTS, 1);
		client_reply(c, ASK_HELLO, err);
	}
}

/* ---- rings ---- */

/* Gets the next ring, counted for the client. Returns its descriptor or -errno. */
static int client_port_make_ring(struct client *c)
{
	struct quota *q = &c->broker->quota;
	int fd, err = c->host ? -EOPNOTSUPP : held_reserve(&c->maps, 1);

	if (!err)
		err = quota_take(q, c->user, QUOTA_RINGS);
	if (err)
		return err;
	err = client_port_take_memory(c, CLIENT_RING_KIB);
	if (!err) {
		fd = instance_ring(&c->rings_left, c->rings);
		if (fd >= 0) {
			held_note(c->broker, c->user, &c->maps, fd);
			c->rings++;
			return fd;
		}
		err = fd;
		client_port_give_memory(c, CLIENT_RING_KIB);
	}
	quota_give(q, c->user, QUOTA_RINGS, 1);
	return err;
}

void client_port_ring(struct client *c)
{
	struct ask_answer answer = { .what = ASK_RING,
				     .num_fds = 1,
				     .number = XROCE_MAX_QUEUE + c->rings };
	int fd = c->number == CLIENT_NONE ? -ENOTCONN : unread_check(c);

	if (!fd)
		fd = client_port_make_ring(c);
	if (fd < 0) {
		client_reply(c, ASK_RING, fd);
		return;
	}
	client_send(c, &answer, &fd);
	close(fd);
}
