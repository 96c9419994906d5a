/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link_events.h"

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
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
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
