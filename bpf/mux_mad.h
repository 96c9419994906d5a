/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the client for a MAD to QP 1: the owner of the id in it, the client bound to its service,
 * or the client that got the same request before. The client's CM checks it again. Notes in
 * xroce_asked which client may answer (egress.h), and there and in xroce_conn (conn.h) data for the
 * broker if a client dies.
 */
#ifndef BPF_MUX_MAD_H
#define BPF_MUX_MAD_H

#include "conn.h"
#include "copy.h"
#include "count.h"
#include "mad.h"
#include "maps_broker.h"
#include "parse.h"
#include "steer.h"

#define MUX_MAD_FRAME	  400		    /* longest frame in bytes, one of COPY_SIZES */
#define MUX_MAD_OF_BROKER XROCE_MAX_CLIENT  /* as a client: the broker refuses the MAD */
#define MUX_MAD_IPV4	  bpf_htonl(0xffff) /* in the third word of an IPv4 address's GID */

static __always_inline bool mux_mad_is_ipv4(const union address *a)
{
	return !a->half[0] && a->word[2] == MUX_MAD_IPV4;
}

/*
 * Computes the address that a request is for: the packet's destination, unless the sender connects
 * by a loopback address. at: offset of the private data in the frame.
 */
static __always_inline void mux_mad_address(struct xdp_md *ctx, const struct packet *p, __u64 id,
					    __u32 at, union address *out)
{
	struct mad_ip_header h;

	*out = p->dst;
	if (!steer_address_is(&p->src, p->dst.gid) || !mad_service_is_ip(id) ||
	    bpf_xdp_load_bytes(ctx, at, &h, sizeof(h)) || !mad_is_by_loopback(&h))
		return;
	out->half[0] = 0;
	out->word[2] = h.ip_version >> 4 == 4 ? MUX_MAD_IPV4 : 0;
	out->word[3] = h.destination[3];
}

/* Returns the client bound to the service at this address, else at its whole family, or NULL. */
static __always_inline const struct xroce_service *mux_mad_service(__u64 id,
								   const union address *address)
{
	struct xroce_service_key key = { .id = id };
	union address *at = (void *)key.address;
	const struct xroce_service *s;

	*at = *address;
	s = bpf_map_lookup_elem(&xroce_service, &key);
	if (s)
		return s;
	at->half[0] = 0;
	at->word[2] = mux_mad_is_ipv4(address) ? MUX_MAD_IPV4 : 0;
	at->word[3] = 0;
	return bpf_map_lookup_elem(&xroce_service, &key);
}

static __always_inline const struct xroce_cm_client *mux_mad_place(__u32 place)
{
	return bpf_map_lookup_elem(&xroce_cm_client, &place);
}

/* Returns the client that got the peer's request, or NULL if it is unknown or has ended. */
static __always_inline const struct xroce_cm_client *
mux_mad_asked(const struct xroce_asked_key *key, const __u64 *tid)
{
	const struct xroce_asked *asked = bpf_map_lookup_elem(&xroce_asked, key);

	if (!asked || (tid && asked->tid != *tid) || asked->place == XROCE_CM_PLACE_NONE)
		return NULL;
	return conn_owner(asked);
}

/* Returns the peer's QPN in a REQ. at: offset of the MAD in the frame. */
static __always_inline __u32 mux_mad_req_qpn(struct xdp_md *ctx, __u32 at)
{
	__be32 qpn = 0;

	bpf_xdp_load_bytes(ctx, at + MAD_REQ_QPN, &qpn, sizeof(qpn));
	return bpf_ntohl(qpn) >> 8;
}

/* Notes that only this client may answer. qpn: the peer's, for a DREQ from the broker. */
static __always_inline void mux_mad_note(const struct packet *p, const struct mad *m, __u32 place,
					 const struct xroce_cm_client *to, __u32 qpn)
{
	struct xroce_asked asked = {
		.tid = m->tid, .serial = to->serial, .place = place, .qpn = qpn,
	};
	struct xroce_asked_key key;

	*(union address *)asked.own_gid = p->dst;
	conn_asked_key(&key, &p->src, m->local_id, mad_kind(m));
	bpf_map_update_elem(&xroce_asked, &key, &asked, BPF_ANY);
}

