/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends and receives whole messages over the control connection, each with a time limit. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "bench.h"

/* Waits until the socket is ready. Returns 0, -ETIMEDOUT, -EINTR (stop requested) or -errno. */
static int bench_ready(int fd, short events, u64 end_ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	u64 now_ns;
	int n;

	while ((now_ns = clock_now_ns()) < end_ns) {
		n = poll(&p, 1, (int)((end_ns - now_ns) / NSEC_PER_MSEC) + 1);
		if (n > 0)
			return 0;
		if (stop_requested())
			return -EINTR;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

static int bench_move(int fd, u8 *data, size_t len, bool out, u64 timeout_ns)
{
	const u64 end_ns = clock_now_ns() + timeout_ns;
	ssize_t n;
	int err;

	while (len) {
		err = bench_ready(fd, out ? POLLOUT : POLLIN, end_ns);
		if (err)
			return err;
		n = out ? send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) :
			  recv(fd, data, len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int bench_tell(int fd, const struct bench_message *m)
{
	u8 wire[BENCH_WIRE_BYTES];

	bench_encode(wire, m);
	return bench_move(fd, wire, sizeof(wire), true, BENCH_PATIENCE_NS);
}

int bench_hear(int fd, enum bench_type type, u64 timeout_ns, struct bench_message *m)
{
	u8 wire[BENCH_WIRE_BYTES];
	const char *wrong;
	int err = bench_move(fd, wire, sizeof(wire), false, timeout_ns);

	if (err)
		return err;
	wrong = bench_decode(m, wire);
	if (!wrong && m->type == BENCH_FAILED)
		return -(int)m->status;
	if (!wrong && m->type == type)
		return 0;
	fprintf(stderr, "xroce bench: the other end sent %s\n",
		wrong ? wrong : "a message out of order");
	return -EPROTO;
}
