/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Establishing connections: REQ, REP, RTU, and MRA for a side that needs longer; listeners; service
 * id resolution (SIDR).
 */
#include "internal.h"

#define PKEY_DEFAULT	0x7fff
#define PKEY_MEMBERSHIP 0x8000
#define MTU_MAX		5
#define FAILOVER_UNSUPPORTED 1
/* LIDs of a path without LIDs. */
#define LID_PERMISSIVE	0xffff

static u64 clamp(u64 v, u64 least, u64 most)
{
	return v < least ? least : min_u64(v, most);
}

/* Returns the time between repetitions of a request that the peer may take 2^exponent to answer. */
static u64 interval_ns(const struct cm_path *path, u8 exponent)
{
	return 2 * cm_time_ns(path->life) + cm_time_ns(exponent);
}

/* Returns the time in which the peer may still repeat its request. */
static u64 refused_ns(const struct cm_path *path, u8 exponent, u8 max_retries)
{
	return min_u64((max_retries + 1) * interval_ns(path, exponent), CM_REFUSED_MAX_NS);
}

/* ---- active side ---- */

int active_begin(struct cm *cm, const struct cm_path *path, struct cm_mad *m, const void *data,
		 u32 len, struct cm_conn **out)
{
	struct cm_conn *c;

	if (mad_set_data(m, data, len))
		return -EINVAL;
	c = conn_new(cm, path, false);
	if (!c)
		return -ENOBUFS;
	c->tid = m->tid = cm->options.random(cm->options.random_arg);
	m->local_id = c->id.number;
	*out = c;
	return 0;
}

void cm_ask_again(struct cm_conn *c, u8 times)
{
	c->asks_left = times;
	c->ask_again_ns = CM_ASK_AGAIN_NS;
}

bool active_asks_again(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	if (!c->asks_left)
		return false;
	c->asks_left--;
	/* the peer is alive: count its silence from now on */
	c->retries_left = c->max_retries + 1;
	conn_set_timer(cm, c, now_ns + c->ask_again_ns);
	c->ask_again_ns *= 2;
	return true;
}

int cm_connect(struct cm *cm, const struct cm_path *path, const struct cm_req *req,
	       const void *data, u32 len, void *context, u64 now_ns, struct cm_conn **out)
{
	struct cm_mad m = { .kind = CM_REQ };
	struct cm_conn *c;
	int err = active_begin(cm, path, &m, data, len, &c);

	if (err)
		return err;
	c->context = context;
	c->service_id = req->service_id;
	c->qpn = req->qpn & 0xffffff;
	c->max_retries = req->max_retries & 15;
	c->interval_ns = interval_ns(path, req->remote_response_timeout);
	c->refused_ns = refused_ns(path, req->local_response_timeout, c->max_retries);
	c->timewait_ns = min_u64(cm_time_ns(req->primary.ack_timeout), CM_WAIT_MAX_NS);
	m.req = *req;
	m.attr_mod = req->ece_options;
	m.req.ca_guid = cm->options.ca_guid;
	m.req.primary = (struct cm_mad_path){
		.local = path->local,
		.remote = path->remote,
		.local_lid = LID_PERMISSIVE,
		.remote_lid = LID_PERMISSIVE,
		.flow_label = path->flow_label,
		.traffic_class = path->traffic_class,
		.hop_limit = path->hop_limit,
		.sl = path->sl,
		.ack_timeout = req->primary.ack_timeout,
	};
	conn_ask(cm, c, &m, CM_REQ_SENT, now_ns);
	*out = c;
	return 0;
}

/* The peer's QP or id is of a connection known here: one of the two has ended. */
static void rep_is_stale(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	struct cm_mad rej = refusal_rej(m, CM_REJ_STALE_CONN);

	event_put(cm, CM_EVENT_REJECTED, c, &rej);
	send_refusal(cm, &c->path, &rej);
	conn_enter(cm, c, CM_IDLE);
}

