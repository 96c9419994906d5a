/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "../os/process.h"
#include "client.h"
#include "client_cm.h"
#include "client_group.h"
#include "client_number.h"
#include "client_observer.h"
#include "client_port.h"
#include "client_report.h"
#include "client_rights.h"
#include "client_trace.h"
#include "held.h"
#include "message.h"
#include "mad_refuser.h"
#include "pinned.h"
#include "sole.h"
#include "unread.h"

/* Between two answers of -EINPROGRESS: a client waits for ASK_MAX_NS. */
#define NOTE_NS (2 * NSEC_PER_SEC)

/* ---- answers ---- */

int client_answer(struct client *c, struct ask_answer *answer, const int *fds)
{
	int err;

	answer->version = ASK_VERSION;
	err = message_answer(c->source.fd, answer, fds);
	if (!err && answer->num_fds)
		unread_start(c);
	return err;
}

bool client_send(struct client *c, struct ask_answer *answer, const int *fds)
{
	const int err = client_answer(c, answer, fds);

	if (err && err != -EPIPE && err != -ECONNRESET)
		client_end(c);
	return !err;
}

void client_reply(struct client *c, u32 what, int err)
{
	struct ask_answer answer = { .what = what, .err = err };

	client_send(c, &answer, NULL);
}

/* ---- waiting ---- */

void client_wait(struct client *c, const struct ask *ask)
{
	c->waiting = true;
	c->asked = *ask;
	c->asked_ns = c->noted_ns = clock_now_ns();
	loop_listen(c->broker->loop, &c->source, LOOP_HANGUP);
}

static bool client_waits_for_port(const struct client *c)
{
	return c->waiting && c->asked.what == ASK_HELLO;
}

/* Returns whether the answer takes no time. */
static bool client_is_quick(const struct client *c)
{
	switch (c->asked.what) {
	case ASK_RING:
		return c->number == CLIENT_NONE || instance_ring_is_ahead(&c->rings_left, c->rings);
	case ASK_MAPS:
		return true;
	default:
		return c->asked.what == ASK_HELLO && c->broker->client_pool.spares &&
		       c->broker->mux.is_on;
	}
}

/* Returns whether the queued question has an answer without descriptors. */
static bool client_waits_for_none(const struct client *c)
{
	return c->asked.what == ASK_UNTRACE || c->asked.what == ASK_RELEASE;
}

/* Returns whether a port waits for the sole client, or for memory that may be freed soon. */
static bool client_is_held_up(const struct client *c)
{
	const u64 now_ns = clock_now_ns();

	return sole_holds_others(c->broker, now_ns) ||
	       (now_ns < c->asked_ns + HELD_WAIT_NS &&
		held_may_return(c->broker, c->user, INSTANCE_KIB));
}

static bool client_can_be_served(const struct client *c)
{
	if (!c->waiting || (client_waits_for_port(c) && client_is_held_up(c)))
		return false;
	return client_waits_for_none(c) || unread_check(c) || unread_has_room(c);
}

struct client *client_waiting(struct broker *b, bool quick)
{
	struct client *found = NULL;

	for (struct client *c = b->clients; c; c = c->next)
		if (client_can_be_served(c) && (!quick || client_is_quick(c)) &&
		    (!found || c->user->served <= found->user->served))
			found = c;
	return found;
}

void client_note_waiting(struct broker *b, u64 now_ns)
{
	for (struct client *c = b->clients, *next; c; c = next) {
		next = c->next;
		if (!c->waiting || now_ns < c->noted_ns + NOTE_NS)
			continue;
		c->noted_ns = now_ns;
		client_reply(c, c->asked.what, -EINPROGRESS);
	}
}

u64 client_next_note_ns(const struct broker *b)
{
	u64 next_ns = NSEC_NEVER;

	for (const struct client *c = b->clients; c; c = c->next)
		if (c->waiting)
			next_ns = min_u64(next_ns, c->noted_ns + NOTE_NS);
	return next_ns;
}

/* ---- the sole client ---- */

static void client_others(struct client *c)
{
	struct ask_answer answer = { .what = ASK_OTHERS, .num_fds = 1 };
	const int fd = sole_answer_others(c);

	if (fd < 0) {
		client_reply(c, ASK_OTHERS, fd);
		return;
	}
	client_send(c, &answer, &fd);
	/* the kernel deletes the device when the client's descriptor is closed */
	close(fd);
}

