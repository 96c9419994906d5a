/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notes connections of the broker's clients from the MADs that make and end them. No packet is
 * looked up here: the broker reads the notes when a client has died, and ends its connections.
 */
#ifndef BPF_CONN_H
#define BPF_CONN_H

#include "mad.h"
#include "maps_broker.h"
#include "parse.h"
#include "steer.h"

static __always_inline void conn_asked_key(struct xroce_asked_key *key, const union address *peer,
					   __be32 id, __u32 kind)
{
	*(union address *)key->gid = *peer;
	key->id = bpf_ntohl(id);
	key->kind = kind;
}

/* Returns the client that received the MAD, or NULL if it has ended: its place may be reused. */
static __always_inline const struct xroce_cm_client *conn_owner(const struct xroce_asked *asked)
{
	const __u32 place = asked->place;
	const struct xroce_cm_client *owner = bpf_map_lookup_elem(&xroce_cm_client, &place);

	return owner && owner->serial == asked->serial ? owner : NULL;
}

/* Returns the peer's MAD of a kind and id, or NULL if it is unknown or was not for the client. */
static __always_inline struct xroce_asked *conn_asked(const union address *peer, __be32 id,
						      __u32 kind, __u32 client)
{
	const struct xroce_cm_client *owner;
	struct xroce_asked_key key;
	struct xroce_asked *asked;

	conn_asked_key(&key, peer, id, kind);
	asked = bpf_map_lookup_elem(&xroce_asked, &key);
	owner = asked ? conn_owner(asked) : NULL;
	return owner && owner->client == client ? asked : NULL;
}

struct conn_ends {
	const union address *own, *peer;
	__be32 own_id, peer_id;
};

static __always_inline void conn_note(const struct conn_ends *e, __u64 serial, __u32 qpn)
{
	const __u32 id = bpf_ntohl(e->own_id);
	struct xroce_conn conn = { .serial = serial, .id = bpf_ntohl(e->peer_id), .qpn = qpn };

	*(union address *)conn.gid = *e->peer;
	*(union address *)conn.own_gid = *e->own;
	bpf_map_update_elem(&xroce_conn, &id, &conn, BPF_ANY);
}

static __always_inline void conn_forget(__be32 own_id)
{
	const __u32 id = bpf_ntohl(own_id);

	bpf_map_delete_elem(&xroce_conn, &id);
}

/*
 * Notes what a client's MAD does to a connection. The sender's id is the client's, except in a REJ
 * to a peer that knows none. asked: the peer's MAD that this one answers, or NULL.
 */
static __always_inline void conn_said(const struct packet *p, const struct mad *m, __u32 place,
				      struct xroce_asked *asked)
{
	const struct conn_ends ends = { &p->src, &p->dst, m->local_id, m->remote_id };
	const __u32 kind = mad_kind(m);

	if (kind == MAD_DREQ || kind == MAD_DREP) {
		conn_forget(m->local_id);
		return;
	}
	if (kind != MAD_REP && kind != MAD_RTU && kind != MAD_REJ)
		return;
	if (asked)
		asked->answered = 1;
	if (kind == MAD_REJ && XROCE_CM_PLACE(bpf_ntohl(m->local_id)) == place)
		conn_forget(m->local_id);
	else if (kind != MAD_REJ && asked)
		conn_note(&ends, asked->serial, asked->qpn);
}

static __always_inline bool conn_is_with(__be32 own_id, const union address *peer)
{
	const __u32 id = bpf_ntohl(own_id);
	const struct xroce_conn *conn = bpf_map_lookup_elem(&xroce_conn, &id);

	return conn && steer_address_is(peer, conn->gid);
}

/* Returns whether this QP 1 has noted a connection by the id; none is used for a second one. */
static __always_inline bool conn_is_noted(__be32 own_id, __u64 serial)
{
	const __u32 id = bpf_ntohl(own_id);
	const struct xroce_conn *conn = bpf_map_lookup_elem(&xroce_conn, &id);

	return conn && conn->serial == serial;
}

/*
 * Notes MADs to a client whose own MADs leave by its sockets, so that the sources of these are not
 * checked here: the first one of a connection counts, and a forged one does not replace the peer.
 */
static __always_inline void conn_heard(const struct packet *p, const struct mad *m,
				       const struct xroce_cm_client *to)
{
	const struct conn_ends ends = { &p->dst, &p->src, m->remote_id, m->local_id };
	const __u32 kind = mad_kind(m);
	const struct xroce_asked *asked;

	if (kind == MAD_REP || kind == MAD_RTU) {
		if (conn_is_noted(m->remote_id, to->serial))
			return;
	}
	if (kind == MAD_REP) {
		conn_note(&ends, to->serial, mad_rep_qpn(m));
	} else if (kind == MAD_RTU) {
		asked = conn_asked(&p->src, m->local_id, MAD_REQ, to->client);
		if (asked)
			conn_note(&ends, to->serial, asked->qpn);
	} else if ((kind == MAD_DREQ || kind == MAD_DREP || kind == MAD_REJ) &&
		   conn_is_with(m->remote_id, &p->src)) {
		conn_forget(m->remote_id);
	}
}

#endif
