/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rsetsockopt(), rgetsockopt(), rfcntl(). */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "rsocket_dgram.h"
#include "rsocket_stream.h"

/* ---- setting ---- */

static u32 option_bytes(int value)
{
	/* doubled as in the kernel, for overhead */
	u64 bytes = value < 0 ? RSOCKET_MOST_BYTES : 2ull * (u32)value;

	return (u32)(bytes < RSOCKET_LEAST_BYTES ? RSOCKET_LEAST_BYTES :
		     bytes > RSOCKET_MOST_BYTES ? RSOCKET_MOST_BYTES : bytes);
}

/* True if sizes can no longer change: there are buffers. */
static bool option_is_fixed(struct rsocket *rs)
{
	return rs->type == SOCK_DGRAM ? dgram_of(rs)->started :
					stream_of(rs)->state >= STREAM_ADDRESS;
}

static int option_set_timeout(struct timeval *timeout, const void *value)
{
	struct timeval t;

	memcpy(&t, value, sizeof(t));
	if (t.tv_usec < 0 || t.tv_usec >= 1000000)
		return -EDOM;
	*timeout = t;
	return 0;
}

static int option_set_cm(struct rsocket *rs, int option, void *value, size_t bytes)
{
	if (rs->type == SOCK_DGRAM)
		return 0;
	return rdma_set_option(stream_of(rs)->id, RDMA_OPTION_ID, option, value, bytes) ?
		       -errno : 0;
}

static int option_set_socket(struct rsocket *rs, int name, const void *value, int number)
{
	int err;

	switch (name) {
	case SO_RCVTIMEO:
		return option_set_timeout(&rs->receive_timeout, value);
	case SO_SNDTIMEO:
		return option_set_timeout(&rs->send_timeout, value);
	case SO_LINGER:
		memcpy(&rs->linger, value, sizeof(rs->linger));
		return 0;
	case SO_REUSEADDR:
		err = option_set_cm(rs, RDMA_OPTION_ID_REUSEADDR, &number, sizeof(number));
		/* Once bound, there is nothing to reuse. */
		if (err && (err == -ENOSYS ||
			    (rs->type == SOCK_STREAM && stream_of(rs)->state != STREAM_NEW)))
			err = 0;
		if (!err)
			rs->reuse_address = number;
		return err;
	case SO_RCVBUF:
		if (!option_is_fixed(rs))
			rs->receive_bytes = option_bytes(number);
		return 0;
	case SO_SNDBUF:
		if (!option_is_fixed(rs))
			rs->send_bytes = option_bytes(number);
		return 0;
	case SO_KEEPALIVE:
		if (rs->type == SOCK_STREAM && rs->keepalive != (number != 0))
			connect_keepalive(stream_of(rs), number);
		rs->keepalive = number;
		return 0;
	default: /* SO_OOBINLINE */
		rs->oob_inline = number;
		return 0;
	}
}

static int option_set_tcp(struct rsocket *rs, int name, int number)
{
	switch (name) {
	case TCP_NODELAY:
		rs->no_delay = number;
		return 0;
	case TCP_KEEPIDLE:
		if (number <= 0)
			return -EINVAL;
		rs->keepalive_s = (u32)number;
		if (rs->keepalive)
			connect_keepalive(stream_of(rs), true);
		return 0;
	default:
		return 0; /* RC has its own mechanism */
	}
}

static int option_set_route(struct stream *s, const void *value, socklen_t bytes)
{
	void *copy;

	if (bytes > RSOCKET_MOST_ROUTE_BYTES)
		return -EINVAL;
	copy = malloc(bytes + 1);
	if (!copy)
		return -ENOMEM;
	if (bytes)
		memcpy(copy, value, bytes);
	free(s->route);
	s->route = copy;
	s->route_bytes = bytes;
	return 0;
}

static u32 option_within(int value, u32 least, u32 most)
{
	return value < 0 || (u32)value > most ? most : (u32)value < least ? least : (u32)value;
}

