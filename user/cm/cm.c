/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A CM as a whole: creation and destruction, dispatch of MADs to connections, time, output. */
#include <stdlib.h>

#include "internal.h"

int cm_create(const struct cm_options *o, struct cm **out)
{
	struct cm *cm;

	if (!o->capacity || !o->listeners || !o->id_first || o->capacity > 1u << 24 ||
	    o->id_count / 2 < o->capacity || o->id_first + (o->id_count - 1) < o->id_first)
		return -EINVAL;
	cm = calloc(1, sizeof(*cm));
	if (!cm)
		return -ENOMEM;
	cm->options = *o;
	ids_make(&cm->ids, o->id_first, o->id_count, o->random, o->random_arg);
	if (!o->incoming || o->incoming > o->capacity)
		cm->options.incoming = o->capacity - o->capacity / 4;
	if (!o->half_open)
		cm->options.half_open = o->capacity / 4 ? o->capacity / 4 : 1;
	cm->conn = calloc(o->capacity, sizeof(*cm->conn));
	cm->peer = calloc(o->capacity, sizeof(*cm->peer));
	cm->timers.at = calloc(o->capacity, sizeof(*cm->timers.at));
	cm->timers.place = calloc(o->capacity, sizeof(*cm->timers.place));
	cm->listener = calloc(o->listeners, sizeof(*cm->listener));
	if (!cm->conn || !cm->peer || !cm->timers.at || !cm->timers.place || !cm->listener ||
	    names_make(&cm->names, CM_HASH_LOAD * o->capacity, o->random(o->random_arg))) {
		cm_destroy(cm);
		return -ENOMEM;
	}
	*out = cm;
	return 0;
}

void cm_destroy(struct cm *cm)
{
	names_unmake(&cm->names);
	free(cm->listener);
	free(cm->timers.place);
	free(cm->timers.at);
	free(cm->peer);
	free(cm->conn);
	free(cm);
}

const struct cm_stats *cm_stats(const struct cm *cm)
{
	return &cm->stats;
}

enum cm_state cm_conn_state(const struct cm_conn *c)
{
	return c->state;
}

u32 cm_conn_id(const struct cm_conn *c)
{
	return c->id.number;
}

u64 cm_conn_timewait_ns(const struct cm_conn *c)
{
	return c->timewait_ns;
}

void cm_conn_set_context(struct cm_conn *c, void *context)
{
	c->context = context;
}

/* ---- MADs ---- */

/*
 * Returns the connection that a MAD is about, or NULL. Until the REP the peer's id is unknown, and
 * the tid identifies the answer to a REQ; later both ids must match. A REJ from a peer that timed
 * out may have only the peer's id.
 */
static struct cm_conn *input_find(const struct cm *cm, const struct cm_path *path,
				  const struct cm_mad *m)
{
	struct cm_conn *c;

	if (m->kind == CM_SIDR_REP) {
		c = conn_by_id(cm, m->local_id);
		return c && c->state == CM_SIDR_SENT ? c : NULL;
	}
	if (m->kind == CM_REJ && !m->remote_id)
		return conn_by_remote(cm, path, NAME_REMOTE, m->local_id);
	c = conn_by_id(cm, m->remote_id);
	if (!c || c->state == CM_REQ_SENT)
		return c;
	return c->remote.space == NAME_REMOTE && c->remote_id == m->local_id ? c : NULL;
}

static enum cm_drop input_lap(struct cm *cm, struct cm_conn *c, const struct cm_mad *m)
{
	struct cm_mad apr;

	cm_refuse(m, &apr);
	apr.apr.status = CM_APR_UNSUPPORTED;
	send_refusal(cm, &c->path, &apr);
	return CM_DROP_refused;
}

