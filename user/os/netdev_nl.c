/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A netlink exchange, checked reads of attributes, requests about an interface, the look-up of
 * netlink families, and notifications.
 */
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "close_fd.h"
#include "netdev_nl.h"
#include "thread.h"

/*
 * rtnetlink fills at most 32 KiB at once; a shorter buffer would truncate the link message of a NIC
 * with many virtual functions.
 */
#define NL_RECV_BYTES 32768

int nl_exchange(struct mnl_socket *nl, struct nlmsghdr *req, mnl_cb_t cb, void *arg)
{
	char *buf = malloc(NL_RECV_BYTES);
	int ret;

	if (!buf)
		return -ENOMEM;
	req->nlmsg_seq = 1;
	req->nlmsg_flags |= NLM_F_REQUEST;
	/*
	 * NLM_F_DUMP is two bits, one of which has another meaning in requests that change
	 * something.
	 */
	if ((req->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		req->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(nl, req, req->nlmsg_len) < 0) {
		ret = -errno;
		goto out;
	}

	/*
	 * The kernel has answered by now (the next part of a dump is made as we read): reads wait
	 * for its work at most.
	 */
	do {
		ssize_t n = mnl_socket_recvfrom(nl, buf, NL_RECV_BYTES);

		if (n < 0 && errno == EINTR) {
			ret = MNL_CB_OK;
			continue;
		}
		ret = n < 0 ? -1 :
			      mnl_cb_run(buf, (size_t)n, req->nlmsg_seq, mnl_socket_get_portid(nl),
					 cb, arg);
	} while (ret > MNL_CB_STOP);
	ret = ret < 0 ? -errno : 0;
out:
	free(buf);
	return ret;
}

int nl_request(int protocol, struct nlmsghdr *req, mnl_cb_t cb, void *arg)
{
	struct mnl_socket *nl = mnl_socket_open2(protocol, SOCK_CLOEXEC);
	int ret, cancel;

	if (!nl)
		return -errno;
	cancel = thread_disable_cancel();
	ret = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno :
							       nl_exchange(nl, req, cb, arg);
	mnl_socket_close(nl);
	thread_restore_cancel(cancel);
	return ret;
}

void nl_parse(const struct nlmsghdr *nlh, size_t header_len, const struct nlattr **table, u16 max)
{
	const struct nlattr *attr;

	memset(table, 0, (max + 1u) * sizeof(*table));
	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + header_len)
		return;
	mnl_attr_for_each(attr, nlh, header_len) {
		if (mnl_attr_get_type(attr) <= max)
			table[mnl_attr_get_type(attr)] = attr;
	}
}

bool nl_get(const struct nlattr *attr, void *dst, size_t len)
{
	if (!attr || mnl_attr_get_payload_len(attr) != len)
		return false;
	memcpy(dst, mnl_attr_get_payload(attr), len);
	return true;
}

bool nl_get_string(const struct nlattr *attr, char *dst, size_t len)
{
	size_t n;

	if (!attr)
		return false;
	n = strnlen(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));
	if (!n || n >= len)
		return false;
	memcpy(dst, mnl_attr_get_payload(attr), n);
	dst[n] = 0;
	return true;
}

struct nlmsghdr *nl_link_request(void *buf, u16 type, u32 ifindex)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = type;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = (int)ifindex;
	return nlh;
}

int nl_link_set_flags(u32 ifindex, u32 flags, u32 change)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = nl_link_request(buf, RTM_SETLINK, ifindex);
	struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);

	ifi->ifi_flags = flags;
	ifi->ifi_change = change;
	return nl_request(NETLINK_ROUTE, nlh, NULL, NULL);
}

int nl_link_forbid_addresses(u32 ifindex)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = nl_link_request(buf, RTM_SETLINK, ifindex);
	struct nlattr *families = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	struct nlattr *inet6 = mnl_attr_nest_start(nlh, AF_INET6);
	int err;

	mnl_attr_put_u8(nlh, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(nlh, inet6);
	mnl_attr_nest_end(nlh, families);
	err = nl_request(NETLINK_ROUTE, nlh, NULL, NULL);
	return err == -EAFNOSUPPORT ? 0 : err;
}

static int family_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[CTRL_ATTR_FAMILY_ID + 1];
	u16 id;

	nl_parse(nlh, sizeof(struct genlmsghdr), tb, CTRL_ATTR_FAMILY_ID);
	if (nl_get(tb[CTRL_ATTR_FAMILY_ID], &id, sizeof(id)))
		*(int *)arg = id;
	return MNL_CB_OK;
}

int nl_family(const char *name)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;
	int id = -ENOENT;
	int ret;

	nlh->nlmsg_type = GENL_ID_CTRL;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = CTRL_CMD_GETFAMILY;
	genl->version = 1;
	if (!mnl_attr_put_strz_check(nlh, sizeof(buf), CTRL_ATTR_FAMILY_NAME, name))
		return -EINVAL;
	ret = nl_request(NETLINK_GENERIC, nlh, family_cb, &id);
	return ret < 0 ? ret : id;
}