static int option_set_rdma(struct rsocket *rs, int name, const void *value, socklen_t bytes,
			   int number)
{
	if (option_is_fixed(rs))
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		rs->requests = option_within(number, RSOCKET_LEAST_REQUESTS, RSOCKET_MOST_REQUESTS);
		return 0;
	case RDMA_RQSIZE:
		rs->receives = option_within(number, RSOCKET_LEAST_REQUESTS, RSOCKET_MOST_REQUESTS);
		return 0;
	case RDMA_INLINE:
		rs->inlined = option_within(number, 0, RSOCKET_MOST_REQUESTS);
		return 0;
	case RDMA_IOMAPSIZE:
		if (number < 0)
			return -EINVAL;
		rs->iomap_size = wire_iomap_size((u32)number);
		return 0;
	default: /* RDMA_ROUTE */
		return rs->type == SOCK_STREAM ? option_set_route(stream_of(rs), value, bytes) :
						 -ENOTSUP;
	}
}

/* Settable options, with the minimum length of a value. */
static const struct {
	int level, name;
	socklen_t least;
} settable[] = {
	{ SOL_SOCKET, SO_RCVTIMEO, sizeof(struct timeval) },
	{ SOL_SOCKET, SO_SNDTIMEO, sizeof(struct timeval) },
	{ SOL_SOCKET, SO_LINGER, sizeof(struct linger) },
	{ SOL_SOCKET, SO_REUSEADDR, sizeof(int) },
	{ SOL_SOCKET, SO_RCVBUF, sizeof(int) },
	{ SOL_SOCKET, SO_SNDBUF, sizeof(int) },
	{ SOL_SOCKET, SO_KEEPALIVE, sizeof(int) },
	{ SOL_SOCKET, SO_OOBINLINE, sizeof(int) },
	{ SOL_RDMA, RDMA_SQSIZE, sizeof(int) },
	{ SOL_RDMA, RDMA_RQSIZE, sizeof(int) },
	{ SOL_RDMA, RDMA_INLINE, sizeof(int) },
	{ SOL_RDMA, RDMA_IOMAPSIZE, sizeof(int) },
	{ SOL_RDMA, RDMA_ROUTE, 0 },
	{ IPPROTO_TCP, TCP_NODELAY, sizeof(int) },
	{ IPPROTO_TCP, TCP_KEEPIDLE, sizeof(int) },
	{ IPPROTO_TCP, TCP_KEEPCNT, sizeof(int) },
	{ IPPROTO_TCP, TCP_KEEPINTVL, sizeof(int) },
	{ IPPROTO_TCP, TCP_MAXSEG, sizeof(int) },
	{ IPPROTO_TCP, TCP_CONGESTION, 0 },
	{ IPPROTO_IP, IP_TOS, 1 },
	{ IPPROTO_IPV6, IPV6_V6ONLY, sizeof(int) },
};

/* Checks the value of an option. Returns 0 or -errno; -ENOTSUP: not settable. */
static int option_check(int level, int name, const void *value, socklen_t bytes)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(settable); i++) {
		if (settable[i].level != level || settable[i].name != name)
			continue;
		if (bytes < settable[i].least)
			return -EINVAL;
		return bytes && !value ? -EFAULT : 0;
	}
	return -ENOTSUP;
}

static int option_set(struct rsocket *rs, int level, int name, const void *value, socklen_t bytes)
{
	int number = 0, err = option_check(level, name, value, bytes);

	/* The UDP socket of a datagram socket has these options and more. */
	if (rs->type == SOCK_DGRAM && level != SOL_RDMA) {
		if (setsockopt(rs->fd, level, name, value, bytes))
			return -errno;
		if (err || level != SOL_SOCKET)
			return 0;
	}
	if (err)
		return err;
	if (bytes >= sizeof(number))
		memcpy(&number, value, sizeof(number));
	else if (bytes)
		number = *(const u8 *)value;
	switch (level) {
	case SOL_SOCKET:
		return option_set_socket(rs, name, value, number);
	case SOL_RDMA:
		return option_set_rdma(rs, name, value, bytes, number);
	case IPPROTO_TCP:
		return option_set_tcp(rs, name, number);
	case IPPROTO_IP:
		err = option_set_cm(rs, RDMA_OPTION_ID_TOS, &(u8){ (u8)number }, 1);
		if (!err)
			rs->tos = (u8)number;
		return err;
	default: /* IPV6_V6ONLY */
		err = option_set_cm(rs, RDMA_OPTION_ID_AFONLY, &number, sizeof(number));
		if (!err)
			rs->v6_only = number;
		return err;
	}
}

/* ---- getting ---- */