enum cm_drop input_rep(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	const struct cm_conn *old;

	if (m->tid != c->tid)
		return CM_DROP_tid;
	switch (c->state) {
	case CM_REQ_SENT:
		break;
	case CM_REP_RCVD:
	case CM_ESTABLISHED:
	case CM_REFUSED:
		if (c->passive)
			return CM_DROP_state;
		conn_send_again(cm, c); /* the MRA, RTU or REJ was lost, or is late */
		return CM_DROP_duplicate;
	default:
		return CM_DROP_state;
	}
	old = conn_by_remote(cm, &c->path, NAME_REMOTE, m->local_id);
	if ((old && old->state != CM_TIMEWAIT) ||
	    conn_by_remote(cm, &c->path, NAME_QPN, m->rep.qpn)) {
		rep_is_stale(cm, c, m, now_ns);
		return CM_DROP_none;
	}
	conn_set_remote(cm, c, NAME_REMOTE, m->local_id);
	conn_set_remote_qpn(cm, c, m->rep.qpn);
	conn_enter(cm, c, CM_REP_RCVD);
	c->last_kind = 0; /* the REQ is no longer repeated */
	conn_send_forget(cm, c);
	event_put(cm, CM_EVENT_REPLY, c, m);
	return CM_DROP_none;
}

int cm_ready(struct cm *cm, struct cm_conn *c, const void *data, u32 len, u64 now_ns)
{
	struct cm_mad m = conn_mad(c, CM_RTU);

	if (c->state != CM_REP_RCVD || mad_set_data(&m, data, len))
		return -EINVAL;
	conn_enter(cm, c, CM_ESTABLISHED);
	conn_send(cm, c, &m);
	return 0;
}

/* ---- listeners ---- */

/*
 * Common checks of REQ and SIDR_REQ: an IP header that agrees with the packet, a listener with
 * room, a peer below its limits; and repeated requests.
 */

static void refuse_with(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
			u16 reason, enum cm_sidr_status status)
{
	struct cm_mad reply;

	cm_refuse(m, &reply);
	if (m->kind == CM_REQ)
		reply.rej.reason = reason;
	else
		reply.sidr_rep.status = status;
	send_refusal(cm, path, &reply);
}

/*
 * With RoCEv2 a packet has the addresses of its path. A loopback address stands for any local
 * address of a node.
 */
static bool ip_agrees(const struct cm_ip_header *ip, const struct cm_path *path)
{
	if (cm_is_loopback(&ip->source) && cm_is_loopback(&ip->destination))
		return gid_equal(&path->local, &path->remote);
	return gid_equal(&ip->source, &path->remote) && gid_equal(&ip->destination, &path->local);
}

static const struct gid no_address;

/* Returns how well the listener matches: 0 not at all. */
static u32 listener_rank(const struct cm_listener *l, u64 service_id, const struct gid *address)
{
	const u8 family = gid_is_ipv4(address) ? CM_IPV4 : CM_IPV6;

	if (!l->used || l->service.id != service_id)
		return 0;
	if (!gid_equal(&l->service.address, &no_address))
		return gid_equal(&l->service.address, address) ? 3 : 0;
	if (!(l->service.families & family))
		return 0;
	return l->service.families == family ? 2 : 1;
}

static struct cm_listener *listener_find(struct cm *cm, u64 service_id, const struct gid *address)
{
	struct cm_listener *best = NULL;
	u32 best_rank = 0;

	for (u32 i = 0; i < cm->options.listeners; i++) {
		const u32 rank = listener_rank(&cm->listener[i], service_id, address);

		if (rank > best_rank) {
			best = &cm->listener[i];
			best_rank = rank;
		}
	}
	return best;
}

static bool listener_is_full(const struct cm_listener *l)
{
	return l->service.backlog && l->waiting >= l->service.backlog;
}