/* The connection hangs up once all is taken back, also if the broker ends with the client. */
static void client_says_goodbye(struct client *c)
{
	struct broker *b = c->broker;
	const int fd = fcntl(c->source.fd, F_DUPFD_CLOEXEC, 0);

	client_end(c);
	if (b->ended && b->stopper_fd < 0)
		b->stopper_fd = fd;
	else if (fd >= 0)
		close(fd);
}

/* ---- questions without a port ---- */

static int client_arrived(struct client *c)
{
	if (c->number == CLIENT_NONE)
		return -ENOTCONN;
	if (c->broker->mux.host) {
		mad_refuser_begin_turn(c->broker);
		host_receive_take_all(&c->broker->mux.receive, ASK_ARRIVED_LEAST);
	}
	return 0;
}

static void client_kind(struct client *c)
{
	struct ask_answer answer = { .what = ASK_KIND,
				     .kind = { .pkeys = c->broker->options.pkeys,
					       .udp = c->broker->options.udp,
					       .sole = sole_is_free(c->broker) } };

	client_send(c, &answer, NULL);
}

/* ---- queued questions ---- */

void client_serve(struct client *c)
{
	c->waiting = false;
	c->user->served = ++c->broker->served;
	loop_listen(c->broker->loop, &c->source, LOOP_INPUT);
	switch (c->asked.what) {
	case ASK_RING:
		client_port_ring(c);
		return;
	case ASK_MAPS:
		client_observer_maps(c, c->asked.number);
		return;
	case ASK_TRACE:
		client_observer_trace(c, &c->asked);
		return;
	case ASK_UNTRACE:
		client_observer_untrace(c, c->asked.number);
		return;
	case ASK_RELEASE:
		client_reply(c, ASK_RELEASE, client_number_release(c, c->asked.number));
		return;
	default:
		client_port_serve(c);
	}
}

/* ---- input ---- */

static bool client_may_ask(const struct client *c, u32 what)
{
	return c->rights.here || what == ASK_PROVE || what == ASK_PROOF || what == ASK_KIND;
}

static void client_ask(struct client *c, const struct ask *ask)
{
	if (!client_may_ask(c, ask->what)) {
		client_reply(c, ask->what, -ENONET);
		return;
	}
	switch ((enum ask_what)ask->what) {
	case ASK_HELLO:
		client_port_ask(c, ask);
		return;
	case ASK_DRAW:
		client_number_draw(c);
		return;
	case ASK_CLAIM:
		client_reply(c, ASK_CLAIM, client_number_claim(c, ask->number));
		return;
	case ASK_RELEASE:
		/* for QP 1 the broker looks through all connections of its interface */
		if (ask->number == XROCE_CM_QPN && c->has_cm)
			client_wait(c, ask);
		else
			client_reply(c, ASK_RELEASE, client_number_release(c, ask->number));
		return;
	case ASK_LIST:
		client_observer_list(c, ask->number);
		return;
	case ASK_STOP:
		client_observer_stop(c);
		return;
	case ASK_LEAVE:
		client_says_goodbye(c);
		return;
	case ASK_OTHERS:
		client_others(c);
		return;
	case ASK_KIND:
		client_kind(c);
		return;
	case ASK_ARRIVED:
		client_reply(c, ASK_ARRIVED, client_arrived(c));
		return;
	case ASK_RING:
	case ASK_MAPS:
	case ASK_TRACE:
	case ASK_UNTRACE:
		client_wait(c, ask);
		return;
	case ASK_BIND:
		client_reply(c, ASK_BIND, client_cm_bind(c, &ask->service));
		return;
	case ASK_UNBIND:
		client_reply(c, ASK_UNBIND, client_cm_unbind(c, &ask->service));
		return;
	case ASK_ATTACH:
		client_reply(c, ASK_ATTACH, client_group_attach(c, &ask->service));
		return;
	case ASK_DETACH:
		client_reply(c, ASK_DETACH, client_group_detach(c, &ask->service));
		return;
	case ASK_PROVE:
		client_rights_challenge(c);
		return;
	case ASK_PROOF:
		client_reply(c, ASK_PROOF, client_rights_prove(c, ask->number));
		return;
	}
}

/* Reports the reason: answers of all versions begin with the same fields. */
static void client_refuse_version(struct client *c)
{
	message_answer(c->source.fd,
		       &(struct ask_answer){ .version = ASK_VERSION, .err = -EPROTONOSUPPORT },
		       NULL);
}