static enum cm_drop input_conn(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
			       u64 now_ns)
{
	struct cm_conn *c = input_find(cm, path, m);

	if (!c)
		return send_refusal_of(cm, path, m);
	if (!conn_has_path(c, path))
		return CM_DROP_path;
	switch (m->kind) {
	case CM_REP:
		return input_rep(cm, c, m, now_ns);
	case CM_RTU:
		return input_rtu(cm, c, m, now_ns);
	case CM_MRA:
		return input_mra(cm, c, m, now_ns);
	case CM_REJ:
		return input_rej(cm, c, m, now_ns);
	case CM_DREQ:
		return input_dreq(cm, c, m, now_ns);
	case CM_DREP:
		return input_drep(cm, c, m, now_ns);
	case CM_LAP:
		return input_lap(cm, c, m);
	case CM_SIDR_REP:
		return input_sidr_rep(cm, c, m, now_ns);
	default: /* APR: no LAP is ever sent */
		return CM_DROP_state;
	}
}

static enum cm_drop input_mad(struct cm *cm, const struct cm_path *path, const void *mad, u32 len,
			      u64 now_ns)
{
	struct cm_mad m;
	enum cm_drop drop = cm_mad_decode(&m, mad, len);

	if (drop)
		return drop;
	cm->stats.received[m.kind]++;
	if (!event_has_room(cm))
		return CM_DROP_busy;
	switch (m.kind) {
	case CM_REQ:
		return input_req(cm, path, &m, now_ns);
	case CM_SIDR_REQ:
		return input_sidr_req(cm, path, &m, now_ns);
	default:
		return input_conn(cm, path, &m, now_ns);
	}
}

enum cm_drop cm_input(struct cm *cm, const struct cm_path *path, const void *mad, u32 len,
		      u64 now_ns)
{
	enum cm_drop drop = input_mad(cm, path, mad, len, now_ns);

	cm->stats.dropped[drop]++;
	return drop;
}

/* ---- time ---- */

/* Ends a request that got no answer after all repetitions. */
static void expire_request(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	const struct cm_mad asked = { .kind = c->last_kind }, rej = conn_rej_timeout(cm, c);

	cm->stats.gave_up++;
	switch (c->state) {
	case CM_DREQ_SENT:
		event_put(cm, CM_EVENT_DISCONNECTED, c, NULL);
		conn_timewait(cm, c, now_ns);
		return;
	case CM_REP_SENT:
		event_put(cm, CM_EVENT_UNREACHABLE, c, &asked);
		conn_refuse(cm, c, &rej, now_ns);
		return;
	case CM_REQ_SENT:
		send_refusal(cm, &c->path, &rej);
		break;
	default: /* CM_SIDR_SENT */
		break;
	}
	event_put(cm, CM_EVENT_UNREACHABLE, c, &asked);
	conn_enter(cm, c, CM_IDLE);
}

static void expire_conn(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	switch (c->state) {
	case CM_TIMEWAIT:
		event_put(cm, CM_EVENT_TIMEWAIT_EXIT, c, NULL);
		conn_enter(cm, c, CM_IDLE);
		break;
	case CM_REFUSED:
		conn_enter(cm, c, CM_IDLE);
		break;
	default:
		if (!c->retries_left) {
			expire_request(cm, c, now_ns);
			break;
		}
		c->retries_left--;
		cm->stats.repeated++;
		conn_send_again(cm, c);
		conn_set_timer(cm, c, now_ns + c->interval_ns);
	}
}

u64 cm_deadline_ns(const struct cm *cm)
{
	return cm->timers.len ? cm->timers.at[0].at_ns : NSEC_NEVER;
}

void cm_expire(struct cm *cm, u64 now_ns)
{
	while (cm_deadline_ns(cm) <= now_ns && event_has_room(cm))
		expire_conn(cm, &cm->conn[cm->timers.at[0].slot], now_ns);
}

/* ---- output ---- */

/*
 * Order: the last MAD of each connection, in the order of the requests to send; before these,
 * refusals without a connection.
 */

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
