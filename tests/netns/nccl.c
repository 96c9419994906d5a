/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way that NCCL loads and uses verbs, without NCCL, which needs GPUs. It is not linked with
 * libibverbs: it opens libibverbs.so.1 and looks up each symbol by its version; it reads the
 * device's place and the RoCE v2 GIDs from /sys/class/infiniband; it registers with relaxed
 * ordering by ibv_reg_mr_iova2; a thread waits for asynchronous events. A receiver sends its
 * buffer's address by an inline RDMA WRITE into a ring of the sender's slots; the sender answers by
 * an RDMA WRITE of the data and an RDMA WRITE with the length as immediate data. The two meet by
 * TCP.
 *
 *   nccl -d DEVICE -p PORT [-n MESSAGES] [-s BYTES] [SERVER]
 *
 * With SERVER it is the sender. Each byte is checked (but under -f); the receiver prints "nccl ok:
 * N messages of B bytes, M Gbit/s". Exit status 0 if all was right.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 8

/* name, version, in the order of the requests */
#define SYMBOLS(X)                                                                                 \
	X(ibv_fork_init, "IBVERBS_1.1")                                                            \
	X(ibv_get_device_list, "IBVERBS_1.1")                                                      \
	X(ibv_free_device_list, "IBVERBS_1.1")                                                     \
	X(ibv_get_device_name, "IBVERBS_1.1")                                                      \
	X(ibv_open_device, "IBVERBS_1.1")                                                          \
	X(ibv_close_device, "IBVERBS_1.1")                                                         \
	X(ibv_get_async_event, "IBVERBS_1.1")                                                      \
	X(ibv_ack_async_event, "IBVERBS_1.1")                                                      \
	X(ibv_event_type_str, "IBVERBS_1.1")                                                       \
	X(ibv_query_device, "IBVERBS_1.1")                                                         \
	X(ibv_query_gid, "IBVERBS_1.1")                                                            \
	X(ibv_query_qp, "IBVERBS_1.1")                                                             \
	X(ibv_alloc_pd, "IBVERBS_1.1")                                                             \
	X(ibv_dealloc_pd, "IBVERBS_1.1")                                                           \
	X(ibv_reg_mr_iova2, "IBVERBS_1.8")                                                         \
	X(ibv_reg_dmabuf_mr, "IBVERBS_1.12")                                                       \
	X(ibv_dereg_mr, "IBVERBS_1.1")                                                             \
	X(ibv_create_cq, "IBVERBS_1.1")                                                            \
	X(ibv_destroy_cq, "IBVERBS_1.1")                                                           \
	X(ibv_create_qp, "IBVERBS_1.1")                                                            \
	X(ibv_modify_qp, "IBVERBS_1.1")                                                            \
	X(ibv_destroy_qp, "IBVERBS_1.1")                                                           \
	X(ibv_query_ece, "IBVERBS_1.10")                                                           \
	X(ibv_set_ece, "IBVERBS_1.10")

static struct {
#define X(name, version) __typeof__(name) *name;
	SYMBOLS(X)
#undef X
	/* verbs.h has macros of these names */
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
} verbs;

/* What the receiver writes into the sender's ring; `turn` is written last and looked at first. */
struct slot {
	uint64_t addr;
	uint32_t rkey;
	uint32_t bytes;
	uint64_t turn;
};

/* What the two tell each other by TCP. */
struct hello {
	union ibv_gid gid;
	uint32_t qpn, psn, mtu;
	uint32_t ring_rkey;
	uint64_t ring_addr;
};

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("nccl: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, " (errno %d)\n", errno);
	va_end(args);
	exit(1);
}

static void *load(void *lib, const char *name, const char *version)
{
	void *symbol = dlvsym(lib, name, version);

	if (!symbol)
		die("no %s of %s: %s", name, version, dlerror());
	return symbol;
}

static void load_all(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW);

	if (!lib)
		die("%s", dlerror());
#define X(name, version) *(void **)&verbs.name = load(lib, #name, version);
	SYMBOLS(X)
#undef X
	*(void **)&verbs.query_port = load(lib, "ibv_query_port", "IBVERBS_1.1");
	*(void **)&verbs.reg_mr = load(lib, "ibv_reg_mr", "IBVERBS_1.1");
}

/* The first line of a file of the device's; false if there is none. */
static bool sysfs_read(const char *device, const char *file, char *line, int n)
{
	char path[512];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
	f = fopen(path, "r");
	ok = f && fgets(line, n, f);
	if (f)
		fclose(f);
	return ok;
}

/* Where it is in the machine's topology, by which NICs and GPUs are matched. */
static void find_place(const char *device)
{
	char link[512], *place;

	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", device);
	place = realpath(link, NULL);
	if (!place)
		die("%s leads nowhere", link);
	printf("%s is at %s\n", device, place);
	free(place);
}