/* Copies as much as there is room for. */
static int option_tell(void *value, socklen_t *bytes, const void *what, size_t n)
{
	*bytes = (socklen_t)min_u64(*bytes, n);
	if (*bytes)
		memcpy(value, what, *bytes);
	return 0;
}

/* Returns a negative timeout, which never waits, as 0 like the kernel. */
static int option_tell_timeout(void *value, socklen_t *bytes, const struct timeval *timeout)
{
	const struct timeval none = { 0 };

	return option_tell(value, bytes, timeout->tv_sec < 0 ? &none : timeout, sizeof(none));
}

/* Returns SO_ERROR and clears it. */
static int option_take_error(struct rsocket *rs)
{
	int error = rs->error;

	if (rs->type == SOCK_STREAM && stream_of(rs)->state == STREAM_FAILED)
		stream_of(rs)->told = true;
	rs->error = 0;
	return error;
}

/* Gets an integer option; false: there is none with this name. */
static bool option_number(struct rsocket *rs, int level, int name, int *n)
{
	struct stream *s = rs->type == SOCK_STREAM ? stream_of(rs) : NULL;

	if (level == SOL_SOCKET) {
		switch (name) {
		case SO_ERROR: *n = option_take_error(rs); return true;
		case SO_REUSEADDR: *n = rs->reuse_address; return true;
		case SO_KEEPALIVE: *n = rs->keepalive; return true;
		case SO_OOBINLINE: *n = rs->oob_inline; return true;
		case SO_RCVBUF: *n = (int)rs->receive_bytes; return true;
		case SO_SNDBUF: *n = (int)rs->send_bytes; return true;
		case SO_TYPE: *n = rs->type; return true;
		case SO_DOMAIN: *n = rs->domain; return true;
		case SO_PROTOCOL: *n = s ? IPPROTO_TCP : IPPROTO_UDP; return true;
		case SO_ACCEPTCONN: *n = s && s->state == STREAM_LISTENING; return true;
		case SO_BROADCAST: *n = 0; return true;
		}
	} else if (level == SOL_RDMA) {
		switch (name) {
		case RDMA_SQSIZE: *n = (int)rs->requests; return true;
		case RDMA_RQSIZE: *n = (int)rs->receives; return true;
		case RDMA_INLINE: *n = (int)rs->inlined; return true;
		case RDMA_IOMAPSIZE: *n = (int)rs->iomap_size; return true;
		}
	} else if (level == IPPROTO_IP && name == IP_TOS) {
		*n = rs->tos;
		return true;
	} else if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) {
		*n = rs->v6_only;
		return true;
	} else if (level == IPPROTO_TCP && s) {
		switch (name) {
		case TCP_NODELAY: *n = rs->no_delay; return true;
		case TCP_KEEPIDLE: *n = (int)rs->keepalive_s; return true;
		case TCP_KEEPCNT:
		case TCP_KEEPINTVL:
		case TCP_CONGESTION: *n = 1; return true;
		case TCP_MAXSEG:
			*n = s->id && s->id->route.num_paths ?
				     128 << s->id->route.path_rec->mtu : 2048;
			return true;
		}
	}
	return false;
}

static int option_get_tcp_info(struct stream *s, void *value, socklen_t *bytes)
{
	struct tcp_info info = {
		.tcpi_state = s->state == STREAM_CONNECTED ? TCP_ESTABLISHED :
			      s->state == STREAM_LISTENING ? TCP_LISTEN : TCP_CLOSE,
		.tcpi_snd_cwnd = s->rs.requests,
	};

	return option_tell(value, bytes, &info, sizeof(info));
}

