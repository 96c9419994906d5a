/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * rsocket(7) in a program with threads and signals: a close() that is interrupted, has no
 * descriptor, or a peer that does nothing; calls that do not wait while another thread waits in the
 * same call; clients that leave a listener; connect() after a failed connect(); a datagram peer
 * that starts again. A case ON_BOTH holds for the kernel's sockets, too.
 */
#define _GNU_SOURCE
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "both_sockets.h"

/* A time in which a call that does not wait has returned, and a thread has fallen asleep. */
enum { A_WHILE_MS = 200 };

static void wait_a_while(void)
{
	poll(NULL, 0, A_WHILE_MS);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- datagrams; first, as the process must not have the thread that reads them yet ---- */

/* Fails once without a free descriptor, then works. */
static bool datagram_after_no_descriptor(void)
{
	struct rlimit full, least;
	struct pollfd p = { .events = POLLIN };
	union address to = own(AF_INET, 0);
	socklen_t len = sizeof(to);
	char byte = 0;
	int d, other_end, next;

	MUST((d = rsocket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	MUST((next = dup(0)) >= 0 && !close(next) && !getrlimit(RLIMIT_NOFILE, &full));
	least = full;
	least.rlim_cur = (rlim_t)next + 1;
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
	next = (int)rrecv(d, &byte, 1, MSG_DONTWAIT);
	MUST(!setrlimit(RLIMIT_NOFILE, &full) && next == -1 && errno == EMFILE);
	MUST_EQ(rbind(d, &to.sa, sizeof(to.in)), 0);
	MUST_EQ(rgetsockname(d, &to.sa, &len), 0);
	MUST((other_end = rsocket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	MUST_EQ(rsendto(other_end, "x", 1, 0, &to.sa, sizeof(to.in)), 1);
	p.fd = d;
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST_EQ(rrecv(d, &byte, 1, 0), 1);
	MUST(!rclose(d) && !rclose(other_end));
	return true;
}

/* A peer that starts again at its port is reached, though it sends nothing itself. */
static bool datagram_peer_again_of(const struct calls *c, int family)
{
	struct pollfd p = { .events = POLLIN };
	union address to;
	char byte;
	int a, b;

	MUST(server_of(c, family, SOCK_DGRAM, &b, &to));
	MUST((a = c->make(family, SOCK_DGRAM, 0)) >= 0);
	for (int i = 0; i < 20; i++) {
		MUST_EQ(c->sendto(a, "1", 1, 0, &to.sa, length_of(family)), 1);
		MUST_EQ(c->recv(b, &byte, 1, 0), 1);
	}
	MUST(!c->close(b) && (b = c->make(family, SOCK_DGRAM, 0)) >= 0);
	MUST_EQ(c->bind(b, &to.sa, length_of(family)), 0);
	p.fd = b;
	for (int i = 0; i < WAIT_MS / A_WHILE_MS && !p.revents; i++) {
		MUST_EQ(c->sendto(a, "2", 1, 0, &to.sa, length_of(family)), 1);
		MUST(c->poll(&p, 1, A_WHILE_MS) >= 0);
	}
	MUST(p.revents == POLLIN && c->recv(b, &byte, 1, 0) == 1 && byte == '2');
	MUST(!c->close(a) && !c->close(b));
	return true;
}
ON_BOTH(datagram_peer_again)

static bool is_at_once(uint64_t since_ms)
{
	const uint64_t took_ms = now_ms() - since_ms;

	MUST(took_ms < 1000);
	return true;
}

/* A socket that does not wait, to an address without a host: the datagrams wait for ARP. */
static bool datagrams_to_no_host_of(const struct calls *c)
{
	const union address to = other(AF_INET, ABSENT, 7471);
	const uint64_t begun_ms = now_ms();
	int d, bytes = 4096;

	MUST((d = c->make(AF_INET, SOCK_DGRAM, 0)) >= 0);
	MUST_EQ(c->set(d, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	MUST_EQ(c->fcntl(d, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 100; i++)
		MUST(c->sendto(d, "x", 1, 0, &to.sa, sizeof(to.in)) == 1 || errno == EAGAIN);
	MUST(is_at_once(begun_ms));
	MUST_EQ(c->close(d), 0);
	return true;
}

static bool datagrams_to_no_host(void)
{
	return datagrams_to_no_host_of(&kernels) && datagrams_to_no_host_of(&rsockets);
}

/* Sends a first datagram of that stranger (rsocket_protocol.h) to the rsocket `to`. */
static bool sends_forged(int raw, const union address *from, const union address *to)
{
	struct {
		struct iphdr ip;
		struct udphdr udp;
		uint8_t header[16], bytes[4];
	} p = {
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
			.saddr = from->in.sin_addr.s_addr, .daddr = to->in.sin_addr.s_addr },
		.udp = { .source = from->in.sin_port, .dest = to->in.sin_port,
			 .len = htons(sizeof(p) - sizeof(p.ip)) },
		.header = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0x12, 0x34 },
	};

	memcpy(p.header + 12, &p.ip.saddr, 4);
	_Static_assert(sizeof(p) == 48, "without padding");
	MUST_EQ(sendto(raw, &p, sizeof(p), 0, &to->sa, sizeof(to->in)), sizeof(p));
	return true;
}

/* Answers to strangers that wait for ARP leave room in the socket for the program's datagrams. */
static bool datagrams_beside_strangers(void)
{
	const union address from = other(AF_INET, ABSENT, 7472);
	const int raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	struct pollfd p = { .events = POLLIN };
	union address to[2];
	char byte;
	int d[2];

	MUST(raw >= 0);
	for (int i = 0; i < 2; i++)
		MUST(server_of(&rsockets, AF_INET, SOCK_DGRAM, &d[i], &to[i]));
	p.fd = d[0];
	for (int i = 0; i < 600; i++) {
		MUST(sends_forged(raw, &from, &to[0]));
		MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
		MUST_EQ(rrecv(d[0], &byte, 1, 0), 1);
	}
	MUST_EQ(rsendto(d[0], "x", 1, MSG_DONTWAIT, &to[1].sa, sizeof(to[1].in)), 1);
	MUST(!close(raw) && !rclose(d[0]) && !rclose(d[1]));
	return true;
}

/* ---- rclose(), rshutdown() ---- */

/* Two streams of few receives. All those of s[1] are used, so that s[0] cannot end. */
static bool streams_full(int family, int s[2])
{
	int receives = 16, l;
	struct pollfd p;
	union address to;

	MUST(server_of(&rsockets, family, SOCK_STREAM, &l, &to));
	MUST_EQ(rsetsockopt(l, SOL_RDMA, RDMA_RQSIZE, &receives, sizeof(receives)), 0);
	MUST((s[0] = rsocket(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST_EQ(rsetsockopt(s[0], SOL_RDMA, RDMA_RQSIZE, &receives, sizeof(receives)), 0);
	MUST_ERR(rconnect(s[0], &to.sa, length_of(family)), EINPROGRESS);
	MUST((s[1] = raccept(l, NULL, NULL)) >= 0 && !rclose(l));
	p = (struct pollfd){ .fd = s[0], .events = POLLOUT };
	MUST(rpoll(&p, 1, WAIT_MS) == 1 && p.revents == POLLOUT);
	for (int i = 0; i < receives; i++)
		MUST_EQ(rsend(s[0], "x", 1, 0), 1);
	MUST_ERR((int)rsend(s[0], "x", 1, 0), EAGAIN);
	return true;
}

struct closer {
	pthread_t thread;
	int s, result;
	atomic_bool done;
};

static void *closer_run(void *of)
{
	struct closer *c = of;

	c->result = rclose(c->s);
	atomic_store(&c->done, true);
	return NULL;
}

static bool reads_to_the_end(int s)
{
	char bytes[16];

	MUST_EQ(rrecv(s, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
	MUST_EQ(rrecv(s, bytes, 1, 0), 0);
	return !rclose(s);
}

static void on_signal(int number)
{
}

static bool lingers(int s)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 60 };

	MUST_EQ(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return true;
}

/* With SO_LINGER, signals do not end rclose(), and the peer reads to the end. */
static bool close_with_signals(int family)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct closer c = { .done = false };
	int s[2];

	MUST(streams_full(family, s) && lingers(s[0]));
	c.s = s[0];
	MUST_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	MUST(!pthread_create(&c.thread, NULL, closer_run, &c));
	for (int i = 0; i < 3; i++) {
		wait_a_while();
		MUST(!atomic_load(&c.done) && !pthread_kill(c.thread, SIGUSR1));
	}
	wait_a_while();
	MUST(!atomic_load(&c.done));
	MUST(reads_to_the_end(s[1]));
	MUST(!pthread_join(c.thread, NULL));
	MUST_EQ(c.result, 0);
	signal(SIGUSR1, SIG_DFL);
	return true;
}
BOTH(close_with_signals)

/* Does not wait for a peer that makes no call, which reads to the end later. */
static bool close_does_not_wait(int family)
{
	uint64_t begun_ms;
	int s[2];

	MUST(streams_full(family, s) && !rfcntl(s[0], F_SETFL, 0));
	begun_ms = now_ms();
	MUST_EQ(rclose(s[0]), 0);
	MUST(is_at_once(begun_ms));
	wait_a_while();
	return reads_to_the_end(s[1]);
}
BOTH(close_does_not_wait)

/*
 * The same of rshutdown(), which cannot announce the end at once: s[0] has told s[1] of the
 * messages that were read, and three times that it is alive, which is as much as may be
 * outstanding. The announcement comes without a further call of s[0].
 */
static bool shutdown_does_not_wait(int family)
{
	char bytes[8] = "";
	int s[2], one = 1, none = 0;
	uint64_t begun_ms;

	MUST(streams_full(family, s));
	for (int i = 0; i < 8; i++)
		MUST_EQ(rsend(s[1], bytes, 1, 0), 1);
	MUST_EQ(rfcntl(s[0], F_SETFL, 0), 0);
	MUST_EQ(rrecv(s[0], bytes, 8, MSG_WAITALL), 8);
	MUST_EQ(rsetsockopt(s[0], IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)), 0);
	MUST_EQ(rsetsockopt(s[0], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)), 0);
	poll(NULL, 0, 3500);
	MUST_EQ(rsetsockopt(s[0], SOL_SOCKET, SO_KEEPALIVE, &none, sizeof(none)), 0);
	begun_ms = now_ms();
	MUST_EQ(rshutdown(s[0], SHUT_WR), 0);
	MUST(is_at_once(begun_ms));
	MUST(reads_to_the_end(s[1]));
	MUST_EQ(rclose(s[0]), 0);
	return true;
}

/* It takes seconds, and the family makes no difference. */
static bool shutdown_does_not_wait_v4(void)
{
	return shutdown_does_not_wait(AF_INET);
}

/* Without and with SO_LINGER; with it, rclose() waits. */
static bool closes_without_descriptors(int family, bool linger)
{
	struct closer c = { .done = false };
	struct rlimit full, least;
	bool done;
	int s[2];

	MUST(streams_full(family, s) && !getrlimit(RLIMIT_NOFILE, &full));
	MUST(!linger || lingers(s[0]));
	least = full;
	least.rlim_cur = 3;
	c.s = s[0];
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
	MUST(!pthread_create(&c.thread, NULL, closer_run, &c));
	wait_a_while();
	done = atomic_load(&c.done);
	MUST(!setrlimit(RLIMIT_NOFILE, &full) && done == !linger);
	MUST(reads_to_the_end(s[1]));
	MUST(!pthread_join(c.thread, NULL));
	return true;
}

static bool close_without_descriptors(int family)
{
	return closes_without_descriptors(family, false) &&
	       closes_without_descriptors(family, true);
}
BOTH(close_without_descriptors)

/* After both directions poll() finds the end. */
static bool is_shut(const struct calls *c, int s)
{
	struct pollfd p = { .fd = s, .events = POLLIN | POLLOUT | POLLRDHUP };
	char byte;

	MUST_EQ(c->shutdown(s, SHUT_RDWR), 0);
	MUST_EQ(c->poll(&p, 1, 0), 1);
	MUST_EQ(p.revents, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	MUST_EQ(c->recv(s, &byte, 1, 0), 0);
	MUST_ERR((int)c->send(s, "x", 1, MSG_NOSIGNAL), EPIPE);
	return true;
}

static bool shut_both_of(const struct calls *c, int family)
{
	int s[2];

	MUST(streams_open(c, family, s) && is_shut(c, s[0]));
	return streams_close(c, s);
}
ON_BOTH(shut_both)

/* The same before the peer has received the announcement. */
static bool shut_both_unheard(int family)
{
	int s[2];

	MUST(streams_full(family, s) && is_shut(&rsockets, s[0]));
	MUST(reads_to_the_end(s[1]));
	MUST_EQ(rclose(s[0]), 0);
	return true;
}
BOTH(shut_both_unheard)

static atomic_bool sets;

static void *sets_options(void *of)
{
	int s = *(int *)of, one = 1, none = 0;

	atomic_store(&sets, true);
	while (!rsetsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &none, sizeof(none)) &&
	       !rsetsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)))
		;
	return NULL;
}

/* Options of a socket that is closed meanwhile: the list of keepalives keeps no closed socket. */
static bool options_of_a_closed(void)
{
	pthread_t thread;
	int s;

	for (int i = 0; i < 300; i++) {
		atomic_store(&sets, false);
		MUST((s = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
		MUST(!pthread_create(&thread, NULL, sets_options, &s));
		while (!atomic_load(&sets))
			sched_yield();
		MUST(!rclose(s) && !pthread_join(thread, NULL));
	}
	return true;
}

/* ---- several threads in the same call ---- */

/* Waits until *done, at most WAIT_MS. */
static bool soon(atomic_bool *done)
{
	for (int i = 0; i < WAIT_MS / 10 && !atomic_load(done); i++)
		poll(NULL, 0, 10);
	return atomic_load(done);
}

struct caller {
	const struct calls *c;
	pthread_t thread;
	int s, flags;
	bool sends;
	ssize_t result;
	int error;
	atomic_bool done;
};

static void *caller_run(void *of)
{
	static const char bytes[4096];
	struct caller *a = of;
	char byte;

	a->result = a->sends ? a->c->send(a->s, bytes, sizeof(bytes), a->flags) :
			       a->c->recv(a->s, &byte, 1, a->flags);
	a->error = errno;
	atomic_store(&a->done, true);
	return NULL;
}

static bool caller_begins(struct caller *a, const struct calls *c, int s, bool sends, int flags)
{
	*a = (struct caller){ .c = c, .s = s, .sends = sends, .flags = flags };
	return !pthread_create(&a->thread, NULL, caller_run, a);
}

static bool caller_failed(struct caller *a)
{
	MUST(soon(&a->done) && !pthread_join(a->thread, NULL));
	MUST_EQ(a->result, -1);
	MUST_EQ(a->error, EAGAIN);
	return true;
}

/* A thread waits; a second one does not wait for it, or only until its time-out. */
static bool beside_of(const struct calls *c, int s, bool sends)
{
	struct timeval t = { 0, 100000 };
	struct caller first, second;

	MUST(caller_begins(&first, c, s, sends, 0));
	wait_a_while();
	MUST(caller_begins(&second, c, s, sends, MSG_DONTWAIT) && caller_failed(&second));
	MUST_EQ(c->set(s, SOL_SOCKET, sends ? SO_SNDTIMEO : SO_RCVTIMEO, &t, sizeof(t)), 0);
	MUST(caller_begins(&second, c, s, sends, 0) && caller_failed(&second));
	MUST(!atomic_load(&first.done));
	MUST_EQ(c->shutdown(s, SHUT_RDWR), 0);
	MUST(soon(&first.done) && !pthread_join(first.thread, NULL));
	return true;
}

static bool receive_beside_of(const struct calls *c, int family)
{
	int s[2];

	MUST(streams_open(c, family, s));
	MUST_EQ(c->fcntl(s[0], F_SETFL, 0), 0);
	MUST(beside_of(c, s[0], false));
	return streams_close(c, s);
}
ON_BOTH(receive_beside)

/* Of rsockets alone: the buffers of TCP grow. */
static bool send_beside(int family)
{
	static char bytes[65536];
	int s[2];

	MUST(streams_open(&rsockets, family, s));
	for (int i = 0; i < 2; i++) {
		while (rsend(s[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		MUST_EQ(errno, EAGAIN);
		wait_a_while();
	}
	MUST_EQ(rfcntl(s[0], F_SETFL, 0), 0);
	MUST(beside_of(&rsockets, s[0], true));
	return streams_close(&rsockets, s);
}
BOTH(send_beside)

/* ---- a listener ---- */

/* Requests a connection of a listening rsocket and never confirms it. */
static struct rdma_cm_id *half_client(struct rdma_event_channel *ch, union address to)
{
	const uint8_t data[40] = { [0] = 1, [3] = 16, [23] = 2, [38] = 4 };
	struct rdma_conn_param param = some_param(data, sizeof(data));
	struct rdma_cm_id *id = resolved(ch, RDMA_PS_TCP, to);

	param.qp_num = fresh_qpn();
	if (!id || rdma_connect(id, &param) || !take(ch, id, RDMA_CM_EVENT_CONNECT_RESPONSE))
		return NULL;
	return id;
}

/* A listener *l, two connections that it has answered and nobody confirms, and *c, which waits. */
static bool listener_full(int family, struct rdma_event_channel *ch, struct rdma_cm_id *half[2],
			  int *l, int *c)
{
	union address to;

	/* of three places, the last one is for other addresses */
	MUST(ch && server_of(&rsockets, family, SOCK_STREAM, l, &to) && !rlisten(*l, 2));
	for (int i = 0; i < 2; i++)
		MUST(half[i] = half_client(ch, to));
	MUST((*c = rsocket(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST_ERR(rconnect(*c, &to.sa, length_of(family)), EINPROGRESS);
	return true;
}

/* Clients that leave make room for those that wait. */
static bool clients_that_left(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct pollfd p = { .events = POLLIN };
	struct rdma_cm_id *half[2];
	int l, c, s;

	MUST(listener_full(family, ch, half, &l, &c));
	p.fd = l;
	MUST_EQ(rpoll(&p, 1, A_WHILE_MS), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_destroy_id(half[i]), 0);
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST((s = raccept(l, NULL, NULL)) >= 0);
	MUST(!rclose(c) && !rclose(s) && !rclose(l));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(clients_that_left)

/* A connection that is not confirmed within about a second gives its place to one that waits. */
static bool clients_that_never_confirm(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct pollfd p = { .events = POLLIN };
	struct rdma_cm_id *half[2];
	int l, c, s;

	MUST(listener_full(family, ch, half, &l, &c));
	p.fd = l;
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST((s = raccept(l, NULL, NULL)) >= 0);
	/* only as many as wait */
	MUST(take_status(ch, half[0], RDMA_CM_EVENT_REJECTED, 28) && no_event(ch));
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_destroy_id(half[i]), 0);
	MUST(!rclose(c) && !rclose(s) && !rclose(l));
	rdma_destroy_event_channel(ch);
	return true;
}

static bool clients_that_never_confirm_v4(void)
{
	return clients_that_never_confirm(AF_INET);
}

/* A listener at all addresses of both families, with a backlog of 2, and where to reach it. */
static bool listener_of_both(int *l, union address to[2])
{
	union address at = wild(AF_INET6, 0);
	socklen_t len = sizeof(at);

	MUST((*l = rsocket(AF_INET6, SOCK_STREAM, 0)) >= 0);
	MUST(!rbind(*l, &at.sa, sizeof(at.in6)) && !rlisten(*l, 2));
	MUST_EQ(rgetsockname(*l, &at.sa, &len), 0);
	to[0] = own(AF_INET, port_of(&at.sa));
	to[1] = own(AF_INET6, port_of(&at.sa));
	return true;
}

/*
 * One address requests more connections than may wait, and confirms none. Another one is answered,
 * and its further request waits for its turn and is not refused.
 */
static bool requests_of_one_address(void)
{
	enum { MANY = 140 };
	const uint8_t data[40] = { [0] = 1, [3] = 16, [23] = 2, [38] = 4 };
	struct rdma_event_channel *ch[2];
	struct rdma_conn_param param = some_param(data, sizeof(data));
	struct rdma_cm_id *many[MANY], *half;
	struct pollfd p = { .events = POLLOUT };
	union address to[2];
	int l, c, s;

	for (int i = 0; i < 2; i++)
		MUST(ch[i] = rdma_create_event_channel());
	MUST(listener_of_both(&l, to));
	for (int i = 0; i < MANY; i++)
		MUST(many[i] = resolved(ch[0], RDMA_PS_TCP, to[0]));
	for (int i = 0; i < MANY; i++) {
		param.qp_num = fresh_qpn();
		MUST_EQ(rdma_connect(many[i], &param), 0);
		MUST(i >= 2 || take(ch[0], many[i], RDMA_CM_EVENT_CONNECT_RESPONSE));
	}
	MUST(half = half_client(ch[1], to[1]));
	MUST((c = rsocket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST_ERR(rconnect(c, &to[1].sa, sizeof(to[1].in6)), EINPROGRESS);
	p.fd = c;
	MUST_EQ(rpoll(&p, 1, A_WHILE_MS), 0);
	MUST_EQ(rdma_destroy_id(half), 0);
	p = (struct pollfd){ .fd = l, .events = POLLIN };
	MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
	MUST((s = raccept(l, NULL, NULL)) >= 0);
	for (int i = 0; i < MANY; i++)
		MUST_EQ(rdma_destroy_id(many[i]), 0);
	MUST(!rclose(c) && !rclose(s) && !rclose(l));
	for (int i = 0; i < 2; i++)
		rdma_destroy_event_channel(ch[i]);
	return true;
}

/* Connections that are established, and wait for raccept(), leave the reserved places. */
static bool backlog_of_one_address(int family)
{
	enum { BACKLOG = 16 };
	struct pollfd p = { .events = POLLOUT };
	union address to;
	int l, c[BACKLOG];

	MUST(server_of(&rsockets, family, SOCK_STREAM, &l, &to) && !rlisten(l, BACKLOG));
	for (int i = 0; i < BACKLOG; i++) {
		MUST((c[i] = rsocket(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
		MUST_ERR(rconnect(c[i], &to.sa, length_of(family)), EINPROGRESS);
	}
	for (int i = 0; i < BACKLOG; i++) {
		p.fd = c[i];
		MUST_EQ(rpoll(&p, 1, WAIT_MS), 1);
		MUST_EQ(p.revents, POLLOUT);
	}
	for (int i = 0; i < BACKLOG; i++)
		MUST_EQ(rclose(c[i]), 0);
	return !rclose(l);
}

BOTH(backlog_of_one_address)

/* ---- connect() after one that failed ---- */

/* The port is shared by SO_REUSEADDR, which holds for each attempt. */
static bool connects_again(int family)
{
	union address at = own(family, 0), to;
	socklen_t len = sizeof(at);
	int one = 1, s[2], l;

	MUST(server_of(&rsockets, family, SOCK_STREAM, &l, &to) && !rclose(l));
	for (int i = 0; i < 2; i++) {
		MUST((s[i] = rsocket(family, SOCK_STREAM, 0)) >= 0);
		MUST_EQ(rsetsockopt(s[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
		MUST_EQ(rbind(s[i], &at.sa, length_of(family)), 0);
		MUST_EQ(rgetsockname(s[i], &at.sa, &len), 0);
	}
	for (int i = 0; i < 3; i++)
		MUST_ERR(rconnect(s[1], &to.sa, length_of(family)), ECONNREFUSED);
	MUST(!rclose(s[0]) && !rclose(s[1]));
	return true;
}
BOTH(connects_again)

const struct test_case man_cases[] = {
	CASE(datagram_after_no_descriptor),
	CASE(datagram_peer_again_v4),
	CASE(datagram_peer_again_v6),
	CASE(datagrams_to_no_host),
	CASE(datagrams_beside_strangers),
	CASE(close_with_signals_v4),
	CASE(close_with_signals_v6),
	CASE(close_does_not_wait_v4),
	CASE(close_does_not_wait_v6),
	CASE(shutdown_does_not_wait_v4),
	CASE(close_without_descriptors_v4),
	CASE(close_without_descriptors_v6),
	CASE(shut_both_v4),
	CASE(shut_both_v6),
	CASE(shut_both_unheard_v4),
	CASE(shut_both_unheard_v6),
	CASE(options_of_a_closed),
	CASE(receive_beside_v4),
	CASE(receive_beside_v6),
	CASE(send_beside_v4),
	CASE(send_beside_v6),
	CASE(clients_that_left_v4),
	CASE(clients_that_left_v6),
	CASE(clients_that_never_confirm_v4),
	CASE(requests_of_one_address),
	CASE(backlog_of_one_address_v4),
	CASE(backlog_of_one_address_v6),
	CASE(connects_again_v4),
	CASE(connects_again_v6),
	{ 0 },
};
