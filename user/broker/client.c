/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../client/attach_error.h"
#include "../os/clock.h"
#include "../os/kernel.h"
#include "../os/process.h"
#include "client.h"
#include "client_cm.h"
#include "client_group.h"
#include "client_report.h"
#include "client_trace.h"
#include "../client/shared_maps.h"
#include "held.h"
#include "message.h"
#include "mad_refuser.h"
#include "pinned.h"
#include "sole.h"
#include "unread.h"

#define DISOWN_BATCH 64
/* Between two answers of -EINPROGRESS: a client waits for ASK_MAX_NS. */
#define NOTE_NS (2 * NSEC_PER_SEC)

/* ---- answers ---- */

/* Returns 0 or -errno. */
static int client_answer(struct client *c, struct ask_answer *answer, const int *fds)
{
	int err;

	answer->version = ASK_VERSION;
	err = message_answer(c->source.fd, answer, fds);
	if (!err && answer->num_fds)
		unread_start(c);
	return err;
}

/*
 * Ends a client whose socket has no room for the answer. If the client has closed it, the loop
 * reports that next, and client_ready() ends the client. Returns false if the answer was not sent.
 */
static bool client_send(struct client *c, struct ask_answer *answer, const int *fds)
{
	const int err = client_answer(c, answer, fds);

	if (err && err != -EPIPE && err != -ECONNRESET)
		client_end(c);
	return !err;
}

/* Sends an answer of 0 or -errno only. */
static void client_reply(struct client *c, u32 what, int err)
{
	struct ask_answer answer = { .what = what, .err = err };

	client_send(c, &answer, NULL);
}

/* ---- waiting ---- */

/* Queues a question for client_serve(). Until then the client's next questions stay unread. */
static void client_wait(struct client *c, const struct ask *ask)
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

/* ---- memory ---- */

/* Counts kernel memory for the client's user. Returns 0, -EDQUOT or -ENOSPC. */
static int client_take_memory(struct client *c, u32 kib)
{
	int err = quota_take_some(&c->broker->quota, c->user, QUOTA_MEMORY, kib);

	if (!err)
		c->memory_kib += kib;
	return err;
}

static void client_give_memory(struct client *c, u32 kib)
{
	quota_give(&c->broker->quota, c->user, QUOTA_MEMORY, kib);
	c->memory_kib -= kib;
}

/* ---- a port ---- */

static void client_hello(struct client *c, const struct ask *ask)
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
static u32 client_number(struct broker *b)
{
	u32 number = b->last_number;

	do
		number = (number + 1) % XROCE_MAX_CLIENT;
	while (b->of[number]);
	b->last_number = number;
	return number;
}

struct mux_client client_sender(const struct client *c)
{
	return (struct mux_client){ .number = c->number,
				    .place = client_cm_place(c),
				    .privileged = c->rights.raw,
				    .host = c->host };
}

