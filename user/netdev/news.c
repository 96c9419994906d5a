/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "news.h"

int news_open(struct news *n)
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
		news_close(n);
	}
	return err;
}

void news_close(struct news *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

static void news_read(const struct nlmsghdr *nlh, news_fn *fn, void *arg)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
	const struct ifaddrmsg *address = mnl_nlmsg_get_payload(nlh);
	const size_t len = mnl_nlmsg_get_payload_len(nlh);

	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		/* bridges send messages of their own family about their ports */
		if (len >= sizeof(*link) && link->ifi_family == AF_UNSPEC)
			fn(arg, nlh->nlmsg_type == RTM_DELLINK ? NEWS_GONE : NEWS_LINK,
			   (u32)link->ifi_index, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		if (len >= sizeof(*address))
			fn(arg, NEWS_ADDRESS, address->ifa_index, nlh);
		break;
	}
}

void news_take(struct news *n, news_fn *fn, void *arg)
{
	ssize_t len;

	/* ENOBUFS: messages were lost */
	while ((len = recv(n->fd, n->messages, sizeof(n->messages),
			   MSG_DONTWAIT | MSG_TRUNC)) > 0 ||
	       (len < 0 && errno == ENOBUFS)) {
		int left = (int)len;

		if (len < 0 || len > (ssize_t)sizeof(n->messages)) {
			fn(arg, NEWS_LOST, 0, NULL);
			continue;
		}
		for (const struct nlmsghdr *nlh = (const void *)n->messages;
		     mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			news_read(nlh, fn, arg);
	}
}