/* Returns how to answer a request that was not seen before; CM_DROP_none: admitted. */
static enum cm_drop passive_admit(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
				  u64 service_id, struct cm_event *event)
{
	const struct gid *address = &path->local;
	u16 reason;

	memset(event, 0, sizeof(*event));
	if (cm_service_is_ip(service_id)) {
		if (!cm_ip_header_get(&event->ip, m->data)) {
			refuse_with(cm, path, m, CM_REJ_CONSUMER_DEFINED, CM_SIDR_REJECTED);
			return CM_DROP_refused;
		}
		if (!ip_agrees(&event->ip, path)) {
			refuse_with(cm, path, m, CM_REJ_INVALID_GID, CM_SIDR_REJECTED);
			return CM_DROP_refused;
		}
		address = &event->ip.destination;
	}
	event->listener = listener_find(cm, service_id, address);
	if (!event->listener)
		return send_refusal_of(cm, path, m);
	if (listener_is_full(event->listener))
		return CM_DROP_backlog;
	if (conn_peer_is_full(cm, path))
		return CM_DROP_half_open;
	if (!conn_admits(cm)) {
		refuse_with(cm, path, m, CM_REJ_NO_RESOURCES, CM_SIDR_REJECTED);
		return CM_DROP_resources;
	}
	reason = m->kind == CM_REQ && cm->options.reject ?
			 cm->options.reject(cm->options.reject_arg) :
			 0;
	if (reason) {
		refuse_with(cm, path, m, reason, CM_SIDR_REJECTED);
		return CM_DROP_refused;
	}
	event->path = *path;
	return CM_DROP_none;
}

/* Creates the connection of an admitted request, with its event. */
static struct cm_conn *passive_begin(struct cm *cm, const struct cm_mad *m, struct cm_event *event)
{
	struct cm_conn *c = conn_new(cm, &event->path, true);
	const bool is_ip = cm_service_is_ip(m->kind == CM_REQ ? m->req.service_id :
								m->sidr_req.service_id);
	struct cm_event *e;

	if (!c)
		return NULL;
	c->tid = m->tid;
	c->context = event->listener->service.context;
	c->listener = event->listener;
	c->listener->waiting++;
	e = event_put(cm, m->kind == CM_REQ ? CM_EVENT_REQUEST : CM_EVENT_SIDR_REQUEST, c, m);
	e->ip = event->ip;
	e->listener = event->listener;
	if (is_ip) {
		memmove(e->mad.data, e->mad.data + CM_IP_HEADER_BYTES,
			CM_DATA_MAX - CM_IP_HEADER_BYTES);
		memset(e->mad.data + CM_DATA_MAX - CM_IP_HEADER_BYTES, 0, CM_IP_HEADER_BYTES);
	}
	return c;
}

/*
 * Answers a request that was seen before, and drops it. CM_DROP_none: it is new, or replaces an
 * older one. space: NAME_REMOTE, NAME_SIDR.
 */
static enum cm_drop passive_again(struct cm *cm, const struct cm_path *path, u32 space,
				  const struct cm_mad *m)
{
	struct cm_conn *c = conn_by_remote(cm, path, space, m->local_id);
	struct cm_mad stale;

	if (!c)
		return CM_DROP_none;
	if (!conn_has_path(c, path))
		return CM_DROP_path;
	if (m->kind == CM_REQ && c->state == CM_TIMEWAIT && m->req.qpn != c->remote_qpn.number)
		return CM_DROP_none; /* the peer reuses its id for a new connection */
	if (!c->passive)
		return CM_DROP_state;
	switch (c->state) {
	case CM_REFUSED:
		if (m->tid != c->tid) {
			conn_enter(cm, c, CM_IDLE);
			return CM_DROP_none;
		}
		conn_refuse_again(cm, c, CM_ABOUT_REQ);
		return CM_DROP_duplicate;
	case CM_TIMEWAIT:
		stale = refusal_rej(m, CM_REJ_STALE_CONN);
		send_refusal(cm, &c->path, &stale);
		return CM_DROP_duplicate;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_SIDR_RCVD:
		if (m->tid != c->tid)
			return CM_DROP_tid;
		break;
	default:
		return CM_DROP_duplicate;
	}
	conn_send_again(cm, c);
	return CM_DROP_duplicate;
}

/* Listeners: selecting one for a request, and counting the requests that wait there. */

static bool service_equal(const struct cm_service *a, const struct cm_service *b)
{
	return a->id == b->id && a->families == b->families && gid_equal(&a->address, &b->address);
}

