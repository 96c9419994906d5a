/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses and routes of rdma_cm, a line for each answer on standard output.
 *
 *   cm_addr resolve DST MS [SRC]	by which device, from which address; or the error
 *   cm_addr again DST COMMAND	the same twice, for 100 ms, with the command between
 *   cm_addr bind ADDR PORT	the device, or the error
 *   cm_addr listen ADDR PORT [only]	each request until it is killed, rejected. only: AFONLY
 *   cm_addr ask DST PORT		connects without a QP, and prints the result
 *   cm_addr watch ADDR		is bound to it, and prints its events
 *   cm_addr join ADDR GROUP	is a member until it is killed
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static struct sockaddr_storage address(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
					.ai_socktype = SOCK_STREAM };
	struct sockaddr_storage out = { 0 };
	struct addrinfo *ai;

	must(!getaddrinfo(host, port, &hints, &ai), "not an address: %s", host);
	memcpy(&out, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	return out;
}

static const char *text(const struct sockaddr *sa)
{
	static char out[INET6_ADDRSTRLEN];

	if (sa->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, out, sizeof(out));
	else
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)sa)->sin6_addr, out,
			  sizeof(out));
	return out;
}

static const char *device(const struct rdma_cm_id *of)
{
	return of->verbs ? ibv_get_device_name(of->verbs->device) : "-";
}

/* One line, seen at once by who reads it. */
#define say(...)                \
	do {                    \
		printf(__VA_ARGS__); \
		fflush(stdout); \
	} while (0)

static int error_of(const char *call)
{
	say("%s: %s\n", call, strerrorname_np(errno));
	return 0;
}

static void open_id(enum rdma_port_space space)
{
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel: %s", strerror(errno));
	must(!rdma_create_id(channel, &id, NULL, space), "rdma_create_id: %s",
	     strerror(errno));
}

static struct rdma_cm_event *event(void)
{
	struct rdma_cm_event *ev;

	must(!rdma_get_cm_event(channel, &ev), "rdma_get_cm_event: %s", strerror(errno));
	return ev;
}

/* Expects that event next; else prints the other one and returns false. */
static bool await(enum rdma_cm_event_type want)
{
	struct rdma_cm_event *ev = event();
	const bool is_it = ev->event == want;

	if (!is_it)
		say("%s %s\n", rdma_event_str(ev->event),
		    ev->status < 0 ? strerrorname_np(-ev->status) : "");
	rdma_ack_cm_event(ev);
	return is_it;
}

static bool resolve(const char *to, const char *port, const char *from, int ms)
{
	struct sockaddr_storage dst = address(to, port), src;

	if (from)
		src = address(from, "0");
	if (rdma_resolve_addr(id, from ? (struct sockaddr *)&src : NULL, (struct sockaddr *)&dst,
			      ms))
		return error_of("rdma_resolve_addr");
	say("resolving\n");
	return await(RDMA_CM_EVENT_ADDR_RESOLVED);
}

/* By another id. */
static void again(const char *to, const char *command)
{
	if (!resolve(to, "7471", NULL, WAIT_MS))
		return;
	must(!system(command), "%s", command);
	must(!rdma_destroy_id(id), "rdma_destroy_id: %s", strerror(errno));
	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id: %s",
	     strerror(errno));
	if (resolve(to, "7471", NULL, 100))
		say("resolved %s %s\n", device(id), text(rdma_get_local_addr(id)));
}

static void bind_to(const char *host, const char *port)
{
	struct sockaddr_storage to = address(host, port);

	if (rdma_bind_addr(id, (struct sockaddr *)&to)) {
		error_of("rdma_bind_addr");
		exit(0);
	}
	say("bound %s\n", device(id));
}

static void do_listen(bool only)
{
	struct rdma_cm_event *ev;

	must(!rdma_listen(id, 10), "rdma_listen: %s", strerror(errno));
	say("listening%s\n", only ? " only" : "");
	for (;;) {
		ev = event();
		say("%s %s %s\n", rdma_event_str(ev->event), device(ev->id),
		    text(rdma_get_local_addr(ev->id)));
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct rdma_cm_id *asked = ev->id;

			rdma_reject(asked, NULL, 0);
			rdma_ack_cm_event(ev);
			rdma_destroy_id(asked);
		} else {
			rdma_ack_cm_event(ev);
		}
	}
}

static void do_ask(const char *host, const char *port)
{
	struct rdma_conn_param param = { .qp_num = 77, .retry_count = 1 };
	struct rdma_cm_event *ev;

	if (!resolve(host, port, NULL, WAIT_MS))
		return;
	if (rdma_resolve_route(id, WAIT_MS)) {
		error_of("rdma_resolve_route");
		return;
	}
	if (!await(RDMA_CM_EVENT_ROUTE_RESOLVED))
		return;
	if (rdma_connect(id, &param)) {
		error_of("rdma_connect");
		return;
	}
	ev = event();
	say("%s %d\n", rdma_event_str(ev->event), ev->status);
	rdma_ack_cm_event(ev);
}

static void do_watch(void)
{
	struct rdma_cm_event *ev;

	for (;;) {
		ev = event();
		say("%s\n", rdma_event_str(ev->event));
		rdma_ack_cm_event(ev);
	}
}

static void do_join(const char *group)
{
	struct sockaddr_storage to = address(group, "0");

	if (rdma_join_multicast(id, (struct sockaddr *)&to, NULL)) {
		error_of("rdma_join_multicast");
		return;
	}
	if (await(RDMA_CM_EVENT_MULTICAST_JOIN))
		say("joined\n");
	do_watch();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	open_id(strcmp(what, "join") ? RDMA_PS_TCP : RDMA_PS_UDP);
	if (!strcmp(what, "resolve") && argc > 3) {
		if (resolve(argv[2], "7471", argc > 4 ? argv[4] : NULL, atoi(argv[3])))
			say("resolved %s %s\n", device(id), text(rdma_get_local_addr(id)));
	} else if (!strcmp(what, "again") && argc > 3) {
		again(argv[2], argv[3]);
	} else if (!strcmp(what, "bind") && argc > 3) {
		bind_to(argv[2], argv[3]);
	} else if (!strcmp(what, "listen") && argc > 3) {
		int on = 1;

		if (argc > 4)
			rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
		bind_to(argv[2], argv[3]);
		do_listen(argc > 4);
	} else if (!strcmp(what, "ask") && argc > 3) {
		do_ask(argv[2], argv[3]);
	} else if (!strcmp(what, "watch")) {
		bind_to(argv[2], "0");
		do_watch();
	} else if (!strcmp(what, "join") && argc > 3) {
		bind_to(argv[2], "0");
		do_join(argv[3]);
	} else {
		die("usage: see the source");
	}
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return 0;
}
