/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address handles and the resolution of address vectors. On RoCE an address vector is a local GID
 * and a peer's GID. The kernel's routes and neighbours supply the rest once, when the handle is
 * created or the QP moves to RTR.
 *
 * Programs create a handle for each of very many QPs, and connect as many, with few distinct
 * destinations. Results for a destination are therefore cached for a tenth of a second, or until a
 * change of the interface is reported.
 */
#include "../os/clock.h"
#include "../os/complain.h"
#include "../os/options.h"

#include "objects.h"
#include "xroce_cm.h"

#define DEFAULT_HOP_LIMIT 64

/*
 * Programs for InfiniBand subnets pass a hop limit of 0 or 1, which has no effect there. On RoCE
 * such a packet would stop at the first router: a default replaces it, as the kernel's RoCE takes
 * the route's limit. For a multicast group, 1 keeps the packets in the subnet, as in IP.
 */
static u8 hop_limit(const struct ibv_global_route *grh, const struct gid *peer)
{
	if (grh->hop_limit > 1)
		return grh->hop_limit;
	return group_is_address(peer) ? 1 : DEFAULT_HOP_LIMIT;
}

/* Printed once per process: a frequent first mistake, which EINVAL alone does not explain. */
static void say_gid_is_missing(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set_explicit(&said, memory_order_relaxed) &&
	    !options_is_set(OPTION_QUIET))
		complain("address handle without a GRH: RoCE needs a GRH; choose a GID of "
			 "this device by its index (-g 0 for ibv_*_pingpong, -x 0 for perftest; "
			 "`xroce list` shows them)");
}

/* Sets the fields of an address vector other than the destination. */
static void ah_set_header(struct path *path, const struct ibv_global_route *grh)
{
	struct gid peer;

	memcpy(peer.raw, grh->dgid.raw, sizeof(peer.raw));
	path->tos = grh->traffic_class;
	path->hop_limit = hop_limit(grh, &peer);
	path->flow_label = grh->flow_label & IB_GRH_FLOWLABEL_MASK;
}

/* ---- MACs learned by librdmacm: xroce_cm_heard() ---- */

#define HEARD_NS NSEC_PER_SEC

/* The last one; the same thread resolves the address vector next. */
static _Thread_local struct {
	struct gid peer;
	u8 mac[6];
	u64 until_ns;
} ah_heard;

EXPORT void xroce_cm_heard(const union ibv_gid *peer, const uint8_t mac[6])
{
	memcpy(ah_heard.peer.raw, peer->raw, sizeof(ah_heard.peer.raw));
	memcpy(ah_heard.mac, mac, sizeof(ah_heard.mac));
	ah_heard.until_ns = clock_now_ns() + HEARD_NS;
}

/* Returns the peer's MAC that this thread learned, or NULL. */
static const u8 *ah_heard_mac(const struct gid *peer)
{
	return ah_heard.until_ns && clock_now_ns() < ah_heard.until_ns &&
			       gid_equal(&ah_heard.peer, peer) ?
		       ah_heard.mac :
		       NULL;
}

/* ---- resolution ---- */

/* Checks an address vector. Returns 0 or EINVAL. */
static int ah_check(const struct ibv_ah_attr *attr)
{
	if (attr->port_num != VERBS_PORT || attr->sl > 15)
		return EINVAL;
	/* RoCE always has a GRH (annex A17): without GIDs there is no destination. */
	if (!attr->is_global) {
		say_gid_is_missing();
		return EINVAL;
	}
	return 0;
}

static struct neigh_key ah_key(const struct ibv_ah_attr *attr)
{
	struct neigh_key key = { .local_index = attr->grh.sgid_index };

	memcpy(key.peer.raw, attr->grh.dgid.raw, sizeof(key.peer.raw));
	return key;
}

/* Returns how long a call with a time-out waits for a neighbour, in ms. */
static int ah_wait_ms(struct vcontext *ctx, const struct neigh_key *key, int timeout_ms)
{
	int wait_ms;

	pthread_mutex_lock(&ctx->ah_lock);
	wait_ms = neigh_silent_wait_ms(&ctx->ah_silent, key, clock_now_ns(), timeout_ms);
	pthread_mutex_unlock(&ctx->ah_lock);
	return wait_ms;
}

/*
 * Records whether a neighbour has answered. err: 0 or a positive errno. Only a call that was to
 * wait for longer than NEIGH_SHORT_WAIT_MS makes a neighbour silent: the peers of the others are
 * unknown senders.
 */
static void ah_record(struct vcontext *ctx, const struct neigh_key *key, int timeout_ms, int err)
{
	pthread_mutex_lock(&ctx->ah_lock);
	if (!err)
		neigh_silent_remove(&ctx->ah_silent, key);
	else if (err == EHOSTUNREACH && timeout_ms > NEIGH_SHORT_WAIT_MS)
		neigh_silent_add(&ctx->ah_silent, key, clock_now_ns());
	pthread_mutex_unlock(&ctx->ah_lock);
}

