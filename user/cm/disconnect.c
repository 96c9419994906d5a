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