/* The first GID that is RoCE v2 and of an IPv4 address, by the files. */
static int find_gid(struct ibv_context *context, const char *device, int n, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char file[64], type[64];

	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%d", i);
		if (!sysfs_read(device, file, type, sizeof(type)) || strncmp(type, "RoCE v2", 7))
			continue;
		if (verbs.ibv_query_gid(context, 1, i, gid))
			die("ibv_query_gid %d", i);
		if (!memcmp(gid->raw, mapped, sizeof(mapped)))
			return i;
	}
	die("%s has no RoCE v2 GID of an IPv4 address", device);
}

static void *watch_events(void *arg)
{
	struct ibv_async_event event;

	while (!verbs.ibv_get_async_event(arg, &event)) {
		fprintf(stderr, "nccl: event: %s\n", verbs.ibv_event_type_str(event.event_type));
		verbs.ibv_ack_async_event(&event);
	}
	return NULL;
}

static int meet(const char *server, int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, peer;

	if (server) {
		inet_pton(AF_INET, server, &at.sin_addr);
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
			die("connect to %s", server);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1))
		die("listen");
	peer = accept(fd, NULL, NULL);
	if (peer < 0)
		die("accept");
	close(fd);
	return peer;
}

static void exchange(int fd, const void *mine, void *theirs, size_t n)
{
	if (write(fd, mine, n) != (ssize_t)n || recv(fd, theirs, n, MSG_WAITALL) != (ssize_t)n)
		die("the peer has gone");
}

/* ---- verbs ---- */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void modify(struct ibv_qp_attr *attr, int mask)
{
	int err = verbs.ibv_modify_qp(qp, attr, mask);

	if (err)
		die("ibv_modify_qp to state %d: %s", attr->qp_state, strerror(err));
}

static void make_qp(void)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 4 * SLOTS,
						  .max_recv_wr = 2 * SLOTS,
						  .max_send_sge = 1,
						  .max_recv_sge = 1,
						  .max_inline_data = sizeof(struct slot) } };

	qp = verbs.ibv_create_qp(pd, &init);
	if (!qp)
		die("ibv_create_qp");
	modify(&(struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT,
				      .port_num = 1,
				      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE },
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void connect_qp(const struct hello *mine, const struct hello *theirs, int gid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu),
		.dest_qp_num = theirs->qpn,
		.rq_psn = theirs->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .grh = { .dgid = theirs->gid,
				      .sgid_index = (uint8_t)gid_index,
				      .hop_limit = 255 },
			     .port_num = 1 },
	};

	modify(&attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(&(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				      .timeout = 18,
				      .retry_cnt = 7,
				      .rnr_retry = 7,
				      .sq_psn = mine->psn,
				      .max_rd_atomic = 1 },
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_mr *register_memory(void *addr, size_t n)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ;
	struct ibv_mr *mr = verbs.ibv_reg_mr_iova2(pd, addr, n, (uintptr_t)addr,
						   access | IBV_ACCESS_RELAXED_ORDERING);

	if (!mr)
		die("ibv_reg_mr_iova2 of %zu bytes", n);
	return mr;
}

/* Completions until one of that opcode, whose immediate data is returned. */
static uint32_t wait_for(enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0)
			die("ibv_poll_cq");
		if (n && wc.status != IBV_WC_SUCCESS)
			die("completion %d with status %d", wc.opcode, wc.status);
		if (n && wc.opcode == opcode)
			return opcode == IBV_WC_RECV_RDMA_WITH_IMM ? ntohl(wc.imm_data) : 0;
	}
}

/* ---- messages ---- */

static uint8_t byte_at(uint32_t message, size_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 29 + message * 17 + 5);
}

/* Sends the requested number of messages; checks the bytes of each. */
static void send_all(struct slot *ring, uint8_t *data, const struct ibv_mr *mr, uint32_t messages,
		     uint32_t bytes, bool fast)
{
	for (uint32_t m = 0; m < messages; m++) {
		volatile _Atomic uint64_t *turn = (_Atomic uint64_t *)&ring[m % SLOTS].turn;
		struct slot *to = &ring[m % SLOTS];
		struct ibv_sge sge = { (uintptr_t)data, bytes, mr->lkey };
		struct ibv_send_wr with_size = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
						 .send_flags = IBV_SEND_SIGNALED,
						 .imm_data = htonl(bytes) };
		struct ibv_send_wr write = { .next = &with_size,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE }, *bad;

		for (size_t i = 0; !fast && i < bytes; i++)
			data[i] = byte_at(m, i);
		/* acquire: the slot was written before its turn */
		while (atomic_load_explicit(turn, memory_order_acquire) != m + 1)
			;
		if (to->bytes < bytes)
			die("message %u has room for %u", m, to->bytes);
		write.wr.rdma.remote_addr = with_size.wr.rdma.remote_addr = to->addr;
		write.wr.rdma.rkey = with_size.wr.rdma.rkey = to->rkey;
		if (ibv_post_send(qp, &write, &bad))
			die("ibv_post_send");
		wait_for(IBV_WC_RDMA_WRITE);
	}
}