/*
 * Asks the kernel, the link cache for addresses alone. Waits at most timeout_ms for the neighbour,
 * less after neighbours that did not answer. Returns 0 or a positive errno.
 */
static int ah_ask(struct vcontext *ctx, const struct ibv_ah_attr *attr, int timeout_ms,
		  struct path *path)
{
	const struct neigh_key key = ah_key(attr);
	struct gid local;
	struct netdev nd;
	int err = context_netdev(&ctx->v.context, &nd);

	if (err)
		return err;
	if (attr->grh.sgid_index >= nd.num_gids)
		return EINVAL;
	local = nd.gid[attr->grh.sgid_index].gid;
	memset(path, 0, sizeof(*path));
	err = -netdev_resolve(link_cache_session(ctx->links), &nd, &local, &key.peer,
			      ah_wait_ms(ctx, &key, timeout_ms), ah_heard_mac(&key.peer), path);
	ah_record(ctx, &key, timeout_ms, err);
	return err;
}

int ah_resolve(struct vcontext *ctx, const struct ibv_ah_attr *attr, int timeout_ms,
	       struct path *path)
{
	const struct neigh_key key = ah_key(attr);
	const struct path *found;
	int err = ah_check(attr);
	u32 changes;

	if (err)
		return err;
	pthread_mutex_lock(&ctx->ah_lock);
	changes = ctx->ah_cache.changes;
	found = neigh_cache_find(&ctx->ah_cache, &key);
	if (found)
		*path = *found;
	pthread_mutex_unlock(&ctx->ah_lock);
	if (!found || context_gone(&ctx->v.context)) {
		err = ah_ask(ctx, attr, timeout_ms, path);
		if (err)
			return err;
		pthread_mutex_lock(&ctx->ah_lock);
		neigh_cache_add(&ctx->ah_cache, &key, changes, path);
		pthread_mutex_unlock(&ctx->ah_lock);
	}
	ah_set_header(path, &attr->grh);
	return 0;
}

void ah_cache_forget(struct vcontext *ctx)
{
	pthread_mutex_lock(&ctx->ah_lock);
	neigh_cache_forget(&ctx->ah_cache);
	ctx->ah_silent = (struct neigh_silent){ 0 };
	pthread_mutex_unlock(&ctx->ah_lock);
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr, int timeout_ms)
{
	struct vcontext *ctx = to_vcontext(pd->context);
	struct vah *ah;
	int err = object_is_known(to_vpd(pd)) ? device_take(pd->context, LIMIT_AH) : ENOENT;

	if (err)
		return verb_fail(err);
	ah = calloc(1, sizeof(*ah));
	err = ah ? ah_resolve(ctx, attr, timeout_ms, &ah->path) : ENOMEM;
	if (err) {
		device_give(pd->context, LIMIT_AH);
		free(ah);
		return verb_fail(err);
	}
	ah->flow_label = ah->path.flow_label;
	ah->ibv = (struct ibv_ah){ .context = pd->context, .pd = pd, .handle = new_handle() };
	object_know(ah);
	pd_use(to_vpd(pd));
	context_get(ctx);
	return &ah->ibv;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	if (verb_fails(pd->context, CALL_ibv_create_ah))
		return verb_fail(errno);
	return create_ah(pd, attr, RESOLVE_TIMEOUT_MS);
}

EXPORT struct ibv_ah *xroce_cm_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr,
					 bool ask, uint8_t mac[6])
{
	struct ibv_ah *ah = create_ah(pd, attr, ask ? 0 : NETDEV_LOOK);

	if (ah)
		memcpy(mac, to_vah(ah)->path.dmac, 6);
	return ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ibah)
{
	struct vcontext *ctx = to_vcontext(ibah->context);

	if (verb_fails(ibah->context, CALL_ibv_destroy_ah))
		return verb_report(errno);
	if (!object_is_known(to_vah(ibah)))
		return verb_report(ENOENT);
	device_give(ibah->context, LIMIT_AH);
	pd_unuse(to_vpd(ibah->pd));
	free(to_vah(ibah));
	context_put(ctx);
	return 0;
}