int client_enter(struct client *c, int prog_fd, u32 prog_id, const u32 tap[INSTANCE_TAPS])
{
	struct broker *b = c->broker;
	struct mux_client sender;
	int err;

	c->number = client_number(b);
	sender = client_sender(c);
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

void client_drop_taps(struct client *c)
{
	struct broker *b = c->broker;

	for (u32 i = 0; i < INSTANCE_TAPS; i++)
		mux_remove_tap(&b->mux, c->tap[i]);
	client_pool_doom(&b->client_pool, c->tap, c->single_link_fd, clock_now_ns());
	memset(c->tap, 0, sizeof(c->tap));
	c->single_link_fd = -1;
}

static void client_leave(struct client *c)
{
	struct broker *b = c->broker;

	mux_leave(&b->mux, c->number, c->tap);
	b->of[c->number] = NULL;
	c->number = CLIENT_NONE;
}

/* Notes the maps, or files, among the descriptors of a port. Returns 0 or -ENOMEM. */
static int client_note_maps(struct client *c, const struct instance *i, const int *fd)
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

static int client_give(struct client *c, const struct instance *i)
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
	err = client_note_maps(c, i, fd);
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
static bool client_may_be_called(const struct client *c, const struct instance *i)
{
	return !i->has_sockets || !hook_is_in_dispatcher(&c->broker->mux.hook);
}

/* Enters the client's program and sends the descriptors; or neither. Returns 0 or -errno. */
static int client_connect(struct client *c, const struct instance *i)
{
	const u32 tap[INSTANCE_TAPS] = { i->tap, i->single };
	int err;

	c->host = i->host;
	err = client_enter(c, client_may_be_called(c, i) ? instance_prog_fd(i) : -1, i->prog_id,
			   tap);
	if (!err) {
		err = client_give(c, i);
		if (err)
			client_leave(c);
	}
	if (err)
		c->host = NULL;
	return err;
}

/* Keeps what the broker needs of a given instance; all other descriptors are the client's alone. */
static void client_keep(struct client *c, struct instance *i)
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
static int client_serve_beside(struct client *c)
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
	err = client_connect(c, &i);
	if (err)
		client_pool_return(&b->client_pool, &i);
	else
		client_keep(c, &i);
	return err;
}

/* Gives the client a port with sockets. Returns 0 or -errno. */
static int client_serve_sole(struct client *c)
{
	struct broker *b = c->broker;
	struct instance i;
	int err = sole_take(b, &i);

	if (err)
		return err;
	err = sole_enter(c, &i);
	if (!err) {
		err = client_connect(c, &i);
		if (err)
			sole_leave(c);
	}
	if (err)
		sole_return(b, &i);
	else
		client_keep(c, &i);
	return err;
}

static void client_serve_port(struct client *c)
{
	int err = unread_check(c);

	if (!err)
		err = client_take_memory(c, INSTANCE_KIB);
	if (!err) {
		err = sole_fits(c)			? client_serve_sole(c) :
		      c->asked.number & ASK_TO_BE_ALONE ? -EBUSY :
							  client_serve_beside(c);
		if (err)
			client_give_memory(c, INSTANCE_KIB);
	}
	if (err) {
		quota_give(&c->broker->quota, c->user, QUOTA_CLIENTS, 1);
		client_reply(c, ASK_HELLO, err);
	}
}

/* ---- numbers and rings ---- */

static u32 client_random(void *arg)
{
	struct broker *b = arg;

	if (!b->random_left) {
		kernel_random_renew(b->random, ARRAY_SIZE(b->random));
		b->random_left = ARRAY_SIZE(b->random);
	}
	return (u32)b->random[--b->random_left];
}

/* Takes number *qpn for the client, or draws one if *qpn is 0. Returns 0 or -errno. */
static int client_take(struct client *c, u32 *qpn)
{
	struct broker *b = c->broker;
	int err = quota_take(&b->quota, c->user, QUOTA_QPS);

	if (err)
		return err;
	err = *qpn ? numbers_claim(&b->numbers, *qpn, c->number, &c->qpns) :
		     numbers_draw(&b->numbers, client_random, b, c->number, &c->qpns, qpn);
	if (!err) {
		err = mux_own(&b->mux, *qpn, c->number, c->pid);
		if (err)
			numbers_release(&b->numbers, *qpn, c->number, &c->qpns);
	}
	if (err)
		quota_give(&b->quota, c->user, QUOTA_QPS, 1);
	else
		c->qps++;
	return err;
}

static void client_draw(struct client *c)
{
	struct ask_answer answer = { .what = ASK_DRAW };

	answer.err = c->number == CLIENT_NONE ? -ENOTCONN : client_take(c, &answer.number);
	client_send(c, &answer, NULL);
}

/*
 * Claims a number, only with CAP_NET_ADMIN: the answers reveal which numbers are taken. Every
 * client may claim QP 1.
 */
