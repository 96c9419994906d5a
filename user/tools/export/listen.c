/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* secure_getenv() */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../cli.h"
#include "listen.h"

#define LISTEN_BACKLOG 512
#define LISTEN_FDS_AT  3

/* ---- addresses ---- */

static bool listen_port(const char *text, u32 *port)
{
	return cli_number32(text, 0, UINT16_MAX, port);
}

static int listen_parse_unix(const char *text, struct listen_at *at)
{
	struct sockaddr_un *sun = (struct sockaddr_un *)&at->addr;

	if (strlen(text) >= sizeof(sun->sun_path))
		return -EINVAL;
	sun->sun_family = AF_UNIX;
	strcpy(sun->sun_path, text);
	at->len = sizeof(*sun);
	return 0;
}

/* Parses "::1", or "fe80::1%eth0" with the interface of a link-local address. */
static int listen_parse_ipv6(char *text, u32 port, struct listen_at *at)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&at->addr;
	char *scope = strchr(text, '%');

	if (scope) {
		*scope++ = 0;
		in6->sin6_scope_id = if_nametoindex(scope);
		if (!in6->sin6_scope_id)
			return -EINVAL;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((u16)port);
	at->len = sizeof(*in6);
	return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
}

int listen_parse(const char *text, struct listen_at *at)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&at->addr;
	char copy[96], *host = copy, *end;
	u32 port = LISTEN_PORT;

	*at = (struct listen_at){ 0 };
	if (strchr(text, '/'))
		return listen_parse_unix(text, at);
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	if (*host == '[') {
		host++;
		end = strchr(host, ']');
		if (!end || (end[1] && (end[1] != ':' || !listen_port(end + 2, &port))))
			return -EINVAL;
		*end = 0;
		return listen_parse_ipv6(host, port, at);
	}
	end = strchr(host, ':');
	if (end) {
		*end = 0;
		if (!listen_port(end + 1, &port))
			return -EINVAL;
	}
	in->sin_family = AF_INET;
	in->sin_port = htons((u16)port);
	at->len = sizeof(*in);
	return inet_pton(AF_INET, host, &in->sin_addr) == 1 ? 0 : -EINVAL;
}

/* ---- sockets ---- */

/* Binds; replaces the name of a socket without a listener, but never another file. */
static int listen_bind_unix(int fd, const struct listen_at *at)
{
	const struct sockaddr_un *sun = (const struct sockaddr_un *)&at->addr;
	struct stat st;
	int probe, err = 0;

	if (!bind(fd, (const struct sockaddr *)sun, at->len))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	/* connect() fails alike for a regular file and a socket without a listener */
	if (lstat(sun->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return -errno;
	if (!connect(probe, (const struct sockaddr *)sun, at->len) || errno != ECONNREFUSED)
		err = -EADDRINUSE;
	close(probe);
	if (!err && (unlink(sun->sun_path) || bind(fd, (const struct sockaddr *)sun, at->len)))
		err = -errno;
	return err;
}

int listen_open(const struct listen_at *at)
{
	const int family = at->addr.ss_family, on = 1;
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (family == AF_UNIX)
		err = listen_bind_unix(fd, at);
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		 (family == AF_INET6 &&
		  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) ||
		 bind(fd, (const struct sockaddr *)&at->addr, at->len))
		err = -errno;
	if (!err && listen(fd, LISTEN_BACKLOG))
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

void listen_close(const struct listen_at *at)
{
	if (at->addr.ss_family == AF_UNIX)
		unlink(((const struct sockaddr_un *)&at->addr)->sun_path);
}

int listen_inherited(void)
{
	const char *pid = secure_getenv("LISTEN_PID"), *fds = secure_getenv("LISTEN_FDS");
	int is_listening = 0, flags;
	socklen_t len = sizeof(is_listening);

	if (!pid || !fds || strtol(pid, NULL, 10) != getpid())
		return -ENOENT;
	flags = fcntl(LISTEN_FDS_AT, F_GETFL);
	if (strcmp(fds, "1") || flags < 0 ||
	    getsockopt(LISTEN_FDS_AT, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) ||
	    !is_listening)
		return -EINVAL;
	if (fcntl(LISTEN_FDS_AT, F_SETFL, flags | O_NONBLOCK) ||
	    fcntl(LISTEN_FDS_AT, F_SETFD, FD_CLOEXEC))
		return -errno;
	return LISTEN_FDS_AT;
}

void listen_describe(int fd, char *text, size_t size)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	const struct sockaddr_in *in = (const struct sockaddr_in *)&addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addr;
	char host[INET6_ADDRSTRLEN] = "?";

	if (getsockname(fd, (struct sockaddr *)&addr, &len) || !addr.ss_family) {
		snprintf(text, size, "?");
	} else if (addr.ss_family == AF_UNIX) {
		snprintf(text, size, "unix:%s", ((const struct sockaddr_un *)&addr)->sun_path);
	} else if (addr.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, size, "http://[%s]:%u/metrics", host, ntohs(in6->sin6_port));
	} else {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, size, "http://%s:%u/metrics", host, ntohs(in->sin_port));
	}
}