static void client_ready(struct source *s, u32 events)
{
	struct client *c = container_of(s, struct client, source);
	struct ask ask;
	int got;

	if (events & (EPOLLHUP | EPOLLERR)) {
		/* its unread questions are dropped */
		client_end(c);
		return;
	}
	if (unread_look(c))
		return;
	got = message_read(s->fd, &ask);
	if (got > 0) {
		client_ask(c, &ask);
		return;
	}
	if (got == -EPROTONOSUPPORT)
		client_refuse_version(c);
	if (got)
		client_end(c);
}

/* ---- start and end ---- */

int client_make(struct broker *b, const struct visitor *v)
{
	struct quota_user *user = held_find_user(b, v->uid, false);
	struct client *c;
	int err = user ? quota_take(&b->quota, user, QUOTA_CONNECTIONS) : -ENOSPC;

	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (c) {
		*c = (struct client){ .source = { .ready = client_ready, .fd = v->fd },
				      .broker = b,
				      .next = b->clients,
				      .user = user,
				      .pid = v->pid,
				      .uid = v->uid,
				      .number = CLIENT_NONE,
				      .single_link_fd = -1,
				      .unread_ns = NSEC_NEVER,
				      .pin = PIN_NONE,
				      .readonly_maps = readonly_maps_none,
				      .rings_left = INSTANCE_RINGS_NONE,
				      .reports = { .fd = -1 },
				      .qpns = NUMBERS_NONE,
				      .bound = BINDINGS_NONE };
		process_name((pid_t)v->pid, c->command, sizeof(c->command));
	}
	err = c ? loop_add(b->loop, &c->source) : -ENOMEM;
	if (err) {
		free(c);
		quota_give(&b->quota, user, QUOTA_CONNECTIONS, 1);
		return err;
	}
	if (b->clients)
		b->clients->before = c;
	b->clients = c;
	return 0;
}

/* Refuses a connection for which no descriptor is free: epoll would report it forever. */
static void client_turn_away(struct broker *b)
{
	struct visitor v;

	if (b->reserve_fd >= 0)
		close(b->reserve_fd);
	if (!broker_socket_take(&b->broker_socket, &v))
		close(v.fd);
	b->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* An abstract address has no mode: a broker that listens there serves its own user. */
static bool client_is_welcome(const struct broker *b, const struct visitor *v)
{
	return b->broker_socket.at.sun_path[0] || process_is_own_uid(v->uid);
}

void client_welcome(struct broker *b)
{
	struct visitor v;
	int err = broker_socket_take(&b->broker_socket, &v);

	if (err == -EMFILE || err == -ENFILE)
		client_turn_away(b);
	else if (!err && (!client_is_welcome(b, &v) || client_make(b, &v)))
		close(v.fd);
}

/* Frees c, which is entered nowhere but in the list of clients, and closes its connection. */
static void client_free(struct client *c)
{
	struct broker *b = c->broker;

	unread_dismiss(c);
	client_report_pass_all(c);
	client_report_end(c);
	client_trace_dismiss(c);
	readonly_maps_close(&c->readonly_maps);
	instance_rings_close(&c->rings_left);
	host_client_free(c->host);
	if (c->before)
		c->before->next = c->next;
	else
		b->clients = c->next;
	if (c->next)
		c->next->before = c->before;
	if (c->source.fd >= 0) {
		loop_remove(b->loop, &c->source);
		close(c->source.fd);
	}
	free(c);
}

void client_end(struct client *c)
{
	struct broker *b = c->broker;
	const bool is_first = c->source.fd == b->options.client_fd;
	bool is_parked;

	client_number_end(c);
	client_cm_end(c);
	client_group_end(c);
	if (c->number != CLIENT_NONE || client_waits_for_port(c))
		quota_give(&b->quota, c->user, QUOTA_CLIENTS, 1);
	pinned_client_end(c);
	if (c->number != CLIENT_NONE) {
		client_port_leave(c);
		client_pool_doom(&b->client_pool, c->tap, c->single_link_fd, clock_now_ns());
	}
	quota_give(&b->quota, c->user, QUOTA_RINGS, c->rings);
	held_begin(b, c->user, &c->maps, c->memory_kib, 0);
	is_parked = unread_park(c);
	if (!is_parked)
		quota_give(&b->quota, c->user, QUOTA_CONNECTIONS, 1);
	sole_client_ends(c);
	/* the process that started the broker has got no port, and no other one waits for one */
	if (is_first) {
		b->options.client_fd = -1;
		b->ended |= !b->quota.used[QUOTA_CLIENTS] && b->sole.made.bpf;
	}
	client_free(c);
	if (is_parked)
		unread_hang_up(b);
}