static int client_claim(struct client *c, u32 qpn)
{
	int err = c->number == CLIENT_NONE ? -ENOTCONN : 0;

	if (!err && qpn == XROCE_CM_QPN)
		return client_cm_claim(c);
	if (!err)
		err = c->rights.admin ? numbers_check(qpn) : -EPERM;
	return err ? err : client_take(c, &qpn);
}

static int client_release(struct client *c, u32 qpn)
{
	struct broker *b = c->broker;

	if (qpn == XROCE_CM_QPN)
		return client_cm_release(c);
	if (c->number == CLIENT_NONE || numbers_release(&b->numbers, qpn, c->number, &c->qpns))
		return -ENOENT;
	mux_disown(&b->mux, &qpn, 1);
	quota_give(&b->quota, c->user, QUOTA_QPS, 1);
	c->qps--;
	return 0;
}

/* Gets the next ring, counted for the client. Returns its descriptor or -errno. */
static int client_make_ring(struct client *c)
{
	struct quota *q = &c->broker->quota;
	int fd, err = c->host ? -EOPNOTSUPP : held_reserve(&c->maps, 1);

	if (!err)
		err = quota_take(q, c->user, QUOTA_RINGS);
	if (err)
		return err;
	err = client_take_memory(c, CLIENT_RING_KIB);
	if (!err) {
		fd = instance_ring(&c->rings_left, c->rings);
		if (fd >= 0) {
			held_note(c->broker, c->user, &c->maps, fd);
			c->rings++;
			return fd;
		}
		err = fd;
		client_give_memory(c, CLIENT_RING_KIB);
	}
	quota_give(q, c->user, QUOTA_RINGS, 1);
	return err;
}

static void client_ring(struct client *c)
{
	struct ask_answer answer = { .what = ASK_RING,
				     .num_fds = 1,
				     .number = XROCE_MAX_QUEUE + c->rings };
	int fd = c->number == CLIENT_NONE ? -ENOTCONN : unread_check(c);

	if (!fd)
		fd = client_make_ring(c);
	if (fd < 0) {
		client_reply(c, ASK_RING, fd);
		return;
	}
	client_send(c, &answer, &fd);
	close(fd);
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
					       .udp = c->broker->options.udp } };

	client_send(c, &answer, NULL);
}

/* ---- `xroce list`, `xroce stop` and observers ---- */

/* Without sock_diag(7) a client of root's may have CAP_NET_ADMIN that it cannot prove. */
static bool client_may_be_admin(const struct client *c)
{
	return c->rights.admin || (c->broker->proof_way == PROOF_BY_BIND && !c->uid);
}

/*
 * Returns whether a process may see a client: with CAP_NET_ADMIN any, else clients of its user that
 * do not have it either (root of a container may lack it). Users that are not mapped in the
 * broker's user namespace cannot be distinguished, so they see none.
 */
static bool client_may_see(const struct client *asking, const struct client *c)
{
	return asking->rights.admin || (c->uid == asking->uid && !client_may_be_admin(c) &&
					!process_is_outside_uid(asking->uid));
}

/* Returns the first client from `number` on that `asking` may see, or NULL. */
static struct client *client_from(const struct client *asking, u32 number)
{
	for (; number < XROCE_MAX_CLIENT; number++) {
		struct client *c = asking->broker->of[number];

		if (c && client_may_see(asking, c))
			return c;
	}
	return NULL;
}

/* Returns the client with that number if `asking` may see it, else NULL. */
static struct client *client_of(const struct client *asking, u32 number)
{
	struct client *c = client_from(asking, number);

	return c && c->number == number ? c : NULL;
}

static struct ask_client client_describe(const struct client *c)
{
	struct ask_client described = { .client = c->number,
					.pid = c->pid,
					.uid = c->uid,
					.qps = c->qps,
					.prog_id = c->prog_id,
					.tap = c->tap[0],
					.sockets = c == c->broker->sole.client,
					.services = c->services,
					.memory = (u64)c->memory_kib << 10 };
	struct xroce_tap sent = { 0 };

