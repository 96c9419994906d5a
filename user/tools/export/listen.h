/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the exporter listens. */
#ifndef EXPORT_LISTEN_H
#define EXPORT_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../../engine/types.h"

#define LISTEN_PORT 9791 /* RoCEv2's UDP port and 5000 */

struct listen_at {
	struct sockaddr_storage addr;
	socklen_t len;
};

/*
 * "127.0.0.1", "192.0.2.1:9000", "[::1]", "[fe80::1%eth0]:9000", or a path of a Unix socket, which
 * has a '/'. No names: what they stand for may change. Returns 0 or -EINVAL.
 */
int listen_parse(const char *text, struct listen_at *at);
/* Returns a descriptor, or -errno. */
int listen_open(const struct listen_at *at);
/* A Unix socket's name is taken away. */
void listen_close(const struct listen_at *at);
/* The one that systemd has opened for this process (sd_listen_fds(3)); -ENOENT: none; -EINVAL. */
int listen_inherited(void);
/* As a URL, or unix:PATH. */
void listen_describe(int fd, char *text, size_t size);

#endif
