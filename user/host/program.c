/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs, compiled for this machine with the headers of user/host/include, and the functions
 * that BPF has for them. Nothing here decides about a packet, except in which order clients of a
 * group get it.
 */
#include <errno.h>
#include <stdlib.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "program.h"

/* Each client receives by its ring (bpf/deliver.h). */
#define xroce_shared true
/* Not called here; or external only as the verifier checks such a function once. */
int count_drop(__u32 reason);

#include "../../bpf/xroce.bpf.c"
#include "../../bpf/mux_mad.h"

/* The host, and the client whose program runs; NULL: the program before the clients'. */
static struct host *now;
static struct host_client *now_client;

static inline struct xroce_trace *host_trace_page(void)
{
	static struct xroce_trace none;

	return now_client ? now_client->trace : &none;
}

/* ---- maps ---- */

static struct host_map *host_map_of(const void *map)
{
	return &now->map[map == &xroce_owner	 ? HOST_OWNER :
			 map == &xroce_cm_client ? HOST_CM_CLIENT :
			 map == &xroce_service	 ? HOST_SERVICE :
			 map == &xroce_asked	 ? HOST_ASKED :
			 map == &xroce_conn	 ? HOST_CONN :
						   HOST_GID];
}

static inline __attribute__((always_inline)) void *host_lookup(const void *map, const void *key)
{
	struct host_client *c = now_client;
	u32 k;

	if (map == &xroce_engine)
		return c ? c->maps.engine : &now->engine;
	if (map == &xroce_drop)
		return c ? c->drops : &now->drops;
	if (map == &xroce_rx)
		return c ? c->stats : &now->stats;
	if (map == &xroce_owner || map == &xroce_cm_client || map == &xroce_service ||
	    map == &xroce_asked || map == &xroce_conn || map == &xroce_gid)
		return host_map_find(host_map_of(map), key);
	memcpy(&k, key, sizeof(k));
	/* the client can change where it comes from: the number that is checked is the one used */
	barrier_var(k);
	if (!c)
		return NULL;
	if (map == &xroce_qp)
		return k < XROCE_MAX_QP ? &c->maps.qp[k] : NULL;
	if (map == &xroce_expect)
		return k < XROCE_MAX_QP ? &c->maps.expect[k] : NULL;
	if (map == &xroce_cq)
		return k < XROCE_MAX_CQ ? &c->maps.cq[k] : NULL;
	if (map == &xroce_vector)
		return k < XROCE_MAX_QUEUE ? &c->maps.vector[k] : NULL;
	/* channels have no rings: their CQs wake the worker */
	if (map == &xroce_channel)
		return k ? NULL : &c->wake;
	if (map == &xroce_tracer)
		return k < XROCE_TRACERS ? c->tracer[k] : NULL;
	/* no flows, no copies, no groups of one client alone */
	return NULL;
}

static inline long host_update(const void *map, const void *key, const void *value)
{
	return host_map_put(host_map_of(map), key, value);
}

static inline long host_delete(const void *map, const void *key)
{
	return host_map_remove(host_map_of(map), key);
}

/* ---- rings ---- */

/* The records being written: a packet's, and a tracer's while that one is still reserved. */
static struct {
	struct host_ring *ring;
	u32 bytes;
} now_record[2];
static u32 now_records;

static struct host_ring *host_ring_of(void *ring)
{
	if (ring == &xroce_ring)
		return now_client ? &now_client->rx : NULL;
	return ring;
}

static inline void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags)
{
	struct host_ring *r = host_ring_of(ring);
	void *record = r && now_records < ARRAY_SIZE(now_record) ?
			       host_ring_reserve(r, (u32)size) : NULL;

	if (record) {
		now_record[now_records].ring = r;
		now_record[now_records++].bytes = (u32)size;
	}
	return record;
}

static inline void bpf_ringbuf_submit(void *record, __u64 flags)
{
	now_records--;
	host_ring_submit(record, now_record[now_records].bytes);
	now_record[now_records].ring->wakes |= !(flags & BPF_RB_NO_WAKEUP);
}

static inline void bpf_ringbuf_discard(void *record, __u64 flags)
{
	host_ring_discard(record, now_record[--now_records].bytes);
}

static inline long bpf_ringbuf_output(void *ring, const void *data, __u64 size, __u64 flags)
{
	void *record = bpf_ringbuf_reserve(ring, size, flags);

	if (!record)
		return -ENOSPC;
	memcpy(record, data, size);
	bpf_ringbuf_submit(record, flags);
	return 0;
}

static inline __u64 bpf_ktime_get_ns(void)
{
	return clock_now_ns();
}

/* ---- the clients' programs ---- */

static void host_feed(struct host *h, u32 number, struct xdp_md *ctx)
{
	now_client = h->client[number];
	xroce_xdp(ctx);
	now_client = NULL;
	if (!h->is_fed[number]) {
		h->is_fed[number] = true;
		h->fed[h->num_fed++] = (u16)number;
	}
}