	mux_sent(&c->broker->mux, c->tap, &sent);
	described.frames = sent.frames;
	described.hairpin = sent.hairpin;
	described.bytes = sent.bytes;
	described.refused = sent.refused;
	memcpy(described.command, c->command, sizeof(described.command));
	return described;
}

static void client_list(struct client *c, u32 number)
{
	struct ask_answer answer = { .what = ASK_LIST };
	const struct client *other = client_from(c, number);

	if (other) {
		answer.client = client_describe(other);
	} else {
		answer.err = -ENOENT;
		answer.number = !c->rights.admin;
	}
	client_send(c, &answer, NULL);
}

/* Sends read-only descriptors. */
static void client_maps(struct client *c, u32 number)
{
	struct ask_answer answer = { .what = ASK_MAPS };
	const struct client *other = client_of(c, ASK_MAPS_CLIENT(number));
	int err = other ? other->readonly_maps.err : -ENOENT;
	u32 first;

	if (!err)
		err = unread_check(c);
	if (err) {
		client_reply(c, ASK_MAPS, err);
		return;
	}
	first = min_u32(ASK_MAPS_FIRST(number), other->readonly_maps.num);
	answer.client = client_describe(other);
	answer.num_fds = min_u32(other->readonly_maps.num - first, ASK_FDS);
	client_send(c, &answer, other->readonly_maps.fd + first);
}

/* Permits the same clients as ASK_MAPS. */
static void client_trace(struct client *c, const struct ask *ask)
{
	struct ask_answer answer = { .what = ASK_TRACE, .num_fds = ASK_TRACE_FDS };
	struct client *other = client_of(c, ask->number);
	int fd[ASK_TRACE_FDS], err = -ENOENT;

	if (other)
		err = unread_check(c);
	if (!err) {
		client_report_pass_all(other); /* to earlier observers */
		err = client_trace_begin(c, other, &ask->trace, &answer.traced, fd);
	}
	if (err) {
		client_reply(c, ASK_TRACE, err);
		return;
	}
	answer.traced.client = client_describe(other);
	client_send(c, &answer, fd);
	for (u32 i = 0; i < ASK_TRACE_FDS; i++)
		close(fd[i]);
}

static void client_untrace(struct client *c, u32 prog_id)
{
	struct ask_answer answer = { .what = ASK_UNTRACE };

	for (struct client *of = c->broker->clients; of; of = of->next)
		if (of->prog_id == prog_id && client_may_see(c, of))
			client_report_pass_all(of);
	answer.err = client_trace_end(c, prog_id, &answer.traced);
	client_send(c, &answer, NULL);
}

static void client_stop(struct client *c)
{
	struct broker *b = c->broker;
	struct ask_answer answer = { .what = ASK_STOP };

	if (!c->rights.admin && (!geteuid() || !process_is_own_uid(c->uid))) {
		client_reply(c, ASK_STOP, -EPERM);
		return;
	}
	if (!client_send(c, &answer, NULL))
		return;
	b->ended = true;
	if (b->stopper_fd < 0)
		b->stopper_fd = fcntl(c->source.fd, F_DUPFD_CLOEXEC, 0);
}

/* ---- rights ---- */

static void client_challenge(struct client *c)
{
	struct ask_answer answer = { .what = ASK_PROVE };

	do
		answer.challenge.nonce = client_random(c->broker);
	while (!answer.challenge.nonce);
	answer.challenge.first_port =
		proof_first_port(c->broker->proof_way, min_u32(mux_first_port(&c->broker->mux),
							       mux_read_first_port()));
	c->challenge = answer.challenge;
	client_send(c, &answer, NULL);
}

/* Counts the connection for its user with CAP_NET_ADMIN. Cannot fail: it has just freed one. */
static void client_move_to_admins(struct client *c)
{
	struct quota *q = &c->broker->quota;

	quota_give(q, c->user, QUOTA_CONNECTIONS, 1);
	c->user = held_find_user(c->broker, c->uid, true);
	quota_take(q, c->user, QUOTA_CONNECTIONS);
}

