/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending: the last MAD of each connection, in the order of the requests to send; before these,
 * refusals without a connection.
 */
#include "internal.h"

int mad_set_data(struct cm_mad *m, const void *data, u32 len)
{
	if (len > cm_data_room(m->kind))
		return -EINVAL;
	if (len)
		memcpy(m->data, data, len);
	return 0;
}

struct cm_mad conn_mad(const struct cm_conn *c, enum cm_kind kind)
{
	return (struct cm_mad){ .kind = kind,
				.tid = c->tid,
				.local_id = c->id.number,
				.remote_id = c->remote_id };
}

void conn_send_again(struct cm *cm, struct cm_conn *c)
{
	if (!c->last_kind || c->send_pending)
		return;
	c->send_pending = true;
	c->next_send = NULL;
	if (cm->first_send)
		cm->last_send->next_send = c;
	else
		cm->first_send = c;
	cm->last_send = c;
}

void conn_keep(struct cm_conn *c, const struct cm_mad *m)
{
	cm_mad_encode(c->last, m);
	c->last_kind = (u8)m->kind;
}

void conn_send(struct cm *cm, struct cm_conn *c, const struct cm_mad *m)
{
	conn_keep(c, m);
	conn_send_again(cm, c);
}

/* Removes the connection from the queue; no peer waits for its MAD. */
void conn_send_forget(struct cm *cm, struct cm_conn *c)
{
	struct cm_conn **at = &cm->first_send, *before = NULL;

	if (!c->send_pending)
		return;
	for (; *at != c; at = &(*at)->next_send)
		before = *at;
	*at = c->next_send;
	if (cm->last_send == c)
		cm->last_send = before;
	c->send_pending = false;
}

void conn_ask(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, enum cm_state state,
	      u64 now_ns)
{
	conn_enter(cm, c, state);
	c->retries_left = c->max_retries;
	conn_send(cm, c, m);
	conn_set_timer(cm, c, now_ns + c->interval_ns);
}

void conn_refuse(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	conn_enter(cm, c, CM_REFUSED);
	conn_send(cm, c, m);
	conn_set_timer(cm, c, now_ns + c->refused_ns);
}

void send_refusal(struct cm *cm, const struct cm_path *path, const struct cm_mad *m)
{
	struct cm_send *s = &cm->refusal[cm->refusals_put % CM_REFUSALS];

	if (cm->refusals_put - cm->refusals_got == CM_REFUSALS) {
		cm->stats.unsent++;
		return;
	}
	cm->refusals_put++;
	s->path = *path;
	cm_mad_encode(s->mad, m);
}

enum cm_drop send_refusal_of(struct cm *cm, const struct cm_path *path, const struct cm_mad *m)
{
	struct cm_mad reply;

	if (!cm_refuse(m, &reply))
		return CM_DROP_state;
	send_refusal(cm, path, &reply);
	return CM_DROP_refused;
}

static bool output_refusal(struct cm *cm, struct cm_send *send)
{
	if (cm->refusals_got == cm->refusals_put)
		return false;
	*send = cm->refusal[cm->refusals_got++ % CM_REFUSALS];
	return true;
}

static bool output_conn(struct cm *cm, struct cm_send *send)
{
	struct cm_conn *c = cm->first_send;

	if (!c)
		return false;
	cm->first_send = c->next_send;
	c->send_pending = false;
	send->path = c->path;
	memcpy(send->mad, c->last, sizeof(send->mad));
	return true;
}

bool cm_output(struct cm *cm, struct cm_send *send)
{
	if (!output_refusal(cm, send) && !output_conn(cm, send))
		return false;
	cm->stats.sent[send->mad[17]]++; /* the attribute */
	return true;
}