void host_wake(struct host *h)
{
	while (h->num_fed) {
		const u32 number = h->fed[--h->num_fed];
		struct host_client *c = h->client[number];

		h->is_fed[number] = false;
		if (!c)
			continue;
		host_ring_wake(&c->rx);
		host_ring_wake(&c->wake);
	}
}

int host_report(struct host *h, struct host_client *c, struct xroce_trace_report *report)
{
	int wanted;

	now = h;
	now_client = c;
	wanted = xroce_trace_tx(report);
	now_client = NULL;
	return wanted;
}

/* ---- the program before them: as xroce_mux() ---- */

/* Each client with members of a packet's group gets it in turn. */
static bool host_input_group(struct host *h, struct xdp_md *ctx, const struct packet *p)
{
	const struct bth *bth = (void *)(p->udp + 1);
	const struct xroce_members *members;

	if ((unsigned long)(bth + 1) > ctx->data_end ||
	    (load_be32(&bth->ecn_qpn) & ROCE_QPN_MASK) != ROCE_MULTICAST_QPN)
		return false;
	members = host_map_find(&h->map[HOST_MEMBERS], &p->dst);
	if (!members)
		return false;
	for (u32 i = 0; i < members->num && i < XROCE_GROUP_CLIENTS; i++)
		if (members->client[i] < XROCE_MAX_CLIENT && h->client[members->client[i]])
			host_feed(h, members->client[i], ctx);
	return true;
}

/* Finds the client that gets the packet. Returns XROCE_DROP_none, or the drop reason. */
static enum xroce_drop host_find(struct xdp_md *ctx, struct packet *p, u32 *client)
{
	const struct bth *bth = (void *)(p->udp + 1);
	const struct xroce_owner *owner = NULL;
	enum xroce_drop drop;
	u32 qpn;

	if ((unsigned long)(bth + 1) <= ctx->data_end) {
		qpn = load_be32(&bth->ecn_qpn) & ROCE_QPN_MASK;
		owner = host_lookup(&xroce_owner, &qpn);
	}
	if (owner) {
		*client = owner->client;
		return XROCE_DROP_none;
	}
	drop = parse_roce(ctx, p);
	if (drop != XROCE_DROP_none)
		return drop;
	return p->qpn == XROCE_CM_QPN ? mux_mad_find(ctx, p, client) : XROCE_DROP_qp_unknown;
}

void host_input(struct host *h, u8 *frame, u32 len)
{
	struct xdp_md ctx = { .data = (unsigned long)frame,
			      .data_end = (unsigned long)(frame + len) };
	enum xroce_drop drop = XROCE_DROP_none;
	struct packet p;
	u32 client = XROCE_MAX_CLIENT;

	now = h;
	now_client = NULL;
	if (!parse_ip(&ctx, &p, &drop))
		return;
	if (!steer_is_ours(&p, NULL)) {
		if (drop != XROCE_DROP_none || !host_input_group(h, &ctx, &p))
			count_pass();
		return;
	}
	if (drop == XROCE_DROP_none)
		drop = host_find(&ctx, &p, &client);
	if (drop == XROCE_DROP_none && client == MUX_MAD_OF_BROKER && h->unowned) {
		count_received_by_all(&p);
		h->unowned(h->unowned_arg, frame, len);
		return;
	}
	if (drop == XROCE_DROP_none && client < XROCE_MAX_CLIENT && h->client[client])
		host_feed(h, client, &ctx);
	else
		count_drop(drop == XROCE_DROP_none ? XROCE_DROP_qp_unknown : drop);
}

/* ---- start and end ---- */

int host_make(struct host **out)
{
	struct host *h = calloc(1, sizeof(*h));
	int err = h ? 0 : -ENOMEM;

#define MAKE(which, key, value, max, is_lru)                                                  \
	if (!err)                                                                             \
		err = host_map_make(&h->map[which], sizeof(key), sizeof(value), max, is_lru);
	MAKE(HOST_OWNER, u32, struct xroce_owner, XROCE_MAX_OWNED, false)
	MAKE(HOST_CM_CLIENT, u32, struct xroce_cm_client, XROCE_MAX_CLIENT + 1, false)
	MAKE(HOST_SERVICE, struct xroce_service_key, struct xroce_service, XROCE_MAX_SERVICE, false)
	MAKE(HOST_ASKED, struct xroce_asked_key, struct xroce_asked, XROCE_MAX_ASKED, true)
	MAKE(HOST_CONN, u32, struct xroce_conn, XROCE_MAX_CONN, true)
	MAKE(HOST_MEMBERS, struct gid, struct xroce_members, XROCE_MAX_MEMBERS, false)
	MAKE(HOST_GID, struct gid, u32, XROCE_MAX_GID, false)
#undef MAKE
	if (err)
		host_free(h);
	else
		*out = h;
	return err;
}

void host_free(struct host *h)
{
	if (!h)
		return;
	for (u32 i = 0; i < HOST_MAPS; i++)
		host_map_free(&h->map[i]);
	free(h);
}