/*
 * Reads the rights that the socket at the port proves. Without sock_diag(7) no socket proves
 * CAP_NET_ADMIN or CAP_NET_RAW: only the process that started the broker has them, if the broker
 * has them from it.
 */
static int client_read_rights(const struct client *c, const struct ask_challenge *challenge,
			      u32 port, struct rights *rights)
{
	const struct broker *b = c->broker;
	struct rights starter;
	int err = proof_read(b->proof_way, challenge, port, rights);

	if (err || !rights->here || b->proof_way == PROOF_BY_DIAG ||
	    c->source.fd != b->options.client_fd)
		return err;
	err = proof_of_starter(&starter);
	rights->admin = starter.admin;
	rights->raw = starter.raw;
	return err;
}

static int client_prove(struct client *c, u32 port)
{
	const struct ask_challenge challenge = c->challenge;
	struct rights rights;
	int err;

	/* the old rights are in the maps already, and traces count for the old user */
	if (c->number != CLIENT_NONE || c->waiting || c->traces)
		return -EALREADY;
	c->challenge.nonce = 0;
	if (!challenge.nonce)
		return -EINVAL;
	err = client_read_rights(c, &challenge, port, &rights);
	if (err || !rights.here)
		return err ? err : -ENONET;
	if (rights.admin && !c->rights.admin)
		client_move_to_admins(c);
	/* CAP_NET_ADMIN stays once it is proved, like the rights of a descriptor */
	if (!c->rights.admin)
		c->rights = rights;
	return 0;
}

/* ---- queued questions ---- */

void client_serve(struct client *c)
{
	c->waiting = false;
	c->user->served = ++c->broker->served;
	loop_listen(c->broker->loop, &c->source, LOOP_INPUT);
	switch (c->asked.what) {
	case ASK_RING:
		client_ring(c);
		return;
	case ASK_MAPS:
		client_maps(c, c->asked.number);
		return;
	case ASK_TRACE:
		client_trace(c, &c->asked);
		return;
	case ASK_UNTRACE:
		client_untrace(c, c->asked.number);
		return;
	case ASK_RELEASE:
		client_reply(c, ASK_RELEASE, client_release(c, c->asked.number));
		return;
	default:
		client_serve_port(c);
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
		client_hello(c, ask);
		return;
	case ASK_DRAW:
		client_draw(c);
		return;
	case ASK_CLAIM:
		client_reply(c, ASK_CLAIM, client_claim(c, ask->number));
		return;
	case ASK_RELEASE:
		/* for QP 1 the broker looks through all connections of its interface */
		if (ask->number == XROCE_CM_QPN && c->has_cm)
			client_wait(c, ask);
		else
			client_reply(c, ASK_RELEASE, client_release(c, ask->number));
		return;
	case ASK_LIST:
		client_list(c, ask->number);
		return;
	case ASK_STOP:
		client_stop(c);
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
		client_challenge(c);
		return;
	case ASK_PROOF:
		client_reply(c, ASK_PROOF, client_prove(c, ask->number));
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

static void client_disown(struct client *c)
{
	struct broker *b = c->broker;
	u32 qpn[DISOWN_BATCH], n;

	do {
		for (n = 0; n < DISOWN_BATCH && numbers_pop(&b->numbers, &c->qpns, &qpn[n]); n++)
			;
		mux_disown(&b->mux, qpn, n);
	} while (n == DISOWN_BATCH);
	quota_give(&b->quota, c->user, QUOTA_QPS, c->qps);
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

	client_disown(c);
	client_cm_end(c);
	client_group_end(c);
	if (c->number != CLIENT_NONE || client_waits_for_port(c))
		quota_give(&b->quota, c->user, QUOTA_CLIENTS, 1);
	pinned_client_end(c);
	if (c->number != CLIENT_NONE) {
		client_leave(c);
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