/* The ones' complement sum over a header with a correct checksum is ffff. */
static bool ipv4_checksum_ok(const u8 *h)
{
	u32 sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (u32)(h[i] << 8 | h[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

static void ah_gid_from_ipv4(union ibv_gid *gid, const u8 *addr)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = 0xff;
	gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, addr, 4);
}

/*
 * Parses the 40 bytes before a UD message: the sender's IPv6 header, or its IPv4 header in bytes 20
 * to 39. Fills in both addresses and the traffic class; returns false if it is neither.
 */
static bool grh_parse(const struct ibv_grh *grh, union ibv_gid *sgid, union ibv_gid *dgid,
		      u8 *tclass, u32 *flow_label)
{
	const u8 *raw = (const u8 *)grh;

	if (raw[20] == 0x45 && ipv4_checksum_ok(raw + 20)) {
		ah_gid_from_ipv4(sgid, raw + 32);
		ah_gid_from_ipv4(dgid, raw + 36);
		*tclass = raw[21];
		*flow_label = 0;
		return true;
	}
	if (raw[0] >> 4 != 6)
		return false;
	*sgid = grh->sgid;
	*dgid = grh->dgid;
	*tclass = be32toh(grh->version_tclass_flow) >> 20 & 0xff;
	*flow_label = be32toh(grh->version_tclass_flow) & IB_GRH_FLOWLABEL_MASK;
	return true;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid sgid, dgid;
	struct netdev nd;
	u32 flow_label;
	u8 tclass;
	int err;

	if (verb_fails(context, CALL_ibv_init_ah_from_wc))
		return -1;
	memset(attr, 0, sizeof(*attr));
	if (port_num != VERBS_PORT)
		return verb_fail_int(EINVAL);
	attr->port_num = port_num;
	attr->sl = wc->sl;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	if (!grh_parse(grh, &sgid, &dgid, &tclass, &flow_label))
		return verb_fail_int(EINVAL);
	err = context_netdev(context, &nd);
	if (err)
		return verb_fail_int(err);
	attr->is_global = 1;
	attr->grh.dgid = sgid;
	attr->grh.flow_label = flow_label;
	attr->grh.traffic_class = tclass;
	attr->grh.hop_limit = 0xff;
	for (u32 i = 0; i < nd.num_gids; i++)
		if (!memcmp(nd.gid[i].gid.raw, dgid.raw, sizeof(dgid.raw))) {
			attr->grh.sgid_index = (u8)i;
			return 0;
		}
	/* The packet's destination is no longer an address of the interface. */
	return verb_fail_int(ENOENT);
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port_num)
{
	struct vcontext *ctx = to_vcontext(pd->context);
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	bool rests;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	pthread_mutex_lock(&ctx->ah_lock);
	rests = clock_now_ns() < ctx->ah_senders_until_ns;
	pthread_mutex_unlock(&ctx->ah_lock);
	ah = create_ah(pd, &attr, rests ? 0 : NEIGH_SHORT_WAIT_MS);
	if (!ah && errno == EHOSTUNREACH && !rests) {
		pthread_mutex_lock(&ctx->ah_lock);
		ctx->ah_senders_until_ns = clock_now_ns() + NEIGH_REST_MS * NSEC_PER_MSEC;
		pthread_mutex_unlock(&ctx->ah_lock);
	}
	return ah;
}

/* vid is 0xffff without a VLAN. */
EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct path path;
	int err = ah_check(attr);

	if (verb_fails(context, CALL_ibv_resolve_eth_l2_from_gid))
		return verb_report(errno);
	if (!err)
		err = ah_ask(to_vcontext(context), attr, RESOLVE_TIMEOUT_MS, &path);
	if (err)
		return verb_fail_int(err);
	memcpy(eth_mac, path.dmac, ETHERNET_LL_SIZE);
	if (vid)
		*vid = path.has_vlan ? path.vlan_tci & 0xfff : 0xffff;
	return 0;
}

/*
 * Multicast groups: ibv_attach_mcast(3). The LID has no meaning on RoCE (annex A17) and is ignored.
 */

static int mcast_check(const struct vqp *vqp)
{
	if (!object_is_known(vqp))
		return ENOENT;
	return context_gone(vqp->ibv.context) ? EIO : 0;
}

static struct gid mcast_address(const union ibv_gid *gid)
{
	struct gid address;

	memcpy(address.raw, gid->raw, sizeof(address.raw));
	return address;
}

/* As in rdma-core: exceeded limits of the library are reported as ENOMEM. */
static int mcast_errno(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
	case -ENOBUFS:
	case -EMFILE:
	case -ENFILE:
	case -E2BIG:
		return ENOMEM;
	default:
		return -err;
	}
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vqp *vqp = to_vqp(qp);
	const struct gid address = mcast_address(gid);
	int err = mcast_check(vqp);

	if (verb_fails(qp->context, CALL_ibv_attach_mcast))
		return verb_report(errno);
	if (!err && (qp->qp_type != IBV_QPT_UD || !group_is_address(&address)))
		err = EINVAL;
	if (!err)
		err = mcast_errno(port_attach(vqp->port, vqp->qp, &address));
	return verb_report(err);
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vqp *vqp = to_vqp(qp);
	const struct gid address = mcast_address(gid);

	if (verb_fails(qp->context, CALL_ibv_detach_mcast))
		return verb_report(errno);
	if (!object_is_known(vqp))
		return verb_report(ENOENT);
	return verb_report(-port_detach(vqp->port, vqp->qp, &address));
}
