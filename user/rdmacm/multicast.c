/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups of ids. The interface is a member while this process has a socket that joined
 * (IGMP, MLD); the socket receives nothing itself. The id's QP is attached when the program takes
 * the event.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "addr.h"
#include "channel.h"

#define MULTICAST_HOP_LIMIT 64
#define MULTICAST_QPN	    0xffffffu

struct rdmacm_multicast {
	struct rdmacm_multicast *next;
	struct sockaddr_storage addr;
	union ibv_gid mgid;
	void *context;
	bool send_only;
	int fd;		       /* -1: no membership of the interface */
	struct ibv_qp *attached;
	u32 events;	       /* queued, or delivered and not acknowledged */
	bool left;	       /* removed from its id: freed with its last event */
};

static pthread_cond_t multicast_done = PTHREAD_COND_INITIALIZER;

/* ---- the end of a membership; all under the lock ---- */

static void multicast_free(struct rdmacm_multicast *mc)
{
	if (mc->fd >= 0)
		close(mc->fd);
	free(mc);
}

void multicast_acked(struct rdmacm_multicast *mc)
{
	if (--mc->events)
		return;
	pthread_cond_broadcast(&multicast_done);
	if (mc->left)
		multicast_free(mc);
}

static void multicast_discard(struct rdmacm_event *ev)
{
	multicast_acked(ev->mc);
}

void multicast_forget(struct rdmacm_id *id)
{
	struct rdmacm_multicast *mc;

	while ((mc = id->memberships)) {
		id->memberships = mc->next;
		mc->left = true;
		mc->events++;
		multicast_acked(mc);
	}
}

/* Discards the undelivered events of a group. */
static void multicast_drop_events(struct rdmacm_id *id, const struct rdmacm_multicast *mc)
{
	struct rdmacm_channel *ch = to_channel(id->pub.channel);
	struct rdmacm_event *ev = channel_remove(ch, id), *next;

	for (; ev; ev = next) {
		next = ev->next;
		if (ev->mc != mc) {
			channel_append(ch, ev);
			continue;
		}
		ev->discard(ev);
		free(ev);
	}
}

/* ---- joining ---- */

/* Makes the interface a member. Returns a socket or -errno. */
static int multicast_member(u32 ifindex, const struct address *group)
{
	struct ipv6_mreq mreq6 = { .ipv6mr_interface = ifindex };
	struct ip_mreqn mreq = { .imr_ifindex = (int)ifindex };
	const bool ipv4 = address_is_ipv4(group);
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	memcpy(&mreq.imr_multiaddr, group->ip.raw + 12, sizeof(mreq.imr_multiaddr));
	memcpy(&mreq6.ipv6mr_multiaddr, group->ip.raw, sizeof(mreq6.ipv6mr_multiaddr));
	if (ipv4)
		ret = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq));
	else
		ret = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &mreq6, sizeof(mreq6));
	if (!ret)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static void multicast_fail(struct rdmacm_event *ev, int status)
{
	ev->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	ev->pub.status = status;
}

/* In the program's thread: attaches the QP and fills in the group's address. */
static int multicast_show(struct rdmacm_event *ev)
{
	struct rdmacm_multicast *mc = ev->mc;
	struct rdmacm_id *id = ev->id;
	const int sgid_index = cm_device_gid_index(id->device, &id->path.local);
	int err = 0;

	ev->pub.param.ud.private_data = mc->context;
	if (sgid_index < 0) {
		multicast_fail(ev, sgid_index);
		return 0;
	}
	ev->pub.param.ud.ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = RDMACM_PORT,
		.grh = { .dgid = mc->mgid,
			 .sgid_index = (u8)sgid_index,
			 .hop_limit = MULTICAST_HOP_LIMIT },
	};
	ev->pub.param.ud.qp_num = MULTICAST_QPN;
	ev->pub.param.ud.qkey = id->qkey;
	if (id->pub.qp && !mc->send_only)
		err = ibv_attach_mcast(id->pub.qp, &mc->mgid, 0);
	if (err)
		multicast_fail(ev, -err);
	else if (!mc->send_only)
		mc->attached = id->pub.qp;
	return 0;
}

