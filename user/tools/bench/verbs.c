/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads our libibverbs.so.1 and opens one of its devices. A UD queue pair of a device: receive
 * slots, posted again as soon as they are read, and send slots.
 */
#define _GNU_SOURCE /* dlvsym(), ppoll() */
#include "verbs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#include "../../os/clock.h"

#define PORT	  1
#define SETTLE_NS (200 * NSEC_PER_MSEC)

struct verbs verbs;

/* Finds a symbol. POSIX requires data and function pointers of the same size. */
static bool verbs_find(void *library, const char *name, const char *version, void *to)
{
	void *at = version ? dlvsym(library, name, version) : dlsym(library, name);

	memcpy(to, &at, sizeof(at));
	return at;
}

static const char *verbs_find_all(void *library)
{
#define VERBS_FIND(name, type, arguments)                              \
	if (!verbs_find(library, "ibv_" #name, NULL, &verbs.name))     \
		return "ibv_" #name;
	VERBS_CALLS(VERBS_FIND)
#undef VERBS_FIND
#define VERBS_FIND(name, type, arguments)                                               \
	if (!verbs_find(library, "xroce_" #name, "XROCE_PRIVATE_1", &verbs.name))       \
		return "xroce_" #name;
	VERBS_PRIVATE_CALLS(VERBS_FIND)
#undef VERBS_FIND
	return NULL;
}

int verbs_load(const struct command *command)
{
	char dir[2 * PATH_MAX + 64], file[3 * PATH_MAX];
	const char *missing;
	void *library;
	int err;

	if (verbs.open_device)
		return EXIT_OK;
	err = library_dir(dir, sizeof(dir));
	if (err) {
		fprintf(stderr, "xroce %s: xroce's libibverbs.so.1 is not in %s: %s\n",
			command->name,
			err == -ENOENT ? dir : "its place", strerror(-err));
		return EXIT_FAILED;
	}
	snprintf(file, sizeof(file), "%s/libibverbs.so.1", dir);
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "xroce %s: %s\n", command->name, dlerror());
		return EXIT_FAILED;
	}
	missing = verbs_find_all(library);
	if (!missing)
		return EXIT_OK;
	fprintf(stderr, "xroce %s: %s has no %s: another version of xroce\n", command->name, file,
		missing);
	memset(&verbs, 0, sizeof(verbs));
	return EXIT_FAILED;
}

/* ---- devices ---- */

/* Returns 0 or -errno. */
static int device_open_named(const char *iface, struct ibv_context **ctx)
{
	struct ibv_device **list = verbs.get_device_list(NULL);
	char name[IF_NAMESIZE + 8];
	int err = -ENODEV;

	if (!list)
		return -errno;
	snprintf(name, sizeof(name), "xroce_%s", iface);
	for (struct ibv_device **d = list; *d && err == -ENODEV; d++)
		if (!strcmp(verbs.get_device_name(*d), name)) {
			*ctx = verbs.open_device(*d);
			err = *ctx ? 0 : -errno;
		}
	verbs.free_device_list(list);
	return err;
}

static bool device_find_gid(struct device *dev, int entries)
{
	union ibv_gid gid;

	for (int i = 0; i < entries && i <= UINT8_MAX; i++)
		if (!verbs.query_gid(dev->ctx, PORT, i, &gid) &&
		    !memcmp(gid.raw, dev->gid.raw, sizeof(gid.raw))) {
			dev->gid_index = (u8)i;
			return true;
		}
	return false;
}

int device_open(const struct command *command, const char *iface, const struct gid *gid,
		struct device *dev)
{
	struct ibv_port_attr port = { 0 };
	const char *failed = NULL;
	int err;

	*dev = (struct device){ .gid = *gid };
	snprintf(dev->name, sizeof(dev->name), "%s", iface);
	err = device_open_named(iface, &dev->ctx);
	if (err)
		failed = "cannot open the device";
	else if (verbs.query_port(dev->ctx, PORT, (struct _compat_ibv_port_attr *)&port))
		failed = "cannot query the port";
	else if (!device_find_gid(dev, port.gid_tbl_len))
		failed = "the source address of the route is not a GID of the device";
	else if (!(dev->pd = verbs.alloc_pd(dev->ctx)))
		failed = "cannot allocate a protection domain";
	if (!failed) {
		dev->mtu = 128u << port.active_mtu;
		return EXIT_OK;
	}
	if (!err)
		err = -errno;
	fprintf(stderr,
		"xroce %s: cannot use %s: %s: %s; 'xroce doctor %s' shows what is missing\n",
		command->name, iface, failed, strerror(-err), iface);
	device_close(dev);
	return EXIT_FAILED;
}

void device_close(struct device *dev)
{
	if (dev->pd)
		verbs.dealloc_pd(dev->pd);
	if (dev->ctx)
		verbs.close_device(dev->ctx);
	dev->pd = NULL;
	dev->ctx = NULL;
}

struct ibv_ah_attr device_ah_attr(const struct device *dev, const struct gid *peer)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = PORT,
		.grh = { .sgid_index = dev->gid_index, .hop_limit = 64 },
	};

	memcpy(attr.grh.dgid.raw, peer->raw, sizeof(peer->raw));
	return attr;
}

