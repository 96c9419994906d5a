/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of connections: DREQ, DREP, time-wait. If both sides begin at once, each answers the
 * other, and either answer ends the connection.
 */
#include "internal.h"

void conn_timewait(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	conn_enter(cm, c, CM_TIMEWAIT);
	conn_set_timer(cm, c, now_ns + c->timewait_ns);
}

void conn_send_dreq(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	struct cm_mad dreq = *m;

	dreq.dreq.qpn = c->remote_qpn.number;
	conn_ask(cm, c, &dreq, CM_DREQ_SENT, now_ns);
}

int cm_disconnect(struct cm *cm, struct cm_conn *c, const void *data, u32 len, u64 now_ns)
{
	struct cm_mad m = conn_mad(c, c->state == CM_DREQ_RCVD ? CM_DREP : CM_DREQ);

	if (mad_set_data(&m, data, len))
		return -EINVAL;
	switch (c->state) {
	case CM_ESTABLISHED:
		m.tid = c->tid = cm->options.random(cm->options.random_arg);
		conn_send_dreq(cm, c, &m, now_ns);
		return 0;
	case CM_DREQ_RCVD:
		conn_timewait(cm, c, now_ns);
		conn_send(cm, c, &m);
		return 0;
	default:
		return -EINVAL;
	}
}

static void conn_send_drep(struct cm *cm, struct cm_conn *c, const struct cm_mad *dreq)
{
	struct cm_mad m = conn_mad(c, CM_DREP);

	m.tid = dreq->tid;
	conn_send(cm, c, &m);
}

enum cm_drop input_dreq(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	if (m->dreq.qpn != c->qpn)
		return CM_DROP_qpn;
	switch (c->state) {
	case CM_REP_RCVD:
	case CM_REP_SENT: /* the RTU was lost, or arrives later */
	case CM_ESTABLISHED:
		c->tid = m->tid;
		conn_enter(cm, c, CM_DREQ_RCVD);
		event_put(cm, CM_EVENT_DISCONNECT, c, m);
		return CM_DROP_none;
	case CM_DREQ_SENT:
		event_put(cm, CM_EVENT_DISCONNECTED, c, m);
		conn_timewait(cm, c, now_ns);
		conn_send_drep(cm, c, m);
		return CM_DROP_none;
	case CM_TIMEWAIT:
		if (c->last_kind == CM_DREP && c->tid == m->tid)
			conn_send_again(cm, c); /* with its private data */
		else
			conn_send_drep(cm, c, m);
		return CM_DROP_duplicate;
	case CM_DREQ_RCVD:
		return CM_DROP_duplicate;
	default:
		return send_refusal_of(cm, &c->path, m);
	}
}

enum cm_drop input_drep(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	if (c->state == CM_TIMEWAIT)
		return CM_DROP_duplicate;
	if (c->state != CM_DREQ_SENT)
		return CM_DROP_state;
	if (m->tid != c->tid)
		return CM_DROP_tid;
	event_put(cm, CM_EVENT_DISCONNECTED, c, m);
	conn_timewait(cm, c, now_ns);
	return CM_DROP_none;
}

/* ---- refused connections: REJ; connections that the owner closes early ---- */

int cm_reject(struct cm *cm, struct cm_conn *c, const struct cm_rej *rej, const void *data,
	      u32 len, u64 now_ns)
{
	struct cm_mad m = conn_mad(c, CM_REJ);

	if (c->state != CM_REQ_RCVD && c->state != CM_REP_RCVD && c->state != CM_REP_SENT)
		return -EINVAL;
	if (rej->info_len > CM_ARI_MAX || mad_set_data(&m, data, len))
		return -EINVAL;
	conn_taken(cm, c);
	m.rej = *rej;
	m.rej.about = c->state == CM_REQ_RCVD ? CM_ABOUT_REQ :
		      c->state == CM_REP_RCVD ? CM_ABOUT_REP :
						CM_ABOUT_OTHER;
	conn_refuse(cm, c, &m, now_ns);
	return 0;
}

struct cm_mad conn_rej_timeout(const struct cm *cm, const struct cm_conn *c)
{
	const u64 guid = htobe64(cm->options.ca_guid);
	struct cm_mad m = conn_mad(c, CM_REJ);

	m.rej = (struct cm_rej){ .about = CM_ABOUT_OTHER,
				 .reason = CM_REJ_TIMEOUT,
				 .info_len = sizeof(guid) };
	memcpy(m.rej.info, &guid, sizeof(guid));
	return m;
}

void conn_refuse_again(struct cm *cm, struct cm_conn *c, enum cm_about about)
{
	struct cm_mad m;

	if (c->last_kind != CM_REJ) {
		conn_send_again(cm, c);
		return;
	}
	cm_mad_decode(&m, c->last, sizeof(c->last));
	m.rej.about = about;
	/* a peer that repeats a REQ does not know our id, which a REJ for a time-out needs */
	if (about == CM_ABOUT_REQ && m.rej.reason == CM_REJ_TIMEOUT)
		m.rej.reason = CM_REJ_STALE_CONN;
	conn_send(cm, c, &m);
}

