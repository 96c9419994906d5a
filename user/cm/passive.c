/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Common checks of REQ and SIDR_REQ: an IP header that agrees with the packet, a listener with
 * room, a peer below its limits; and repeated requests.
 */
#include "internal.h"

static void refuse_with(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
			enum cm_reason reason, enum cm_sidr_status status)
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

enum cm_drop passive_admit(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
			   u64 service_id, struct cm_event *event)
{
	const struct gid *address = &path->local;

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
	event->path = *path;
	return CM_DROP_none;
}

struct cm_conn *passive_begin(struct cm *cm, const struct cm_mad *m, struct cm_event *event)
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

enum cm_drop passive_again(struct cm *cm, const struct cm_path *path, u32 space,
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

static const struct gid no_address;

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

struct cm_listener *listener_find(struct cm *cm, u64 service_id, const struct gid *address)
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

bool listener_is_full(const struct cm_listener *l)
{
	return l->service.backlog && l->waiting >= l->service.backlog;
}
