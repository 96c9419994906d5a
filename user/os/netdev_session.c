/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A socket on which rtnetlink is asked by any thread, one exchange at a time. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "netdev_nl.h"

/* What a setting was holds for as long. */
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

/* What is left of an exchange that failed. */
static void session_drain(struct netdev_session *s)
{
	char part[4096];

	while (recv(mnl_socket_get_fd(s->nl), part, sizeof(part), MSG_DONTWAIT) >= 0 ||
	       errno == EINTR || errno == ENOBUFS)
		;
}

/* Under its lock: nobody else's answer comes between. */
static int session_lock(struct netdev_session *s)
{
	int cancel;

	/* sending and receiving are cancellation points */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&s->lock);
	return cancel;
}

static void session_unlock(struct netdev_session *s, int cancel)
{
	pthread_mutex_unlock(&s->lock);
	pthread_setcancelstate(cancel, NULL);
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