/* Returns the paths of the route in the form of RDMA_OPTION_IB_PATH. */
static int option_get_route(struct stream *s, void *value, socklen_t *bytes)
{
	struct ibv_path_data data = { 0 };
	u8 *at = value;
	socklen_t got = 0;
	int i;

	if (*bytes < (s->route ? s->route_bytes : sizeof(data)))
		return -EINVAL;
	if (s->route)
		return option_tell(value, bytes, s->route, s->route_bytes);
	for (i = 0; i < s->id->route.num_paths && got + sizeof(data) <= *bytes; i++) {
		const struct ibv_sa_path_rec *rec = &s->id->route.path_rec[i];

		memset(&data, 0, sizeof(data));
		data.flags = rec->preference;
		data.path.dgid = rec->dgid;
		data.path.sgid = rec->sgid;
		data.path.dlid = rec->dlid;
		data.path.slid = rec->slid;
		data.path.flowlabel_hoplimit = htobe32(be32toh(rec->flow_label) << 8 |
						       rec->hop_limit);
		data.path.tclass = rec->traffic_class;
		data.path.reversible_numpath = (u8)(rec->reversible << 7 | 1);
		data.path.pkey = rec->pkey;
		data.path.qosclass_sl = htobe16(rec->sl);
		/* "exactly", in the upper two bits */
		data.path.mtu = rec->mtu | 2 << 6;
		data.path.rate = rec->rate | 2 << 6;
		data.path.packetlifetime = rec->packet_life_time | 2 << 6;
		memcpy(at + got, &data, sizeof(data));
		got += sizeof(data);
	}
	*bytes = got;
	return 0;
}

static int option_get(struct rsocket *rs, int level, int name, void *value, socklen_t *bytes)
{
	int number;

	if (!bytes || (!value && *bytes))
		return -EFAULT;
	/* The sizes belong to the queue pair, the other options to the UDP socket. */
	if (rs->type == SOCK_DGRAM && level != SOL_RDMA &&
	    (level != SOL_SOCKET || (name != SO_RCVBUF && name != SO_SNDBUF)))
		return getsockopt(rs->fd, level, name, value, bytes) ? -errno : 0;
	if (option_number(rs, level, name, &number))
		return option_tell(value, bytes, &number, sizeof(number));
	if (level == SOL_SOCKET && name == SO_LINGER)
		return option_tell(value, bytes, &rs->linger, sizeof(rs->linger));
	if (level == SOL_SOCKET && name == SO_RCVTIMEO)
		return option_tell_timeout(value, bytes, &rs->receive_timeout);
	if (level == SOL_SOCKET && name == SO_SNDTIMEO)
		return option_tell_timeout(value, bytes, &rs->send_timeout);
	if (rs->type == SOCK_DGRAM)
		return -ENOTSUP;
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return option_get_tcp_info(stream_of(rs), value, bytes);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return option_get_route(stream_of(rs), value, bytes);
	return -ENOTSUP;
}

/* ---- for programs ---- */

static int option_report(struct rsocket *rs, int err)
{
	rsocket_put(rs);
	cancel_release();
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

RSOCKET_EXPORT int rsetsockopt(int socket, int level, int optname, const void *optval,
			       socklen_t optlen)
{
	struct rsocket *rs = rsocket_find(socket);
	int err;

	if (!rs)
		return -1;
	err = rsocket_lock(rs);
	if (!err)
		err = option_set(rs, level, optname, optval, optlen);
	rsocket_unlock(rs);
	return option_report(rs, err);
}

RSOCKET_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rsocket *rs = rsocket_find(socket);
	int err;

	if (!rs)
		return -1;
	err = rsocket_lock(rs);
	if (!err) {
		rsocket_progress(rs);
		err = option_get(rs, level, optname, optval, optlen);
	}
	rsocket_unlock(rs);
	return option_report(rs, err);
}

/* Returns the result of a command, or -errno. Caller holds the lock. */
static int option_fcntl(struct rsocket *rs, int cmd, int flags)
{
	switch (cmd) {
	case F_GETFL:
		return rs->file_flags | O_RDWR;
	case F_SETFL:
		rs->file_flags = flags & (O_NONBLOCK | O_APPEND | O_ASYNC);
		return 0;
	case F_GETFD:
		return rs->fd_flags;
	case F_SETFD:
		rs->fd_flags = flags & FD_CLOEXEC;
		return fcntl(rs->fd, F_SETFD, rs->fd_flags) ? -errno : 0;
	default:
		return -ENOTSUP;
	}
}

RSOCKET_EXPORT int rfcntl(int socket, int cmd, ... /* arg */)
{
	struct rsocket *rs = rsocket_find(socket);
	va_list args;
	int flags = 0, value;

	if (!rs)
		return -1;
	if (cmd == F_SETFL || cmd == F_SETFD) {
		va_start(args, cmd);
		flags = va_arg(args, int);
		va_end(args);
	}
	value = rsocket_lock(rs);
	if (!value)
		value = option_fcntl(rs, cmd, flags);
	rsocket_unlock(rs);
	return option_report(rs, value < 0 ? value : 0) ? -1 : value;
}
