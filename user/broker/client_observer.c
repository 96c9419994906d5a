/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <unistd.h>

#include "../os/process.h"
#include "client.h"
#include "client_observer.h"
#include "client_report.h"
#include "client_trace.h"
#include "message.h"
#include "unread.h"

/* Without sock_diag(7) a client of root's may have CAP_NET_ADMIN that it cannot prove. */
static bool client_observer_may_be_admin(const struct client *c)
{
	return c->rights.admin || (c->broker->proof_way == PROOF_BY_BIND && !c->uid);
}

/*
 * Returns whether a process may see a client: with CAP_NET_ADMIN any, else clients of its user that
 * do not have it either (root of a container may lack it). Users that are not mapped in the
 * broker's user namespace cannot be distinguished, so they see none.
 */
static bool client_observer_may_see(const struct client *asking, const struct client *c)
{
	return asking->rights.admin || (c->uid == asking->uid && !client_observer_may_be_admin(c) &&
					!process_is_outside_uid(asking->uid));
}

/* Returns the first client from `number` on that `asking` may see, or NULL. */
static struct client *client_observer_from(const struct client *asking, u32 number)
{
	for (; number < XROCE_MAX_CLIENT; number++) {
		struct client *c = asking->broker->of[number];

		if (c && client_observer_may_see(asking, c))
			return c;
	}
	return NULL;
}

/* Returns the client with that number if `asking` may see it, else NULL. */
static struct client *client_observer_find(const struct client *asking, u32 number)
{
	struct client *c = client_observer_from(asking, number);

	return c && c->number == number ? c : NULL;
}

static struct ask_client client_observer_describe(const struct client *c)
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

void client_observer_list(struct client *c, u32 number)
{
	struct ask_answer answer = { .what = ASK_LIST };
	const struct client *other = client_observer_from(c, number);

	if (other) {
		answer.client = client_observer_describe(other);
	} else {
		answer.err = -ENOENT;
		answer.number = !c->rights.admin;
	}
	client_send(c, &answer, NULL);
}

void client_observer_maps(struct client *c, u32 number)
{
	struct ask_answer answer = { .what = ASK_MAPS };
	const struct client *other = client_observer_find(c, ASK_MAPS_CLIENT(number));
	int err = other ? other->readonly_maps.err : -ENOENT;
	u32 first;

	if (!err)
		err = unread_check(c);
	if (err) {
		client_reply(c, ASK_MAPS, err);
		return;
	}
	first = min_u32(ASK_MAPS_FIRST(number), other->readonly_maps.num);
	answer.client = client_observer_describe(other);
	answer.num_fds = min_u32(other->readonly_maps.num - first, ASK_FDS);
	client_send(c, &answer, other->readonly_maps.fd + first);
}

/* Permits the same clients as ASK_MAPS. */
void client_observer_trace(struct client *c, const struct ask *ask)
{
	struct ask_answer answer = { .what = ASK_TRACE, .num_fds = ASK_TRACE_FDS };
	struct client *other = client_observer_find(c, ask->number);
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
	answer.traced.client = client_observer_describe(other);
	client_send(c, &answer, fd);
	for (u32 i = 0; i < ASK_TRACE_FDS; i++)
		close(fd[i]);
}

void client_observer_untrace(struct client *c, u32 prog_id)
{
	struct ask_answer answer = { .what = ASK_UNTRACE };

	for (struct client *of = c->broker->clients; of; of = of->next)
		if (of->prog_id == prog_id && client_observer_may_see(c, of))
			client_report_pass_all(of);
	answer.err = client_trace_end(c, prog_id, &answer.traced);
	client_send(c, &answer, NULL);
}

void client_observer_stop(struct client *c)
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
