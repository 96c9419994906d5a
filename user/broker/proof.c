/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../client/prove.h"
#include "../os/ask.h"
#include "../os/netdev_nl.h"
#include "../os/privilege.h"
#include "proof.h"

/* Returns whether net.core.rmem_max allows PROOF_FORCED_MIN without CAP_NET_ADMIN. */
static bool proof_size_is_free(void)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), forced = PROOF_FORCED_MIN;
	int bytes = INT_MAX;
	socklen_t len = sizeof(bytes);

	if (fd < 0)
		return true;
	/* the kernel limits the size to the maximum, and reports twice the size */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &forced, sizeof(forced));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
	close(fd);
	return bytes / 2 >= PROOF_FORCED_MIN;
}

struct described {
	const struct ask_challenge *challenge;
	u32 port;
	struct rights *rights;
};

static int proof_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct described *d = arg;
	const u32 nonce = d->challenge->nonce;
	const struct nlattr *tb[INET_DIAG_MARK + 1];
	const struct inet_diag_msg *m = mnl_nlmsg_get_payload(nlh);
	u32 mark = 0, size, memory[SK_MEMINFO_VARS] = { 0 };

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*m))
		return MNL_CB_OK;
	nl_parse(nlh, sizeof(*m), tb, INET_DIAG_MARK);
	if (m->idiag_family != AF_INET || m->id.idiag_sport != htons((u16)d->port) ||
	    m->id.idiag_src[0] != htonl(PROOF_ADDRESS(nonce)) ||
	    !nl_get(tb[INET_DIAG_SKMEMINFO], memory, sizeof(memory)))
		return MNL_CB_OK;
	size = memory[SK_MEMINFO_RCVBUF];
	d->rights->here = size == 2 * (u32)PROOF_FORCED(nonce) ||
			  size == 2 * (u32)PROOF_RCVBUF(nonce);
	if (!d->rights->here)
		return MNL_CB_OK;
	d->rights->admin = size == 2 * (u32)PROOF_FORCED(nonce) && !proof_size_is_free();
	d->rights->raw = d->rights->admin || (nl_get(tb[INET_DIAG_MARK], &mark, sizeof(mark)) &&
					      mark == nonce);
	d->rights->low_ports = d->port < d->challenge->first_port || d->challenge->first_port <= 1;
	return MNL_CB_OK;
}

static int proof_read_diag(const struct ask_challenge *challenge, u32 port, struct rights *rights)
{
	char buf[NL_REQUEST_BYTES] __attribute__((aligned(8))) = { 0 };
	struct described d = { challenge, port, rights };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct inet_diag_req_v2 *req;
	int err;

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->sdiag_family = AF_INET;
	req->sdiag_protocol = IPPROTO_UDP;
	req->idiag_ext = 1u << (INET_DIAG_SKMEMINFO - 1);
	req->idiag_states = ~0u;
	/* the kernel looks up the socket that receives a packet from src to dst */
	req->id.idiag_dport = htons((u16)port);
	req->id.idiag_dst[0] = htonl(PROOF_ADDRESS(challenge->nonce));
	req->id.idiag_cookie[0] = req->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	err = nl_request(NETLINK_SOCK_DIAG, nlh, proof_cb, &d);
	/* no such socket; also on a kernel without udp_diag, see proof_find_way() */
	return err == -ENOENT ? 0 : err;
}

/* Returns 1 if a socket is bound to the address and port, 0 if none is, or -errno. */
static int proof_is_bound(u32 address, u32 port)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(address),
					.sin_port = htons((u16)port) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	int err;

	if (fd < 0)
		return -errno;
	/* lo may be down */
	err = setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)) ||
			      bind(fd, (const struct sockaddr *)&at, sizeof(at)) ?
		      -errno :
		      0;
	close(fd);
	return err == -EADDRINUSE ? 1 : err;
}

/*
 * A socket at any address takes the port of all. That a port below the first free one is bound
 * proves a capability; if there is no such port, no right depends on one.
 */
static int proof_read_bound(const struct ask_challenge *challenge, u32 port, struct rights *rights)
{
	const u32 address = PROOF_ADDRESS(challenge->nonce);
	const int here = proof_is_bound(address, port);
	const int at_all = here > 0 ? proof_is_bound(address ^ 1, port) : here;

	rights->here = here > 0 && !at_all;
	rights->low_ports = rights->here && port < challenge->first_port;
	return at_all < 0 ? at_all : 0;
}

int proof_read(enum proof_way way, const struct ask_challenge *challenge, u32 port,
	       struct rights *rights)
{
	*rights = (struct rights){ 0 };
	if (!port || port > UINT16_MAX)
		return 0;
	return way == PROOF_BY_DIAG ? proof_read_diag(challenge, port, rights) :
				      proof_read_bound(challenge, port, rights);
}

u32 proof_first_port(enum proof_way way, u32 first_port)
{
	const bool may_bind = privilege_has(privilege_caps(), CAP_NET_BIND_SERVICE);

	return way == PROOF_BY_BIND && !may_bind ? 0 : first_port;
}

int proof_find_way(void)
{
	const struct ask_challenge challenge = { .nonce = (u32)getpid() | 1u << 31 };
	enum proof_way way = PROOF_BY_DIAG;
	struct rights rights;
	u32 port;
	int fd = prove_open(&challenge, &port), err;

	if (fd < 0)
		return fd;
	err = proof_read(way, &challenge, port, &rights);
	if (err || !rights.here) {
		way = PROOF_BY_BIND;
		err = proof_read(way, &challenge, port, &rights);
	}
	close(fd);
	return err || !rights.here ? -EOPNOTSUPP : (int)way;
}

int proof_of_starter(struct rights *rights)
{
	const struct ask_challenge challenge = { .nonce = (u32)getpid() | 1u << 31 };
	int size = 0, mark = 0, fd;
	socklen_t len = sizeof(int);
	u32 port;

	*rights = (struct rights){ 0 };
	if (getauxval(AT_SECURE))
		return 0;
	fd = prove_open(&challenge, &port);
	if (fd < 0)
		return fd;
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len);
	getsockopt(fd, SOL_SOCKET, SO_MARK, &mark, &len);
	close(fd);
	rights->here = true;
	rights->admin = size == 2 * PROOF_FORCED(challenge.nonce) && !proof_size_is_free();
	rights->raw = rights->admin || (u32)mark == challenge.nonce;
	return 0;
}