struct ibv_ah *device_create_ah(const struct device *dev, const struct gid *peer)
{
	struct ibv_ah_attr attr = device_ah_attr(dev, peer);

	return verbs.create_ah(dev->pd, &attr);
}

/* ---- datagrams ---- */

static u8 *datagrams_slot(const struct datagrams *d, u32 slot)
{
	return d->memory + (size_t)slot * d->slot_bytes;
}

static int datagrams_post_receive(struct datagrams *d, u32 slot)
{
	struct ibv_sge sge = { (uintptr_t)datagrams_slot(d, slot), d->slot_bytes, d->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(d->qp, &wr, &bad);
}

static int datagrams_ready(struct datagrams *d)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = d->qkey };
	int err = -verbs.modify_qp(d->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							 IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = -verbs.modify_qp(d->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = -verbs.modify_qp(d->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	for (u32 i = 0; !err && i < DATAGRAM_SLOTS; i++)
		err = datagrams_post_receive(d, i);
	return err ? err : -ibv_req_notify_cq(d->recv_cq, 0);
}

static int datagrams_make_objects(struct datagrams *d, bool is_qp1)
{
	const size_t bytes = 2 * DATAGRAM_SLOTS * (size_t)d->slot_bytes;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = DATAGRAM_SLOTS, .max_recv_wr = DATAGRAM_SLOTS,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	d->memory = calloc(1, bytes);
	if (!d->memory)
		return -ENOMEM;
	d->mr = verbs.reg_mr(d->dev->pd, d->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!d->mr)
		return -errno;
	d->channel = verbs.create_comp_channel(d->dev->ctx);
	if (!d->channel || fcntl(d->channel->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	d->recv_cq = verbs.create_cq(d->dev->ctx, DATAGRAM_SLOTS, NULL, d->channel, 0);
	d->send_cq = verbs.create_cq(d->dev->ctx, DATAGRAM_SLOTS, NULL, NULL, 0);
	if (!d->recv_cq || !d->send_cq)
		return -errno;
	init.recv_cq = d->recv_cq;
	init.send_cq = d->send_cq;
	d->qp = is_qp1 ? verbs.create_qp1(d->dev->pd, &init) : verbs.create_qp(d->dev->pd, &init);
	return d->qp ? datagrams_ready(d) : -errno;
}

int datagrams_make(const struct device *dev, bool is_qp1, u32 qkey, u32 most_bytes,
		   struct datagrams *d)
{
	int err;

	*d = (struct datagrams){ .dev = dev, .qkey = qkey,
				 .slot_bytes = DATAGRAM_GRH + most_bytes };
	err = datagrams_make_objects(d, is_qp1);
	if (err)
		datagrams_free(d);
	return err;
}

void datagrams_free(struct datagrams *d)
{
	if (d->qp)
		verbs.destroy_qp(d->qp);
	if (d->recv_cq)
		verbs.destroy_cq(d->recv_cq);
	if (d->send_cq)
		verbs.destroy_cq(d->send_cq);
	if (d->channel)
		verbs.destroy_comp_channel(d->channel);
	if (d->mr)
		verbs.dereg_mr(d->mr);
	free(d->memory);
	*d = (struct datagrams){ 0 };
}

static void datagrams_reap(struct datagrams *d)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(d->send_cq, 1, &wc) > 0)
		d->done++;
}

int datagrams_send(struct datagrams *d, struct ibv_ah *ah, u32 qpn, const void *data, u32 len)
{
	u8 *slot = datagrams_slot(d, DATAGRAM_SLOTS + d->sent % DATAGRAM_SLOTS);
	struct ibv_sge sge = { (uintptr_t)slot, len, d->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = d->qkey },
	}, *bad;
	int err;

	datagrams_reap(d);
	if (d->sent - d->done >= DATAGRAM_SLOTS)
		return -EAGAIN;
	memcpy(slot, data, len);
	err = -ibv_post_send(d->qp, &wr, &bad);
	if (!err)
		d->sent++;
	return err;
}

/* Reads the sender's GID from an IPv6 header, or from the IPv4 header in the last 20 bytes. */
static bool datagrams_sender(const u8 *grh, struct gid *from)
{
	*from = (struct gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	if (grh[0] >> 4 == 6)
		memcpy(from->raw, grh + 8, sizeof(from->raw));
	else if (grh[20] >> 4 == 4)
		memcpy(from->raw + 12, grh + 32, 4);
	else
		return false;
	return true;
}

/* Reads a valid receive, whose slot the caller then owns until the next call. */
static bool datagrams_read(struct datagrams *d, const struct ibv_wc *wc, struct datagram *out)
{
	const u8 *slot = datagrams_slot(d, (u32)wc->wr_id);

	if (wc->status != IBV_WC_SUCCESS || !(wc->wc_flags & IBV_WC_GRH) ||
	    wc->byte_len < DATAGRAM_GRH || !datagrams_sender(slot, &out->from))
		return false;
	out->wc = *wc;
	out->data = slot + DATAGRAM_GRH;
	out->len = wc->byte_len - DATAGRAM_GRH;
	return true;
}

int datagrams_give_back(struct datagrams *d, struct datagram *datagram)
{
	const bool has_slot = datagram->data;

	datagram->data = NULL;
	return has_slot && datagrams_post_receive(d, (u32)datagram->wc.wr_id) ? -EIO : 0;
}

int datagrams_take(struct datagrams *d, struct datagram *datagram)
{
	struct ibv_wc wc;
	int n;

	if (datagrams_give_back(d, datagram))
		return -EIO;
	while ((n = ibv_poll_cq(d->recv_cq, 1, &wc)) > 0) {
		if (datagrams_read(d, &wc, datagram))
			return 1;
		if (wc.status == IBV_WC_WR_FLUSH_ERR || datagrams_post_receive(d, (u32)wc.wr_id))
			return -EIO;
	}
	return n < 0 ? -EIO : 0;
}

static void datagrams_arm(struct datagrams *d)
{
	struct ibv_cq *cq;
	void *context;

	if (!verbs.get_cq_event(d->channel, &cq, &context))
		verbs.ack_cq_events(cq, 1);
	ibv_req_notify_cq(d->recv_cq, 0);
}

static void datagrams_poll(struct datagrams *const *d, u32 n, u64 timeout_ns)
{
	const struct timespec t = { .tv_sec = (time_t)(timeout_ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(timeout_ns % NSEC_PER_SEC) };
	struct pollfd p[2];

	for (u32 i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = d[i]->channel->fd, .events = POLLIN };
	if (ppoll(p, n, &t, NULL) <= 0)
		return;
	for (u32 i = 0; i < n; i++)
		if (p[i].revents)
			datagrams_arm(d[i]);
}

void datagrams_wait(struct datagrams *d, u64 timeout_ns)
{
	datagrams_poll(&d, 1, timeout_ns);
}

void datagrams_wait_both(struct datagrams *a, struct datagrams *b, u64 timeout_ns)
{
	struct datagrams *const both[] = { a, b };

	datagrams_poll(both, ARRAY_SIZE(both), timeout_ns);
}

void datagrams_settle(struct datagrams *d)
{
	const u64 end_ns = clock_now_ns() + SETTLE_NS;

	do
		datagrams_reap(d);
	while (d->sent != d->done && clock_now_ns() < end_ns);
}