/* Finds the client for a request, and notes it so that repetitions find the same client. */
static __always_inline const struct xroce_cm_client *
mux_mad_requested(struct xdp_md *ctx, const struct packet *p, const struct mad *m, __u32 at)
{
	const __u64 id = bpf_be64_to_cpu(m->service_id);
	const bool is_req = mad_kind(m) == MAD_REQ;
	const __u64 tid = m->tid;
	const struct xroce_service *service;
	const struct xroce_cm_client *to;
	struct xroce_asked_key key;
	union address address;

	conn_asked_key(&key, &p->src, m->local_id, mad_kind(m));
	to = mux_mad_asked(&key, &tid);
	if (to)
		return to;
	mux_mad_address(ctx, p, id, at + (is_req ? MAD_REQ_DATA : MAD_SIDR_REQ_DATA), &address);
	service = mux_mad_service(id, &address);
	to = service ? mux_mad_place(service->place) : NULL;
	if (to)
		mux_mad_note(p, m, service->place, to, is_req ? mux_mad_req_qpn(ctx, at) : 0);
	return to;
}

static __always_inline const struct xroce_cm_client *
mux_mad_owner(struct xdp_md *ctx, const struct packet *p, const struct mad *m, __u32 at)
{
	const struct xroce_cm_client *to;
	struct xroce_asked_key key;
	__u32 place;

	if (mad_is_request(m))
		return mux_mad_requested(ctx, p, m, at);
	if (mad_names_peer(m)) {
		conn_asked_key(&key, &p->src, m->local_id, MAD_REQ);
		return mux_mad_asked(&key, NULL);
	}
	place = XROCE_CM_PLACE(mad_id(m));
	to = place == XROCE_CM_PLACE_NONE ? NULL : mux_mad_place(place);
	if (to && mad_kind(m) == MAD_REP)
		mux_mad_note(p, m, place, to, mad_rep_qpn(m));
	if (to && to->by_sockets)
		conn_heard(p, m, to);
	return to;
}

/*
 * Finds the client for a packet to QP 1 that passed parse_roce(). Returns XROCE_DROP_none and the
 * client, or the drop reason. A MAD without an owner goes to the client with place 0, which refuses
 * it, or to the broker if there is none. But an unprivileged client never answers for a privileged
 * port.
 */
static __attribute__((noinline)) enum xroce_drop mux_mad_find(struct xdp_md *ctx,
							      const struct packet *p, __u32 *client)
{
	const __u32 at = p->l4 + sizeof(struct udphdr) + sizeof(struct bth) + sizeof(struct deth);
	const struct xroce_cm_client *to;
	struct mad m;

	if (p->opcode != OPCODE(XROCE_UD, OP5_SEND_ONLY) || p->segments != 1 ||
	    p->byte_len != MAD_BYTES || bpf_xdp_load_bytes(ctx, at, &m, sizeof(m)) ||
	    !mad_is_cm(&m))
		return XROCE_DROP_mad;
	if (p->qkey != XROCE_CM_QKEY)
		return XROCE_DROP_qkey;
	to = mux_mad_owner(ctx, p, &m, at);
	if (!to) {
		const __u64 id = bpf_be64_to_cpu(m.service_id);

		to = mux_mad_place(XROCE_CM_PLACE_NONE);
		if (!to) {
			*client = MUX_MAD_OF_BROKER;
			return XROCE_DROP_none;
		}
		if (mad_is_request(&m) && mad_service_is_ip(id) && (__u16)id < to->first_port)
			return XROCE_DROP_mad_port;
		if (mad_is_asked(&m))
			mux_mad_note(p, &m, XROCE_CM_PLACE_NONE, to, 0);
	}
	*client = to->client;
	return XROCE_DROP_none;
}

/* Passes a whole frame to the broker as a record. Returns XROCE_DROP_none or the drop reason. */
static __attribute__((noinline)) enum xroce_drop mux_mad_show(struct xdp_md *ctx,
							      const struct packet *p)
{
	struct xroce_rx_record *r;
	__u32 len = p->frame_len;

	if (len < sizeof(struct ethhdr))
		return XROCE_DROP_mad;
	/* compared again: Linux 6.1 learns no bounds from a copy less a constant */
	barrier_var(len);
	/* a whole MAD is shorter, unless its frame ends with padding */
	if (len > MUX_MAD_FRAME)
		return XROCE_DROP_mad;
	r = bpf_ringbuf_reserve(&xroce_unowned, COPY_RECORD(MUX_MAD_FRAME), 0);
	if (!r)
		return XROCE_DROP_ring_full;
	if (copy_load(ctx, r->frame, len)) {
		bpf_ringbuf_discard(r, 0);
		return XROCE_DROP_multibuffer;
	}
	r->len = len;
	bpf_ringbuf_submit(r, 0);
	count_received_by_all(p);
	return XROCE_DROP_none;
}

#endif
