/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce bench --server: serves one client and one test at a time. All input of a client is checked
 * (wire.c). A silent or malformed client loses only its own connection.
 */
#define _GNU_SOURCE /* accept4() */
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>
#include <poll.h>

#include "bench.h"

struct bench_session {
	struct bench_end end;
	struct device dev;
	char client[ADDRESS_TEXT];
	u32 tests;
};

/* ---- a test ---- */

static int bench_serve_rdma(struct bench_session *s, const struct bench_message *setup,
			    struct bench_outcome *out)
{
	struct bench_message ready = { .type = BENCH_READY };
	struct bench_rdma *r;
	int err = bench_rdma_make(&s->end, &setup->test, &r, &ready);

	if (!err)
		err = bench_rdma_connect(r, &ready, setup);
	if (!err)
		err = bench_tell(s->end.control, &ready);
	if (!err)
		err = bench_rdma_server(r, out);
	bench_rdma_free(r);
	return err;
}

static int bench_serve_sockets(struct bench_session *s, const struct bench_message *setup,
			       struct bench_outcome *out)
{
	struct bench_message ready = { .type = BENCH_READY };
	int err, fd = bench_socket_listen(&s->end, &setup->test, &ready);

	if (fd < 0)
		return fd;
	err = bench_tell(s->end.control, &ready);
	if (!err)
		return bench_socket_server(&s->end, &setup->test, fd, out);
	close(fd);
	return err;
}

/* Runs a test. Returns 0, or -errno at the end of the session. */
static int bench_serve_test(struct bench_session *s, const struct bench_message *setup)
{
	struct bench_outcome *out = calloc(1, sizeof(*out));
	struct bench_message m;
	int err;

	if (!out)
		return -ENOMEM;
	s->end.token = setup->token;
	err = bench_way_is_rdma(setup->test.way) ? bench_serve_rdma(s, setup, out) :
						   bench_serve_sockets(s, setup, out);
	if (!err)
		err = bench_hear(s->end.control, BENCH_STOP,
				 setup->test.duration_ns + BENCH_PATIENCE_NS, &m);
	m = (struct bench_message){ .type = err ? BENCH_FAILED : BENCH_DONE,
				    .status = (u32)-err,
				    .messages = out->messages,
				    .bytes = out->bytes,
				    .elapsed_ns = out->elapsed_ns };
	free(out);
	s->tests++;
	return bench_tell(s->end.control, &m) ? -EPIPE : err;
}

/* ---- a client ---- */

/* Returns EXIT_OK and the interface with this address, or EXIT_FAILED after an error message. */
static int bench_find_interface(const struct gid *gid, char name[IF_NAMESIZE])
{
	struct netdev *all;
	int n = netdev_list(&all), ret = EXIT_FAILED;
	char text[ADDRESS_TEXT];

	for (int i = 0; i < n && ret; i++)
		for (u32 g = 0; g < all[i].num_gids && ret; g++)
			if (gid_equal(&all[i].gid[g].gid, gid)) {
				memcpy(name, all[i].name, IF_NAMESIZE);
				ret = EXIT_OK;
			}
	if (n >= 0)
		free(all);
	if (ret)
		fprintf(stderr, "xroce bench: no device has the address %s of this connection\n",
			gid_text(gid, text));
	return ret;
}

/* Requires the client's GID to match its connection: no data is sent to a third host. */
static int bench_serve_hello(struct bench_session *s, const struct gid *own,
			     const struct gid *from)
{
	struct bench_message hello, answer = { .type = BENCH_HELLO, .gid = *own };
	char iface[IF_NAMESIZE];
	int err = bench_hear(s->end.control, BENCH_HELLO, BENCH_PATIENCE_NS, &hello);

	if (err)
		return err;
	if (!gid_equal(&hello.gid, from))
		return -EPROTO;
	s->end.peer = hello.gid;
	if (bench_find_interface(own, iface) || device_open(&command_bench, iface, own, &s->dev)) {
		answer = (struct bench_message){ .type = BENCH_FAILED, .status = ENODEV };
		bench_tell(s->end.control, &answer);
		return -ENODEV;
	}
	s->end.dev = &s->dev;
	answer.path_mtu = s->dev.mtu;
	return bench_tell(s->end.control, &answer);
}

static void bench_serve_client(int fd, const struct sockaddr_in6 *from)
{
	struct bench_session s = { .end = { .control = fd } };
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct bench_message m;
	struct gid client, gid;
	int err;

	memcpy(client.raw, &from->sin6_addr, sizeof(client.raw));
	gid_text(&client, s.client);
	err = getsockname(fd, (struct sockaddr *)&own, &len) ? -errno : 0;
	if (!err) {
		gid = gid_of_address(&own);
		err = bench_serve_hello(&s, &gid, &client);
	}
	while (!err) {
		err = bench_hear(fd, BENCH_SETUP, BENCH_PATIENCE_NS, &m);
		if (!err)
			err = bench_serve_test(&s, &m);
	}
	device_close(&s.dev);
	if (err == -ECONNRESET && s.tests)
		printf("xroce bench: %s: %u tests\n", s.client, s.tests);
	else
		printf("xroce bench: %s: %u tests, then: %s\n", s.client, s.tests, strerror(-err));
	fflush(stdout);
}

/* ---- listening ---- */

static int bench_listen(u16 port)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const int one = 1, zero = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) &&
	    !bind(fd, (const struct sockaddr *)&any, sizeof(any)) && !listen(fd, 8))
		return fd;
	fprintf(stderr, "xroce bench: cannot listen on TCP port %u: %s\n", port, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int bench_server(const struct bench_options *options)
{
	struct sockaddr_in6 from;
	struct pollfd p = { .events = POLLIN };
	bool served = false;
	socklen_t len;
	int fd;

	stop_catch_signals();
	if (options->iface && setenv(NETDEV_ENV, options->iface, 1))
		return EXIT_FAILED;
	if (verbs_load(&command_bench))
		return EXIT_FAILED;
	p.fd = bench_listen(options->port);
	if (p.fd < 0)
		return EXIT_FAILED;
	printf("xroce bench: listening on TCP port %u\n", options->port);
	fflush(stdout);
	while (!stop_requested() && !(options->once && served)) {
		if (poll(&p, 1, -1) <= 0)
			continue;
		len = sizeof(from);
		fd = accept4(p.fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		bench_serve_client(fd, &from);
		close(fd);
		served = true;
	}
	close(p.fd);
	return EXIT_OK;
}
