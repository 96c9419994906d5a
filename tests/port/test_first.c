/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: long */
/*
 * user/port/share.c and user/attach/first.c: a port that owns its interface becomes shared and
 * exclusive again. The test's scripted broker replaces `xroce serve`: where it exits, its refusals,
 * its faulty answers. In the test's own network namespace; needs root.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../user/attach/spawn.h"
#include "../../user/port/port_object.h"
#include "open_fds.h"

#define WAIT_MS 10000 /* far more than any step takes */
#define QPN	0x4711u

/* How the broker answers a question, or its replacement. */
enum turn { ANSWERS, REFUSES, HANGS_UP, FORGETS_FDS, OTHER_VERSION, KNOWS_IT };

struct script {
	const char *name;
	int spawn_err;
	enum turn join, claim, bind, open;
	bool no_mux; /* its program descriptor is invalid */
	bool no_tap;
};

static struct broker {
	const struct script *script;
	u32 starts;
	_Atomic u32 joins, claims, draws, releases, opens, binds, unbinds, leaves;
	_Atomic u32 binds_before_open;
	_Atomic u32 last_claim;
	u32 first_claim;
	struct xroce_qp *goes; /* the entry that is cleared when the first QP is claimed */
	struct ask_service last_service; /* of BIND or UNBIND, whose count is after it */
	bool knew_door, knew_link;
	int fd[ASK_JOIN_FDS];
	int conn;
	struct broker_socket door; /* its copy */
	bool runs;
	pthread_t thread;
} broker;

static struct netdev dev;

/* ---- a broker ---- */

static int broker_tap(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	return fd;
}

/* Passes everything, as the mux does with foreign packets. */
static int broker_program(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 2 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_XDP,
		    .prog_flags = 1u << 5 /* BPF_F_XDP_HAS_FRAGS */);

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "mux", "GPL", code, 2, &opts);
}

static void broker_make(void)
{
	broker.fd[ASK_JOIN_TAP] = broker.script->no_tap ? open("/dev/null", O_RDWR | O_CLOEXEC) :
							  broker_tap("tap0");
	broker.fd[ASK_JOIN_HAIRPIN] = broker_tap("hairpin");
	broker.fd[ASK_JOIN_CLIENTS] =
		bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "clients", 4, 4, 8, NULL);
	broker.fd[ASK_JOIN_MUX] = broker.script->no_mux ? open("/dev/null", O_RDWR | O_CLOEXEC) :
							  broker_program();
	for (u32 i = 0; i < ASK_JOIN_FDS; i++)
		assert_true(broker.fd[i] >= 0);
}