/* A socket for rtnetlink requests of any thread, one exchange at a time. */

/* How long a cached setting is valid. */
#define SETTING_NS (NSEC_PER_SEC / 10)

struct netdev_session {
	pthread_mutex_t lock;
	struct mnl_socket *nl;
	struct {
		u32 ifindex;
		u8 family, limit;
		u64 until_ns;
	} hop;
};

int netdev_session_open(struct netdev_session **out)
{
	struct netdev_session *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!s->nl || mnl_socket_bind(s->nl, 0, MNL_SOCKET_AUTOPID) < 0)
		err = -errno;
	if (err)
		netdev_session_close(s);
	else
		*out = s;
	return err;
}

void netdev_session_close(struct netdev_session *s)
{
	if (!s)
		return;
	if (s->nl)
		mnl_socket_close(s->nl);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Reads what a failed exchange left in the socket. */
static void session_drain(struct netdev_session *s)
{
	char part[4096];

	while (recv(mnl_socket_get_fd(s->nl), part, sizeof(part), MSG_DONTWAIT) >= 0 ||
	       errno == EINTR || errno == ENOBUFS)
		;
}

/* Locks the session, so that answers to other threads do not mix. Returns the old cancel state. */
static int session_lock(struct netdev_session *s)
{
	const int cancel = thread_disable_cancel();

	pthread_mutex_lock(&s->lock);
	return cancel;
}

static void session_unlock(struct netdev_session *s, int cancel)
{
	pthread_mutex_unlock(&s->lock);
	thread_restore_cancel(cancel);
}

int nl_route_request(struct netdev_session *s, struct nlmsghdr *req, mnl_cb_t cb, void *arg)
{
	int ret, cancel;

	if (!s)
		return nl_request(NETLINK_ROUTE, req, cb, arg);
	cancel = session_lock(s);
	ret = nl_exchange(s->nl, req, cb, arg);
	if (ret)
		session_drain(s);
	session_unlock(s, cancel);
	return ret;
}

u8 netdev_session_hop_limit(struct netdev_session *s, u8 family, u32 ifindex)
{
	int cancel = session_lock(s);
	u8 limit = 0;

	if (s->hop.family == family && s->hop.ifindex == ifindex &&
	    clock_now_ns() < s->hop.until_ns)
		limit = s->hop.limit;
	session_unlock(s, cancel);
	return limit;
}

void netdev_session_keep_hop_limit(struct netdev_session *s, u8 family, u32 ifindex, u8 limit)
{
	int cancel = session_lock(s);

	s->hop.family = family;
	s->hop.ifindex = ifindex;
	s->hop.limit = limit;
	s->hop.until_ns = clock_now_ns() + SETTING_NS;
	session_unlock(s, cancel);
}

/* ---- notifications about interfaces ---- */

int link_events_open(struct link_events *n)
{
	const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int err = 0;

	n->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (n->fd < 0)
		return -errno;
	if (bind(n->fd, (const struct sockaddr *)&groups, sizeof(groups))) {
		err = -errno;
		link_events_close(n);
	}
	return err;
}

void link_events_close(struct link_events *n)
{
	close_fd(&n->fd);
}

static void link_events_read(const struct nlmsghdr *nlh, link_events_fn *fn, void *arg)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
	const struct ifaddrmsg *address = mnl_nlmsg_get_payload(nlh);
	const size_t len = mnl_nlmsg_get_payload_len(nlh);

	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		/* bridges send messages of another family about their ports */
		if (len >= sizeof(*link) && link->ifi_family == AF_UNSPEC)
			fn(arg,
			   nlh->nlmsg_type == RTM_DELLINK ? LINK_EVENTS_GONE : LINK_EVENTS_LINK,
			   (u32)link->ifi_index, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		if (len >= sizeof(*address))
			fn(arg, LINK_EVENTS_ADDRESS, address->ifa_index, nlh);
		break;
	}
}

void link_events_take(struct link_events *n, link_events_fn *fn, void *arg)
{
	ssize_t len;

	/* ENOBUFS: messages were lost */
	while ((len = recv(n->fd, n->messages, sizeof(n->messages),
			   MSG_DONTWAIT | MSG_TRUNC)) > 0 ||
	       (len < 0 && errno == ENOBUFS)) {
		int left = (int)len;

		if (len < 0 || len > (ssize_t)sizeof(n->messages)) {
			fn(arg, LINK_EVENTS_LOST, 0, NULL);
			continue;
		}
		for (const struct nlmsghdr *nlh = (const void *)n->messages;
		     mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			link_events_read(nlh, fn, arg);
	}
}
