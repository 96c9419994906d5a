/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One netlink exchange and checked reads of attributes. It knows no message but generic netlink's
 * family lookup.
 */
#include <linux/genetlink.h>
#include <stdlib.h>

#include "netdev_nl.h"

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
	 * The kernel has answered by now (the next part of a dump is made as we read): no wait here
	 * is longer than its work.
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
	int ret;

	if (!nl)
		return -errno;
	ret = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno :
							       nl_exchange(nl, req, cb, arg);
	mnl_socket_close(nl);
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
