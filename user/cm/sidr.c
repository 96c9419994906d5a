/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service id resolution: one request, one reply; the reply is kept for repetition. */
#include "internal.h"

/* A SIDR_REQ does not say how long and how often its sender waits: assume the kernel's values. */
#define SIDR_RESPONSE_TIMEOUT 20
#define SIDR_REQUESTS	      16

static u64 sidr_interval_ns(const struct cm_path *path, u8 response_timeout)
{
	return 2 * cm_time_ns(path->life) + cm_time_ns(response_timeout);
}

int cm_sidr_request(struct cm *cm, const struct cm_path *path, const struct cm_sidr_req *req,
		    const struct cm_times *times, const void *data, u32 len, void *context,
		    u64 now_ns, struct cm_conn **out)
{
	struct cm_mad m = { .kind = CM_SIDR_REQ };
	struct cm_conn *c;
	int err = active_begin(cm, path, &m, data, len, &c);

	if (err)
		return err;
	c->context = context;
	c->service_id = req->service_id;
	c->max_retries = times->max_retries & 15;
	c->interval_ns = sidr_interval_ns(path, times->response_timeout);
	m.sidr_req = *req;
	conn_ask(cm, c, &m, CM_SIDR_SENT, now_ns);
	*out = c;
	return 0;
}

enum cm_drop input_sidr_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
			    u64 now_ns)
{
	const enum cm_drop again = passive_again(cm, path, NAME_SIDR, m);
	struct cm_event event;
	struct cm_conn *c;
	enum cm_drop drop;

	if (again)
		return again;
	drop = passive_admit(cm, path, m, m->sidr_req.service_id, &event);
	if (drop)
		return drop;
	c = passive_begin(cm, m, &event);
	if (!c)
		return CM_DROP_backlog;
	c->service_id = m->sidr_req.service_id;
	c->refused_ns = SIDR_REQUESTS * sidr_interval_ns(path, SIDR_RESPONSE_TIMEOUT);
	conn_set_remote(cm, c, NAME_SIDR, m->local_id);
	conn_enter(cm, c, CM_SIDR_RCVD);
	return CM_DROP_none;
}

int cm_sidr_reply(struct cm *cm, struct cm_conn *c, const struct cm_sidr_rep *rep,
		  const void *data, u32 len, u64 now_ns)
{
	struct cm_mad m = { .kind = CM_SIDR_REP, .tid = c->tid, .local_id = c->remote_id };

	if (c->state != CM_SIDR_RCVD || rep->info_len > CM_ARI_MAX ||
	    rep->status >= CM_SIDR_STATUS_END || mad_set_data(&m, data, len))
		return -EINVAL;
	conn_taken(cm, c);
	m.sidr_rep = *rep;
	m.sidr_rep.service_id = c->service_id;
	conn_refuse(cm, c, &m, now_ns);
	return 0;
}

enum cm_drop input_sidr_rep(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	if (m->tid != c->tid)
		return CM_DROP_tid;
	if (m->sidr_rep.service_id != c->service_id)
		return CM_DROP_state;
	if (m->sidr_rep.status == CM_SIDR_UNSUPPORTED && active_asks_again(cm, c, now_ns))
		return CM_DROP_none;
	event_put(cm, CM_EVENT_SIDR_REPLY, c, m);
	conn_enter(cm, c, CM_IDLE);
	return CM_DROP_none;
}