/* The peer has timed out: ignores a late REQ of it for some time. */
static void conn_forget_later(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	conn_send_forget(cm, c);
	c->last_kind = 0;
	conn_enter(cm, c, CM_REFUSED);
	conn_set_timer(cm, c, now_ns + c->refused_ns);
}

/*
 * A REJ of our REQ is matched by its tid, as a stateless peer has no id. In other states
 * input_find() has checked the ids.
 */
enum cm_drop input_rej(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	switch (c->state) {
	case CM_REQ_SENT:
		if (m->tid != c->tid)
			return CM_DROP_tid;
		if (m->rej.reason == CM_REJ_INVALID_SERVICE_ID && active_asks_again(cm, c, now_ns))
			return CM_DROP_none;
		event_put(cm, CM_EVENT_REJECTED, c, m);
		/* the peer has an older connection of this QP: let the QP rest */
		if (m->rej.reason == CM_REJ_STALE_CONN)
			conn_timewait(cm, c, now_ns);
		else
			conn_enter(cm, c, CM_IDLE);
		return CM_DROP_none;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
		/* It stays in the backlog: the owner still has the request or its event. */
		event_put(cm, CM_EVENT_REJECTED, c, m);
		conn_forget_later(cm, c, now_ns);
		return CM_DROP_none;
	case CM_REP_RCVD:
		event_put(cm, CM_EVENT_REJECTED, c, m);
		conn_enter(cm, c, CM_IDLE);
		return CM_DROP_none;
	case CM_ESTABLISHED: /* the peer did not complete it */
		event_put(cm, CM_EVENT_REJECTED, c, m);
		conn_timewait(cm, c, now_ns);
		return CM_DROP_none;
	case CM_DREQ_SENT:
		event_put(cm, CM_EVENT_DISCONNECTED, c, m);
		conn_timewait(cm, c, now_ns);
		return CM_DROP_none;
	default:
		return CM_DROP_state;
	}
}

void conn_part(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	struct cm_mad m;

	switch (c->state) {
	case CM_IDLE:
	case CM_SIDR_SENT:
		conn_enter(cm, c, CM_IDLE);
		break;
	case CM_REQ_SENT:
		m = conn_rej_timeout(cm, c);
		send_refusal(cm, &c->path, &m);
		conn_enter(cm, c, CM_IDLE);
		break;
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
	case CM_REP_SENT:
		cm_reject(cm, c, &(struct cm_rej){ .reason = CM_REJ_CONSUMER_DEFINED }, NULL, 0,
			  now_ns);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_RCVD:
		cm_disconnect(cm, c, NULL, 0, now_ns);
		break;
	case CM_SIDR_RCVD:
		cm_sidr_reply(cm, c, &(struct cm_sidr_rep){ .status = CM_SIDR_REJECTED }, NULL, 0,
			      now_ns);
		break;
	default: /* freed when its timer expires */
		break;
	}
}

/* Dispatch of MADs among CMs, and answers that need no connection. Stateless. */

enum cm_names cm_mad_names(const struct cm_mad *m, u32 *id, u64 *service_id)
{
	switch (m->kind) {
	case CM_REQ:
		*service_id = m->req.service_id;
		return CM_NAMES_SERVICE;
	case CM_SIDR_REQ:
		*service_id = m->sidr_req.service_id;
		return CM_NAMES_SERVICE;
	case CM_SIDR_REP:
		*id = m->local_id;
		return CM_NAMES_ID;
	case CM_REJ:
		/* an active side that timed out did not learn our id */
		if (!m->remote_id)
			return CM_NAMES_PEER;
		*id = m->remote_id;
		return CM_NAMES_ID;
	default:
		*id = m->remote_id;
		return CM_NAMES_ID;
	}
}

struct cm_mad refusal_rej(const struct cm_mad *m, enum cm_reason reason)
{
	const enum cm_about about = m->kind == CM_REQ ? CM_ABOUT_REQ :
				    m->kind == CM_REP ? CM_ABOUT_REP :
							CM_ABOUT_OTHER;

	return (struct cm_mad){ .kind = CM_REJ,
				.tid = m->tid,
				.local_id = m->remote_id,
				.remote_id = m->local_id,
				.rej = { .about = about, .reason = reason } };
}

bool cm_refuse(const struct cm_mad *m, struct cm_mad *reply)
{
	*reply = (struct cm_mad){ .tid = m->tid,
				  .local_id = m->remote_id,
				  .remote_id = m->local_id };
	switch (m->kind) {
	case CM_REQ:
		*reply = refusal_rej(m, CM_REJ_INVALID_SERVICE_ID);
		return true;
	case CM_REP:
		*reply = refusal_rej(m, CM_REJ_INVALID_COMM_ID);
		return true;
	case CM_DREQ:
		reply->kind = CM_DREP;
		return true;
	case CM_LAP:
		reply->kind = CM_APR;
		reply->apr.status = CM_APR_INVALID_COMM_ID;
		return true;
	case CM_SIDR_REQ:
		*reply = (struct cm_mad){ .kind = CM_SIDR_REP,
					  .tid = m->tid,
					  .local_id = m->local_id,
					  .sidr_rep = { .service_id = m->sidr_req.service_id,
							.status = CM_SIDR_UNSUPPORTED } };
		return true;
	default:
		return false;
	}
}