/* Tells the sender where message m goes; the receive of the immediate data is posted before. */
static void receive_post(const struct hello *theirs, uint8_t *data, const struct ibv_mr *mr,
			 uint32_t m, uint32_t bytes)
{
	struct ibv_recv_wr recv = { .wr_id = m }, *bad_recv;
	struct slot slot = { (uintptr_t)data, mr->rkey, bytes, m + 1 };
	struct ibv_sge sge = { (uintptr_t)&slot, sizeof(slot), 0 };
	struct ibv_send_wr tell = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | (m % SLOTS ? 0 : IBV_SEND_SIGNALED),
		.wr.rdma = { theirs->ring_addr + m % SLOTS * sizeof(slot), theirs->ring_rkey },
	}, *bad;

	if (ibv_post_recv(qp, &recv, &bad_recv) || ibv_post_send(qp, &tell, &bad))
		die("message %u cannot be asked for", m);
}

static void receive_all(const struct hello *theirs, uint8_t *data, const struct ibv_mr *mr,
			uint32_t messages, uint32_t bytes, bool fast)
{
	for (uint32_t m = 0; m < messages; m++) {
		uint32_t got;

		if (!fast)
			memset(data, 0x5a, bytes);
		receive_post(theirs, data, mr, m, bytes);
		got = wait_for(IBV_WC_RECV_RDMA_WITH_IMM);
		if (got != bytes)
			die("message %u has %u bytes", m, got);
		for (size_t i = 0; !fast && i < bytes; i++)
			if (data[i] != byte_at(m, i))
				die("message %u is wrong at %zu", m, i);
	}
}

static struct ibv_context *open_named(const char *name)
{
	struct ibv_context *found = NULL;
	struct ibv_device **list;
	int n;

	if (verbs.ibv_fork_init())
		die("ibv_fork_init");
	list = verbs.ibv_get_device_list(&n);
	for (int i = 0; list && i < n && !found; i++)
		if (!strcmp(verbs.ibv_get_device_name(list[i]), name))
			found = verbs.ibv_open_device(list[i]);
	if (!found)
		die("no device %s", name);
	verbs.ibv_free_device_list(list);
	return found;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const char *device = NULL, *server;
	uint32_t messages = 100, bytes = 65536;
	struct hello mine = { 0 }, theirs;
	static struct slot ring[SLOTS];
	struct ibv_port_attr port_attr;
	int port = 0, gid_index, fd, opt;
	struct ibv_mr *mr, *ring_mr;
	bool fast = false;
	pthread_t watcher;
	uint8_t *data;
	double began;
	char c = 0;

	while ((opt = getopt(argc, argv, "d:p:n:s:f")) != -1)
		switch (opt) {
		case 'd': device = optarg; break;
		case 'p': port = atoi(optarg); break;
		case 'n': messages = (uint32_t)atoi(optarg); break;
		case 's': bytes = (uint32_t)atoi(optarg); break;
		case 'f': fast = true; break;
		default: return 2;
		}
	server = argv[optind];
	if (!device || !port || !bytes)
		die("-d DEVICE and -p PORT are needed");
	load_all();
	context = open_named(device);
	find_place(device);
	if (verbs.query_port(context, 1, &port_attr) || port_attr.state != IBV_PORT_ACTIVE ||
	    port_attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		die("port 1 is not an active one of Ethernet");
	gid_index = find_gid(context, device, port_attr.gid_tbl_len, &mine.gid);
	pthread_create(&watcher, NULL, watch_events, context);
	pthread_detach(watcher);
	pd = verbs.ibv_alloc_pd(context);
	cq = pd ? verbs.ibv_create_cq(context, 8 * SLOTS, NULL, NULL, 0) : NULL;
	data = aligned_alloc(4096, (bytes + 4095) & ~4095u);
	if (!cq || !data)
		die("no PD, CQ or memory");
	make_qp();
	mr = register_memory(data, bytes);
	ring_mr = register_memory(ring, sizeof(ring));
	mine.qpn = qp->qp_num;
	mine.psn = 0x123456;
	mine.mtu = port_attr.active_mtu;
	mine.ring_addr = (uintptr_t)ring;
	mine.ring_rkey = ring_mr->rkey;

	fd = meet(server, port);
	exchange(fd, &mine, &theirs, sizeof(mine));
	connect_qp(&mine, &theirs, gid_index);
	exchange(fd, &c, &c, 1);
	began = now_s();
	if (server) {
		send_all(ring, data, mr, messages, bytes, fast);
	} else {
		receive_all(&theirs, data, mr, messages, bytes, fast);
		printf("nccl ok: %u messages of %u bytes, %.3f Gbit/s\n", messages, bytes,
		       8e-9 * messages * bytes / (now_s() - began));
	}
	exchange(fd, &c, &c, 1);
	if (verbs.ibv_destroy_qp(qp) || verbs.ibv_dereg_mr(mr) || verbs.ibv_dereg_mr(ring_mr) ||
	    verbs.ibv_destroy_cq(cq) || verbs.ibv_dealloc_pd(pd))
		die("something is still in use");
	return 0;
}