static bool broker_answer(const struct ask *ask, enum turn turn)
{
	struct ask_answer a = { .version = ASK_VERSION, .what = ask->what };
	union {
		char room[CMSG_SPACE(ASK_JOIN_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = &a, .iov_len = sizeof(a) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (turn == HANGS_UP)
		return false;
	if (turn == REFUSES)
		a.err = -ENOSPC;
	if (turn == KNOWS_IT)
		a.err = -EALREADY;
	if (turn == OTHER_VERSION)
		a.version++;
	if (ask->what == ASK_DRAW)
		a.number = QPN + 1;
	if (ask->what == ASK_JOIN && !a.err) {
		a.num_fds = ASK_JOIN_FDS - (turn == FORGETS_FDS);
		a.port = (struct ask_port){ .client = 3, .ifindex = dev.ifindex,
					    .pkeys = PKEY_TABLE_DEFAULT };
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(a.num_fds * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(a.num_fds * sizeof(int)) };
		memcpy(CMSG_DATA(&control.align), broker.fd, a.num_fds * sizeof(int));
	}
	return sendmsg(broker.conn, &msg, MSG_NOSIGNAL) == sizeof(a);
}

static bool broker_serve(const struct ask *ask)
{
	switch (ask->what) {
	case ASK_JOIN:
		atomic_fetch_add(&broker.joins, 1);
		return broker_answer(ask, broker.script->join);
	case ASK_CLAIM:
		atomic_store(&broker.last_claim, ask->number);
		if (!atomic_fetch_add(&broker.claims, 1))
			broker.first_claim = ask->number;
		else if (ask->number == broker.first_claim)
			return broker_answer(ask, KNOWS_IT);
		if (broker.goes)
			broker.goes->qpn = 0;
		return broker_answer(ask, broker.script->claim);
	case ASK_BIND:
		broker.last_service = ask->service;
		atomic_fetch_add(&broker.binds, 1);
		return broker_answer(ask, broker.script->bind);
	case ASK_UNBIND:
		broker.last_service = ask->service;
		atomic_fetch_add(&broker.unbinds, 1);
		return broker_answer(ask, ANSWERS);
	case ASK_OPEN:
		atomic_store(&broker.binds_before_open, broker.binds);
		atomic_fetch_add(&broker.opens, 1);
		return broker_answer(ask, broker.script->open);
	case ASK_DRAW:
		atomic_fetch_add(&broker.draws, 1);
		return broker_answer(ask, ANSWERS);
	case ASK_RELEASE:
		atomic_fetch_add(&broker.releases, 1);
		return broker_answer(ask, ANSWERS);
	case ASK_LEAVE:
		atomic_fetch_add(&broker.leaves, 1);
		return false;
	default:
		return false;
	}
}

static void *broker_main(void *arg)
{
	struct ask ask;

	while (recv(broker.conn, &ask, sizeof(ask), 0) == sizeof(ask) && broker_serve(&ask))
		;
	shutdown(broker.conn, SHUT_WR);
	while (recv(broker.conn, &ask, sizeof(ask), 0) == sizeof(ask))
		atomic_fetch_add(&broker.leaves, ask.what == ASK_LEAVE);
	shutdown(broker.conn, SHUT_RDWR);
	return NULL;
}

/* In place of user/attach/spawn.c. */
int spawn_heir(const struct netdev *d, const struct pkey_table *pkeys, const int *fd, u32 n)
{
	struct bpf_link_info info = { 0 };
	u32 len = sizeof(info);

	broker.starts++;
	if (broker.script->spawn_err)
		return broker.script->spawn_err;
	broker.knew_door = fcntl(fd[INHERIT_DOOR], F_GETFD) >= 0;
	broker.knew_link = !bpf_obj_get_info_by_fd(fd[INHERIT_LINK], &info, &len) &&
			   info.xdp.ifindex == dev.ifindex;
	broker_make();
	broker.conn = fcntl(fd[INHERIT_FIRST], F_DUPFD_CLOEXEC, 0);
	assert_int_equal(broker_socket_adopt(&broker.door,
					     fcntl(fd[INHERIT_DOOR], F_DUPFD_CLOEXEC, 0),
					     dev.ifindex),
			 0);
	fcntl(broker.conn, F_SETFL, 0);
	broker.runs = !pthread_create(&broker.thread, NULL, broker_main, NULL);
	return 0;
}

bool spawn_may(void)
{
	return broker.script->spawn_err != -EPERM;
}

int spawn_broker(const struct netdev *d, const struct pkey_table *pkeys)
{
	return -ENOENT;
}

static void broker_end(void)
{
	if (!broker.runs)
		return;
	shutdown(broker.conn, SHUT_RDWR);
	pthread_join(broker.thread, NULL);
	close(broker.conn);
	broker_socket_leave(&broker.door);
	for (u32 i = 0; i < ASK_JOIN_FDS; i++)
		close(broker.fd[i]);
	broker.runs = false;
}

/* ---- visitors ---- */

static int visitor_connect(void)
{
	struct sockaddr_un at;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	broker_socket_path(dev.ifindex, &at);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Asks again if this thread was delayed before its question: the process waits only briefly. */
static int visit(u32 what)
{
	const struct ask ask = { .version = ASK_VERSION, .what = what };
	int fd = visitor_connect();

	while (what && send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask)) {
		assert_int_equal(errno, EPIPE);
		close(fd);
		fd = visitor_connect();
	}
	return fd;
}

/* Checks that the visitor is disconnected. */
static void hangs_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	close(fd);
}

/*
 * A visitor gets the answer that the interface is in use. On a busy machine its question may come
 * too late after its connection: then it is disconnected, and asks again.
 */
static void is_refused(void)
{
	struct ask_answer answer;
	ssize_t n = 0;
	int fd = -1;

	for (u32 i = 0; i < 100 && n != sizeof(answer); i++) {
		if (fd >= 0)
			close(fd);
		fd = visit(ASK_HELLO);
		n = recv(fd, &answer, sizeof(answer), 0);
	}
	assert_int_equal(n, sizeof(answer));
	assert_int_equal(answer.what, ASK_HELLO);
	assert_int_equal(answer.err, -EBUSY);
	hangs_up(fd);
}

static u32 hook_program(void)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	assert_int_equal(bpf_xdp_query((int)dev.ifindex, 0, &query), 0);
	return query.prog_id;
}

static u32 door_pid(void)
{
	pid_t pid = 0;

	return broker_socket_holder(dev.ifindex, &pid) ? 0 : (u32)pid;
}

/* Checks no more than that: a full queue does not reveal the listener. */
static bool door_is_gone(void)
{
	struct sockaddr_un at;

	broker_socket_path(dev.ifindex, &at);
	return access(at.sun_path, F_OK) != 0;
}

/* A condition that the watch thread brings about. */
#define AWAIT(condition)                                                             \
	do {                                                                         \
		const u64 until_ns = clock_now_ns() + WAIT_MS * NSEC_PER_MSEC;       \
		while (!(condition)) {                                               \
			assert_true(clock_now_ns() < until_ns);                      \
			poll(NULL, 0, 1);                                            \
		}                                                                    \
	} while (0)

static bool joined(struct port *port)
{
	bool is;

	pthread_mutex_lock(&port->numbers);
	is = port->made.first.joined;
	pthread_mutex_unlock(&port->numbers);
	return is;
}

/* Checks that the watch thread reads the interface's messages, which are not its last input. */
static bool watch_thread_looks(struct port *port, u32 mtu)
{
	char command[64];
	u32 now = 0;

	snprintf(command, sizeof(command), "ip link set first0 mtu %u", mtu);
	assert_int_equal(system(command), 0);
	while (now != mtu) {
		port_lock(port);
		now = port->dev.mtu;
		port_unlock(port);
	}
	return true;
}

static const struct ask_service service = { .id = 0x01064000, .families = ASK_IPV4 | ASK_IPV6 };

/* Opens a port with a QP and a service. */
static struct port *port_with_a_qp(const struct script *script)
{
	struct port *port;

	broker = (struct broker){ .script = script };
	assert_int_equal(port_get(&dev, &port), 0);
	port->made.maps.qp[XROCE_QP_SLOT(QPN)].qpn = QPN;
	assert_int_equal(port_bind(port, &service), 0);
	return port;
}

static void is_alone(struct port *port, bool lets_in)
{
	pthread_mutex_lock(&port->numbers);
	assert_false(port->made.first.joined);
	assert_int_equal(port->made.asker.fd, -1);
	assert_int_equal(port->made.first.tap_fd, -1);
	assert_int_equal(port->made.first.clients_fd, -1);
	pthread_mutex_unlock(&port->numbers);
	port_lock(port);
	assert_false(port->shards.shared);
	assert_null(port->made.io[0].local_tx);
	port_unlock(port);
	assert_int_equal(hook_program(), port->made.info.prog_id);
	assert_int_equal(door_pid(), lets_in ? getpid() : 0);
}

/* ---- the tests ---- */

/* If the broker fails before others are admitted, the port stays unchanged. */
static void share__fails(void **state)
{
	static const struct script scripts[] = {
		{ "no program", .spawn_err = -ENOENT },
		{ "no privileges any more", .spawn_err = -EPERM },
		{ "the program fails", .spawn_err = -EIO },
		{ "ends at JOIN", .join = HANGS_UP },
		{ "refuses JOIN", .join = REFUSES },
		{ "gives too few", .join = FORGETS_FDS },
		{ "is of another version", .join = OTHER_VERSION },
		{ "gives no TAP device", .no_tap = true },
		{ "ends at CLAIM", .claim = HANGS_UP },
		{ "refuses CLAIM", .claim = REFUSES },
		{ "ends at BIND", .bind = HANGS_UP },
		{ "refuses BIND", .bind = REFUSES },
		{ "gives no program", .no_mux = true },
		{ "ends at OPEN", .open = HANGS_UP },
		{ "refuses OPEN", .open = REFUSES },
		{ "OPEN of another version", .open = OTHER_VERSION },
	};

	for (u32 i = 0; i < ARRAY_SIZE(scripts); i++) {
		const u32 before = open_fds();
		struct port *port = port_with_a_qp(&scripts[i]);

		print_message("%s\n", scripts[i].name);
		/* the broker may have admitted the visitor: it may ask again */
		if (scripts[i].open != ANSWERS)
			hangs_up(visit(ASK_HELLO));
		else
			is_refused();
		AWAIT(!joined(port));
		assert_int_equal(broker.starts, 1);
		/* where no broker can be started no more visitors are admitted */
		if (scripts[i].spawn_err == -ENOENT || scripts[i].spawn_err == -EPERM) {
			AWAIT(door_is_gone());
			is_alone(port, false);
		} else {
			is_alone(port, true);
			/* the next visitor is refused at once */
			is_refused();
			assert_int_equal(broker.starts, 1);
		}
		assert_int_equal(netdev_is_alone(dev.ifindex, -1), door_is_gone());
		/* a process that continues without its broker reports that */
		AWAIT(atomic_load(&broker.leaves) == broker.runs);
		broker_end();
		port_put(port);
		assert_int_equal(door_pid(), 0);
		assert_int_equal(open_fds(), before);
	}
}

/* A QP is destroyed during the report. */
static void share__a_qp_goes(void **state)
{
	static const struct script willing = { .name = "willing" };
	struct port *port = port_with_a_qp(&willing);
	int fd;

	broker.goes = &port->made.maps.qp[XROCE_QP_SLOT(QPN + 7)];
	broker.goes->qpn = QPN + 7;
	fd = visit(ASK_HELLO);
	AWAIT(atomic_load(&broker.opens) && joined(port));
	assert_int_equal(atomic_load(&broker.claims), 1);
	close(fd);
	broker_end();
	AWAIT(!joined(port));
	port_put(port);
	assert_int_equal(door_pid(), 0);
}

static void share__begins_and_ends(void **state)
{
	static const struct script willing = { .name = "willing" };
	const u32 before = open_fds();
	struct port *port = port_with_a_qp(&willing);
	const u32 own = hook_program();
	int fd = visit(ASK_HELLO);
	u32 qpn;

	AWAIT(atomic_load(&broker.opens) && joined(port));
	assert_true(broker.knew_door && broker.knew_link);
	assert_int_equal(atomic_load(&broker.joins), 1);
	assert_int_equal(atomic_load(&broker.claims), 1);
	assert_int_equal(atomic_load(&broker.last_claim), QPN);
	assert_int_not_equal(hook_program(), own);
	port_lock(port);
	assert_true(port->shards.shared);
	assert_non_null(port->made.io[0].local_tx);
	port_unlock(port);
	/* the broker assigns numbers */
	pthread_mutex_lock(&port->numbers);
	assert_int_equal(attach_draw(&port->made, &qpn), 0);
	assert_int_equal(qpn, QPN + 1);
	pthread_mutex_unlock(&port->numbers);
	port_release(port, qpn);
	assert_int_equal(atomic_load(&broker.releases), 1);
	/* each message of the connection is an answer, and its asker reads it */
	assert_true(broker_answer(&(struct ask){ .what = ASK_CLAIM }, ANSWERS));
	assert_true(watch_thread_looks(port, 4400) && watch_thread_looks(port, 4500));
	assert_true(joined(port));
	/* the broker has exited: numbers are assigned locally at once, the rest follows */
	pthread_mutex_lock(&port->numbers);
	broker_end();
	assert_true(port->made.first.joined);
	assert_int_not_equal(hook_program(), own);
	assert_int_equal(attach_draw(&port->made, &qpn), 0);
	assert_int_equal(qpn, 0);
	assert_int_equal(hook_program(), own);
	pthread_mutex_unlock(&port->numbers);
	AWAIT(!joined(port));
	assert_int_equal(hook_program(), own);
	is_alone(port, true);
	assert_false(atomic_load(&port->shards.gone));
	close(fd);
	port_put(port);
	assert_int_equal(door_pid(), 0);
	assert_int_equal(open_fds(), before);
}

/*
 * The broker learns of all services before others join, each once; then of a service's first bind
 * and last unbind. After the broker's exit this process manages them alone.
 */
static void share__tells_services(void **state)
{
	static const struct script willing = { .name = "willing" };
	const struct ask_service second = { .id = 2, .families = ASK_IPV4 },
				 third = { .id = 3, .families = ASK_IPV6 };
	struct port *port = port_with_a_qp(&willing);
	int fd;

	assert_int_equal(port_bind(port, &service), 0);
	assert_int_equal(port_bind(port, &second), 0);
	fd = visit(ASK_HELLO);
	AWAIT(atomic_load(&broker.opens) && joined(port));
	assert_int_equal(atomic_load(&broker.binds_before_open), 2);
	assert_memory_equal(&broker.last_service, &second, sizeof(second));
	assert_int_equal(port_bind(port, &third), 0);
	assert_int_equal(atomic_load(&broker.binds), 3);
	assert_memory_equal(&broker.last_service, &third, sizeof(third));
	assert_int_equal(port_unbind(port, &service), 0);
	assert_int_equal(atomic_load(&broker.unbinds), 0);
	assert_int_equal(port_unbind(port, &service), 0);
	assert_int_equal(atomic_load(&broker.unbinds), 1);
	assert_memory_equal(&broker.last_service, &service, sizeof(service));
	assert_int_equal(port_unbind(port, &service), -ENOENT);
	assert_int_equal(atomic_load(&broker.unbinds), 1);
	pthread_mutex_lock(&port->numbers);
	broker_end();
	pthread_mutex_unlock(&port->numbers);
	AWAIT(!joined(port));
	assert_int_equal(port_bind(port, &service), 0);
	assert_int_equal(port_unbind(port, &third), 0);
	close(fd);
	port_put(port);
}

/* The broker then unlinks the path. */
static void share__ends_with_the_port(void **state)
{
	static const struct script willing = { .name = "willing" };
	const u32 before = open_fds();
	struct port *port = port_with_a_qp(&willing);
	int fd = visit(ASK_HELLO);

	AWAIT(atomic_load(&broker.opens) && joined(port));
	port_put(port);
	assert_int_not_equal(door_pid(), 0);
	broker_end();
	broker_socket_sweep(&broker.door, dev.ifindex);
	assert_true(door_is_gone());
	close(fd);
	assert_int_equal(open_fds(), before);
}

/* The broker exits at the same time, and the port does not notice: no path is left. */
static void share__ends_with_the_broker(void **state)
{
	static const struct script willing = { .name = "willing" };
	const u32 before = open_fds();
	struct port *port = port_with_a_qp(&willing);
	int fd = visit(ASK_HELLO);

	AWAIT(atomic_load(&broker.opens) && joined(port));
	broker_socket_leave(&broker.door);
	assert_false(door_is_gone());
	port_put(port);
	assert_true(door_is_gone());
	broker_end();
	close(fd);
	assert_int_equal(open_fds(), before);
}

/* The broker exits, and the process could not start the next one. */
static void share__without_privileges_any_more(void **state)
{
	static const struct script willing = { .name = "willing" },
				   unable = { .name = "unable", .spawn_err = -EPERM };
	const u32 before = open_fds();
	struct port *port = port_with_a_qp(&willing);
	const u32 own = hook_program();
	int fd = visit(ASK_HELLO);

	AWAIT(atomic_load(&broker.opens) && joined(port));
	broker.script = &unable;
	broker_end();
	AWAIT(!joined(port));
	AWAIT(hook_program() == own);
	AWAIT(door_is_gone());
	is_alone(port, false);
	close(fd);
	port_put(port);
	assert_int_equal(open_fds(), before);
}

/* It reports its P_Keys itself, without a broker, to a process without a port. */
static void share__pkeys_are_told(void **state)
{
	static const struct script willing = { .name = "willing" };
	struct pkey_table pkeys = PKEY_TABLE_DEFAULT;
	struct port *port;

	setenv("XROCE_PKEY", "0x8001,2", 1);
	port = port_with_a_qp(&willing);
	/* unchanged */
	setenv("XROCE_PKEY", "0x8003", 1);
	assert_true(ask_pkeys_of(netdev_netns(), dev.ifindex, &pkeys));
	assert_int_equal(pkeys.num, 3);
	assert_int_equal(pkeys.key[1], 0x8001);
	assert_int_equal(pkeys.key[2], 2);
	assert_int_equal(broker.starts, 0);
	is_alone(port, true);
	port_put(port);
	unsetenv("XROCE_PKEY");
	/* no answer: the table stays */
	assert_false(ask_pkeys_of(netdev_netns(), dev.ifindex, &pkeys));
	assert_int_equal(pkeys.num, 3);
}

/* Only a question for a port starts a broker. */
static void share__is_not_asked_for(void **state)
{
	static const struct script willing = { .name = "willing" };
	struct port *port = port_with_a_qp(&willing);
	const struct ask other = { .version = ASK_VERSION + 1, .what = ASK_HELLO },
			 hello = { .version = ASK_VERSION, .what = ASK_HELLO };
	int fd;

	hangs_up(visit(0));
	hangs_up(visit(ASK_LIST));
	hangs_up(visit(ASK_STOP));
	hangs_up(visit(ASK_JOIN));
	close(visit(0));
	fd = visit(0);
	assert_int_equal(send(fd, &other, sizeof(other), MSG_NOSIGNAL), sizeof(other));
	hangs_up(fd);
	fd = visit(0);
	assert_int_equal(send(fd, &hello, sizeof(hello) - 1, MSG_NOSIGNAL), sizeof(hello) - 1);
	hangs_up(fd);
	assert_int_equal(broker.starts, 0);
	is_alone(port, true);
	port_put(port);
}

static void share__never(void **state)
{
	static const struct script willing = { .name = "willing" };
	struct port *port;

	setenv("XROCE_SHARE", "never", 1);
	port = port_with_a_qp(&willing);
	assert_int_equal(door_pid(), 0);
	assert_true(netdev_is_alone(dev.ifindex, -1));
	port_put(port);
	assert_false(netdev_is_alone(dev.ifindex, -1));
	unsetenv("XROCE_SHARE");
}

/* Works as on any interface. */
static void share__on_lo(void **state)
{
	struct netdev lo = { .ifindex = 1 };
	struct port *port;
	pid_t pid;

	assert_int_equal(netdev_refresh(&lo), 0);
	assert_true(lo.is_loopback);
	assert_int_equal(port_get(&lo, &port), 0);
	assert_true(first_fd(&port->made) >= 0);
	assert_int_equal(broker_socket_holder(lo.ifindex, &pid), 0);
	assert_int_equal(pid, getpid());
	port_put(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__fails),
		cmocka_unit_test(share__a_qp_goes),
		cmocka_unit_test(share__begins_and_ends),
		cmocka_unit_test(share__tells_services),
		cmocka_unit_test(share__ends_with_the_port),
		cmocka_unit_test(share__ends_with_the_broker),
		cmocka_unit_test(share__without_privileges_any_more),
		cmocka_unit_test(share__pkeys_are_told),
		cmocka_unit_test(share__is_not_asked_for),
		cmocka_unit_test(share__never),
		cmocka_unit_test(share__on_lo),
	};

	setenv("XROCE_QUIET", "1", 1);
	unsetenv("XROCE_SHARE");
	if (unshare(CLONE_NEWNET) ||
	    system("ip link add first0 mtu 4500 type veth peer first1 && "
		   "ip link set first0 up && ip link set first1 up && ip link set lo up"))
		return 1;
	dev.ifindex = if_nametoindex("first0");
	if (netdev_refresh(&dev))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
