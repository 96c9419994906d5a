/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../os/ask.h"
#include "../os/kernel.h"
#include "prove.h"

#define FIRST_FREE_PORT 1024u /* by default: net.ipv4.ip_unprivileged_port_start */
#define PORTS_TRIED	256

/*
 * Binds a free port. Any user can take all ports that the kernel chooses from
 * (net.ipv4.ip_local_port_range). Returns 0 or -errno.
 */
static int prove_bind_any(int fd, struct sockaddr_in *at)
{
	u32 number;
	int err;

	at->sin_port = 0;
	for (u32 i = 0; bind(fd, (const struct sockaddr *)at, sizeof(*at)); i++) {
		if ((errno != EADDRINUSE && errno != EACCES) || i == PORTS_TRIED)
			return -errno;
		err = kernel_random(&number, sizeof(number));
		if (err)
			return err;
		at->sin_port = htons((u16)(FIRST_FREE_PORT +
					   number % (UINT16_MAX + 1 - FIRST_FREE_PORT)));
	}
	return 0;
}

static int prove_bind(int fd, const struct ask_challenge *challenge, u32 *port)
{
	const u32 low = challenge->first_port > 1 ?
				1 + challenge->nonce % (challenge->first_port - 1) :
				0;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(PROOF_ADDRESS(challenge->nonce)),
				  .sin_port = htons((u16)low) };
	socklen_t len = sizeof(at);

	if (bind(fd, (const struct sockaddr *)&at, sizeof(at))) {
		/* the thread lacks the capability, or another socket has the port */
		int err = prove_bind_any(fd, &at);

		if (err)
			return err;
	}
	if (getsockname(fd, (struct sockaddr *)&at, &len))
		return -errno;
	*port = ntohs(at.sin_port);
	return 0;
}

int prove_open(const struct ask_challenge *challenge, u32 *port)
{
	const int forced = PROOF_FORCED(challenge->nonce), plain = PROOF_RCVBUF(challenge->nonce),
		  on = 1;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	/* each may fail, and then proves nothing */
	setsockopt(fd, SOL_SOCKET, SO_MARK, &challenge->nonce, sizeof(challenge->nonce));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &forced, sizeof(forced)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &plain, sizeof(plain));
	/* lo may be down */
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	err = prove_bind(fd, challenge, port);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}