int cm_listen(struct cm *cm, const struct cm_service *service, struct cm_listener **out)
{
	struct cm_listener *unused = NULL;

	if (!service->families || service->families & ~(CM_IPV4 | CM_IPV6))
		return -EINVAL;
	for (u32 i = 0; i < cm->options.listeners; i++) {
		struct cm_listener *l = &cm->listener[i];

		if (!l->used)
			unused = unused ? unused : l;
		else if (service_equal(&l->service, service))
			return -EADDRINUSE;
	}
	if (!unused)
		return -ENOBUFS;
	*unused = (struct cm_listener){ .service = *service, .used = true };
	*out = unused;
	return 0;
}

void cm_unlisten(struct cm *cm, struct cm_listener *l, u64 now_ns)
{
	for (u32 i = 0; i < cm->num_conns; i++) {
		struct cm_conn *c = &cm->conn[i];

		if (c->listener != l)
			continue;
		if (c->events)
			cm_close(cm, c, now_ns);
		else
			conn_taken(cm, c);
	}
	l->used = false;
}

void cm_take(struct cm *cm, struct cm_conn *c)
{
	conn_taken(cm, c);
}

/* ---- passive side ---- */

/* Returns the error of a REQ by itself; 0: none. */
static enum cm_reason req_check(const struct cm_path *path, const struct cm_req *r)
{
	if (!gid_equal(&r->primary.local, &path->remote) ||
	    !gid_equal(&r->primary.remote, &path->local))
		return CM_REJ_INVALID_GID;
	if (r->transport == CM_TRANSPORT_RD ||
	    (r->transport == CM_TRANSPORT_EXTENDED && r->extended_transport != CM_EXTENDED_XRC))
		return CM_REJ_INVALID_TRANSPORT;
	if (!r->mtu || r->mtu > MTU_MAX)
		return CM_REJ_INVALID_MTU;
	if ((r->pkey | PKEY_MEMBERSHIP) != (PKEY_DEFAULT | PKEY_MEMBERSHIP))
		return CM_REJ_UNSUPPORTED;
	return 0;
}

/*
 * The peer's new connection uses a QP of another one known here, which has therefore ended. If that
 * one was established, its owner learns it by a disconnect.
 */
static void req_is_stale(struct cm *cm, const struct cm_path *path, struct cm_conn *old,
			 const struct cm_mad *m, u64 now_ns)
{
	const struct cm_mad rej = refusal_rej(m, CM_REJ_STALE_CONN);
	struct cm_mad dreq;

	send_refusal(cm, path, &rej);
	if (old->state != CM_ESTABLISHED)
		return;
	old->tid = cm->options.random(cm->options.random_arg);
	dreq = conn_mad(old, CM_DREQ);
	conn_send_dreq(cm, old, &dreq, now_ns);
}

static void conn_take_req(struct cm *cm, struct cm_conn *c, const struct cm_mad *m)
{
	static const struct gid no_gid;

	c->service_id = m->req.service_id;
	c->max_retries = m->req.max_retries;
	c->interval_ns = clamp(interval_ns(&c->path, m->req.local_response_timeout),
			       CM_INTERVAL_MIN_NS, CM_WAIT_MAX_NS);
	c->refused_ns = refused_ns(&c->path, m->req.remote_response_timeout, c->max_retries);
	c->timewait_ns = min_u64(cm_time_ns(m->req.primary.ack_timeout), CM_WAIT_MAX_NS);
	c->has_alternate = m->req.alternate.local_lid ||
			   !gid_equal(&m->req.alternate.local, &no_gid);
	conn_set_remote(cm, c, NAME_REMOTE, m->local_id);
	conn_set_remote_qpn(cm, c, m->req.qpn);
	conn_enter(cm, c, CM_REQ_RCVD);
}

enum cm_drop input_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
		       u64 now_ns)
{
	const enum cm_drop again = passive_again(cm, path, NAME_REMOTE, m);
	enum cm_reason reason;
	struct cm_event event;
	struct cm_conn *c;
	struct cm_mad rej;
	enum cm_drop drop;

	if (again)
		return again;
	reason = req_check(path, &m->req);
	if (reason) {
		rej = refusal_rej(m, reason);
		send_refusal(cm, path, &rej);
		return CM_DROP_refused;
	}
	c = conn_by_remote(cm, path, NAME_QPN, m->req.qpn);
	if (c) {
		req_is_stale(cm, path, c, m, now_ns);
		return CM_DROP_refused;
	}
	drop = passive_admit(cm, path, m, m->req.service_id, &event);
	if (drop)
		return drop;
	c = passive_begin(cm, m, &event);
	if (!c) {
		rej = refusal_rej(m, CM_REJ_NO_RESOURCES);
		send_refusal(cm, path, &rej);
		return CM_DROP_resources;
	}
	conn_take_req(cm, c, m);
	return CM_DROP_none;
}

