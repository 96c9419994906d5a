/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "client.h"
#include "client_number.h"
#include "client_rights.h"
#include "held.h"

void client_rights_challenge(struct client *c)
{
	struct ask_answer answer = { .what = ASK_PROVE };

	do
		answer.challenge.nonce = client_number_random(c->broker);
	while (!answer.challenge.nonce);
	answer.challenge.first_port =
		proof_first_port(c->broker->proof_way, min_u32(mux_first_port(&c->broker->mux),
							       mux_read_first_port()));
	c->challenge = answer.challenge;
	client_send(c, &answer, NULL);
}

/* Counts the connection for its user with CAP_NET_ADMIN. Cannot fail: it has just freed one. */
static void client_rights_count_as_admin(struct client *c)
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
static int client_rights_read(const struct client *c, const struct ask_challenge *challenge,
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

int client_rights_prove(struct client *c, u32 port)
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
	err = client_rights_read(c, &challenge, port, &rights);
	if (err || !rights.here)
		return err ? err : -ENONET;
	if (rights.admin && !c->rights.admin)
		client_rights_count_as_admin(c);
	/* CAP_NET_ADMIN stays once it is proved, like the rights of a descriptor */
	if (!c->rights.admin)
		c->rights = rights;
	return 0;
}