/* Adds the membership to the id and queues the event. Returns 0 or -ENOMEM. Under the lock. */
static int multicast_joined(struct rdmacm_id *id, struct rdmacm_multicast *mc)
{
	struct rdmacm_event *ev = event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);

	if (!ev)
		return -ENOMEM;
	if (!id->qkey)
		id->qkey = RDMA_UDP_QKEY;
	ev->mc = mc;
	ev->discard = multicast_discard;
	ev->pub.param.ud.private_data = mc->context;
	if (id->qkey == RDMA_UDP_QKEY)
		ev->deliver = multicast_show;
	else
		multicast_fail(ev, -EINVAL); /* a QP has one Q_Key, and the group needs another */
	mc->next = id->memberships;
	id->memberships = mc;
	mc->events++;
	event_post(ev);
	return 0;
}

static int multicast_join(struct rdmacm_id *id, const struct sockaddr *addr, bool send_only,
			  void *context)
{
	struct rdmacm_multicast *mc;
	struct address group;
	int err = 0;

	if (id->pub.qp_type != IBV_QPT_UD || !id->device ||
	    (id->state != ID_ADDR_BOUND && id->state != ID_ADDR_RESOLVED))
		return -EINVAL;
	if (!address_get(&group, addr) || !address_is_multicast(&group) ||
	    address_is_ipv4(&group) != gid_is_ipv4(&id->path.local))
		return -EINVAL;
	mc = calloc(1, sizeof(*mc));
	if (!mc)
		return -ENOMEM;
	addr_copy(&mc->addr, addr);
	/* RoCEv2 groups use the IP address as GID */
	memcpy(mc->mgid.raw, group.ip.raw, sizeof(mc->mgid.raw));
	mc->context = context;
	mc->send_only = send_only;
	mc->fd = send_only ? -1 : multicast_member(id->device->ifindex, &group);
	if (mc->fd < 0 && !send_only)
		err = mc->fd;
	rdmacm_enter();
	if (!err)
		err = multicast_joined(id, mc);
	if (err)
		multicast_free(mc);
	rdmacm_leave();
	return err ? err : id_complete(id);
}

EXPORT int rdma_join_multicast(struct rdma_cm_id *cm_id, struct sockaddr *addr, void *context)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (!err && (!addr || !address_bytes(addr)))
		err = -EINVAL;
	return rdmacm_report(err ? err : multicast_join(id, addr, false, context));
}

EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *cm_id, struct rdma_cm_join_mc_attr_ex *attr,
				  void *context)
{
	CANCEL_HELD;
	const u32 needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (err)
		return rdmacm_report(err);
	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return rdmacm_report(-ENOTSUP);
	if ((attr->comp_mask & needed) != needed ||
	    attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED || !attr->addr ||
	    !address_bytes(attr->addr))
		return rdmacm_report(-EINVAL);
	return rdmacm_report(
		multicast_join(id, attr->addr,
			       attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			       context));
}

/* ---- leaving ---- */

/* Removes the membership from the id. Returns NULL if there is none. Caller holds the lock. */
static struct rdmacm_multicast *multicast_take(struct rdmacm_id *id, const struct sockaddr *addr)
{
	struct rdmacm_multicast **at = &id->memberships, *mc;
	struct sockaddr_storage want;

	addr_copy(&want, addr);
	while (*at && memcmp(&(*at)->addr, &want, sizeof(want)))
		at = &(*at)->next;
	mc = *at;
	if (mc)
		*at = mc->next;
	return mc;
}

/* Acknowledges the event of a synchronous id, which the library took. Without the lock. */
static void multicast_ack_own(struct rdmacm_id *id, const struct rdmacm_multicast *mc)
{
	struct rdma_cm_event *ev = id->pub.event;

	if (!id->sync || !ev || container_of(ev, struct rdmacm_event, pub)->mc != mc)
		return;
	id->pub.event = NULL;
	rdma_ack_cm_event(ev);
}

EXPORT int rdma_leave_multicast(struct rdma_cm_id *cm_id, struct sockaddr *addr)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	struct rdmacm_multicast *mc;
	int err = id_check(id);

	if (!err && (!addr || !address_bytes(addr)))
		err = -EINVAL;
	if (err)
		return rdmacm_report(err);
	rdmacm_enter();
	mc = multicast_take(id, addr);
	if (mc)
		multicast_drop_events(id, mc);
	rdmacm_leave();
	if (!mc)
		return rdmacm_report(-EADDRNOTAVAIL);
	multicast_ack_own(id, mc);
	rdmacm_enter();
	while (mc->events)
		pthread_cond_wait(&multicast_done, &rdmacm_lock);
	rdmacm_leave();
	if (mc->attached && mc->attached == id->pub.qp)
		ibv_detach_mcast(id->pub.qp, &mc->mgid, 0);
	multicast_free(mc);
	return 0;
}
