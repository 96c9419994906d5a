/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../client/broker_socket.h"
#include "../os/close_fd.h"
#include "../os/kernel.h"
#include "../os/xdp_maps.h"
#include "client_report.h"

#define REPORTS_BYTES (1 << 19) /* the kernel allows twice as much: some 60 whole reports */
/* More than the socket holds, for a client that goes on sending while its reports are read. */
#define REPORTS_MAX 2048

/*
 * Reads a message. Returns 1: it is a report; 0: there is none; -EBADMSG: it is something
 * else; -ECONNRESET: the client has closed the socket.
 */
static int client_report_read(int fd, struct xroce_trace_report *t)
{
	struct iovec iov = { .iov_base = &t->record,
			     .iov_len = sizeof(t->record) + sizeof(t->entries) };
	/* without room for control data the kernel drops descriptors itself */
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	const ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -ECONNRESET;
	return n >= (ssize_t)sizeof(t->record) && !(msg.msg_flags & MSG_TRUNC) &&
			       (size_t)n == sizeof(t->record) + t->record.bytes ?
		       1 :
		       -EBADMSG;
}

/* Passes a report on, with the losses before it. Returns whether an observer wants more. */
static bool client_report_pass(struct client *c, struct xroce_trace_report *t)
{
	struct xroce_engine *engine = c->readonly_maps.engine;
	const u32 traced = atomic_load_explicit(shared_word(&engine->traced), memory_order_seq_cst);
	const u32 packets = atomic_load_explicit(shared_word(&engine->lost_packets),
						 memory_order_relaxed);
	const u32 events = atomic_load_explicit(shared_word(&engine->lost_events),
						memory_order_relaxed);
	const struct xroce_trace_record record = t->record; /* the program may change it */
	int wanted;

	t->record.lost_packets += packets - c->lost_packets;
	t->record.lost_events += events - c->lost_events;
	wanted = c->host ? host_report(c->broker->mux.host, c->host, t) :
			   kernel_program_run(c->report_program_fd, t, sizeof(*t));
	if (wanted == -ENOMEM) {
		/* the next report has these as well */
		c->lost_packets -= record.lost_packets + record.packets;
		c->lost_events -= record.lost_events + record.events;
		return true;
	}
	c->lost_packets = packets;
	c->lost_events = events;
	if (wanted <= 0)
		traced_clear(engine, traced);
	return wanted > 0;
}

static struct xroce_trace_report report; /* the broker has one thread */

static void client_report_ready(struct source *s, u32 events)
{
	struct client *c = container_of(s, struct client, reports);
	const int got = client_report_read(c->reports.fd, &report);

	if (got > 0 && c->readonly_maps.engine)
		client_report_pass(c, &report);
	if (got == -ECONNRESET)
		client_report_end(c);
}

void client_report_pass_all(struct client *c)
{
	bool wanted = c->readonly_maps.engine != NULL;
	int got = c->reports.fd >= 0;

	if (!got)
		return;
	for (u32 i = 0; i < REPORTS_MAX && got && got != -ECONNRESET; i++) {
		got = client_report_read(c->reports.fd, &report);
		if (got > 0 && wanted)
			wanted = client_report_pass(c, &report);
	}
	/* losses after the last report */
	if (wanted && (c->readonly_maps.engine->lost_packets != c->lost_packets ||
		       c->readonly_maps.engine->lost_events != c->lost_events)) {
		report.record = (struct xroce_trace_record){ 0 };
		client_report_pass(c, &report);
	}
	if (got == -ECONNRESET)
		client_report_end(c);
}

int client_report_begin(struct client *c, int *fd)
{
	const int room = REPORTS_BYTES;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ask_refuse_descriptors(pair[0]);
	/* without CAP_NET_ADMIN in the first user namespace the room is the system's default */
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	c->reports = (struct source){ .ready = client_report_ready, .fd = pair[0] };
	c->report_program_fd = c->host ? -1 : fcntl(*fd, F_DUPFD_CLOEXEC, 0);
	err = c->report_program_fd < 0 && !c->host ? -errno :
						     loop_add(c->broker->loop, &c->reports);
	if (err) {
		close_fd(&c->report_program_fd);
		close_fd(&c->reports.fd);
		close(pair[1]);
		return err;
	}
	*fd = pair[1];
	return 0;
}

void client_report_end(struct client *c)
{
	if (c->reports.fd < 0)
		return;
	loop_remove(c->broker->loop, &c->reports);
	close_fd(&c->reports.fd);
	close_fd(&c->report_program_fd);
}