int cm_accept(struct cm *cm, struct cm_conn *c, const struct cm_rep *rep, const void *data,
	      u32 len, u64 now_ns)
{
	struct cm_mad m = conn_mad(c, CM_REP);

	if (c->state != CM_REQ_RCVD || mad_set_data(&m, data, len))
		return -EINVAL;
	conn_taken(cm, c);
	m.rep = *rep;
	m.attr_mod = rep->ece_options;
	m.rep.ca_guid = cm->options.ca_guid;
	m.rep.failover = c->has_alternate ? FAILOVER_UNSUPPORTED : 0;
	c->qpn = rep->qpn & 0xffffff;
	conn_ask(cm, c, &m, CM_REP_SENT, now_ns);
	return 0;
}

static void conn_established(struct cm *cm, struct cm_conn *c, const struct cm_mad *m)
{
	conn_enter(cm, c, CM_ESTABLISHED);
	event_put(cm, CM_EVENT_ESTABLISHED, c, m);
}

enum cm_drop input_rtu(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	if (!c->passive)
		return CM_DROP_state;
	switch (c->state) {
	case CM_REP_SENT:
		if (m->tid != c->tid)
			return CM_DROP_tid;
		conn_established(cm, c, m);
		return CM_DROP_none;
	case CM_REFUSED:
		conn_refuse_again(cm, c, CM_ABOUT_OTHER); /* the REJ was lost or is late */
		return CM_DROP_duplicate;
	case CM_ESTABLISHED:
		return CM_DROP_duplicate;
	default:
		return CM_DROP_state;
	}
}

int cm_establish(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	if (c->state != CM_REP_SENT || !event_has_room(cm))
		return -EINVAL;
	conn_established(cm, c, NULL);
	return 0;
}

/* ---- MRA ---- */

/* Keeps an MRA for a peer that repeats its MAD, and keeps a later refusal longer. */
static int delay_keep(struct cm_conn *c, u8 service_timeout, const void *data, u32 len)
{
	struct cm_mad m = conn_mad(c, CM_MRA);

	if ((c->state != CM_REQ_RCVD && c->state != CM_REP_RCVD) || mad_set_data(&m, data, len))
		return -EINVAL;
	m.mra.about = c->passive ? CM_ABOUT_REQ : CM_ABOUT_REP;
	m.mra.service_timeout = service_timeout;
	c->refused_ns = min_u64(c->refused_ns + cm_time_ns(service_timeout), CM_REFUSED_MAX_NS);
	conn_keep(c, &m);
	return 0;
}

int cm_delay(struct cm *cm, struct cm_conn *c, u8 service_timeout, const void *data, u32 len,
	     u64 now_ns)
{
	const int err = delay_keep(c, service_timeout, data, len);

	if (!err)
		conn_send_again(cm, c);
	return err;
}

int cm_prepare_delay(struct cm *cm, struct cm_conn *c, u8 service_timeout)
{
	return delay_keep(c, service_timeout, NULL, 0);
}

enum cm_drop input_mra(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns)
{
	const u64 service_ns = min_u64(cm_time_ns(m->mra.service_timeout), CM_WAIT_MAX_NS);

	if (!(c->state == CM_REQ_SENT && m->mra.about == CM_ABOUT_REQ) &&
	    !(c->state == CM_REP_SENT && m->mra.about == CM_ABOUT_REP))
		return CM_DROP_state;
	if (m->tid != c->tid)
		return CM_DROP_tid;
	conn_set_timer(cm, c, now_ns + service_ns + c->interval_ns);
	event_put(cm, CM_EVENT_DELAYED, c, m);
	return CM_DROP_none;
}

/* ---- SIDR: one request, one reply, which is kept for repetition ---- */

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
