/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The exporter's listening socket. */
#ifndef EXPORT_LISTEN_H
#define EXPORT_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../../engine/types.h"

#define LISTEN_PORT 9791 /* RoCEv2's UDP port plus 5000 */

struct listen_at {
	struct sockaddr_storage addr;
	socklen_t len;
};

/*
 * Parses "127.0.0.1", "192.0.2.1:9000", "[::1]", "[fe80::1%eth0]:9000", or a Unix socket's path
 * with a '/'. Host names are refused, as their addresses may change. Returns 0 or -EINVAL.
 */
int listen_parse(const char *text, struct listen_at *at);
/* Returns a listening descriptor or -errno. */
int listen_open(const struct listen_at *at);
/* Removes a Unix socket's name. */
void listen_close(const struct listen_at *at);
/* Returns systemd's socket (sd_listen_fds(3)), -ENOENT without one, -EINVAL or -errno. */
int listen_inherited(void);
/* Formats the address as a URL, or unix:PATH. */
void listen_describe(int fd, char *text, size_t size);

#endif
