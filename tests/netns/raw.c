/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole frames, sent and received by raw packet QPs or by the kernel's packet sockets. Both ends
 * make the same frames from the same options: the receiver compares every byte.
 *
 *	raw send|recv DEVICE [OPTION...]	a raw packet QP
 *	raw wire-send|wire-recv IFACE [OPTION...]	a packet socket
 *	raw refused DEVICE			prints the errno of ibv_create_qp()
 *
 *	-k KIND		eth, arp, udp4, udp6, tcp4, vlan (a tagged udp4), roce (UDP to 4791)
 *	-p PORT		destination port
 *	-d MAC -s MAC	of the frames
 *	-n COUNT -l LENGTH	frames; the i-th is of LENGTH + i % 8 bytes
 *	-a		all frames are of LENGTH bytes
 *	-f FLOW		of recv: mac, udp4, udp6, tcp, vlan, src4, all, multicast
 *	-P PRIORITY
 *	-q QPS		of recv: QPS QPs with the same flow, each of which has a copy
 *	-x		of recv: also a flow of a larger priority number, on a QP that gets none
 *	-e		sleeps for events
 *	-i		of send: inline, and by ibv_wr_send()
 *	-z		of recv: none shall come; ends with TERM
 *
 * recv prints "ready" when it can receive, and "received COUNT" when all frames have arrived.
 */
#define _GNU_SOURCE /* strerrorname_np() */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define LONGEST	 4400
#define SLOTS	 256
#define QPS_MAX	 8
#define TAG	 0x6064 /* priority 3, 100 */
#define SOURCE	 0x0a4d0109
#define TARGET	 0x0a4d0108
#define SPORT	 4000
#define ROCE	 4791

static struct {
	const char *kind, *flow;
	unsigned char dst[6], src[6];
	unsigned int port, count, length, priority, qps;
	bool alike, lower, events, inlined, none;
} o = { .kind = "udp4",
	.flow = "mac",
	.port = 5000,
	.count = 100,
	.length = 100,
	.qps = 1,
	.dst = { 2, 0, 0, 0x77, 0, 1 },
	/* no interface's: what the kernels say to each other does not match */
	.src = { 2, 0, 0, 0x77, 0, 9 } };

/* ---- frames ---- */

static void put16(unsigned char *at, unsigned int value)
{
	at[0] = (unsigned char)(value >> 8);
	at[1] = (unsigned char)value;
}

static void put32(unsigned char *at, unsigned int value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static bool is_kind(const char *kind)
{
	return !strcmp(o.kind, kind);
}

static unsigned int length_of(unsigned int i)
{
	return o.alike ? o.length : o.length + i % 8;
}

static unsigned char *put_ipv4(unsigned char *ip, unsigned int bytes)
{
	unsigned int sum = 0;

	memset(ip, 0, 20);
	ip[0] = 0x45;
	put16(ip + 2, bytes);
	ip[8] = 64;
	ip[9] = is_kind("tcp4") ? 6 : 17;
	put32(ip + 12, SOURCE);
	put32(ip + 16, TARGET);
	for (unsigned int i = 0; i < 20; i += 2)
		sum += (unsigned int)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~((sum & 0xffff) + (sum >> 16)) & 0xffff);
	return ip + 20;
}

static unsigned char *put_ipv6(unsigned char *ip, unsigned int bytes)
{
	memset(ip, 0, 40);
	ip[0] = 0x60;
	put16(ip + 4, bytes - 40);
	ip[6] = 17;
	ip[7] = 64;
	memset(ip + 8, 0xfd, 16);
	memset(ip + 24, 0xfe, 16);
	return ip + 40;
}

/* Makes the i-th at frame. Returns its length. A pattern fills the part after the headers. */
static unsigned int make_frame(unsigned char *frame, unsigned int i)
{
	const unsigned int len = length_of(i);
	const bool v6 = is_kind("udp6");
	unsigned char *at = frame + 14, *end = frame + len;
	unsigned int port = is_kind("roce") ? ROCE : o.port;

	for (unsigned int n = 0; n < len; n++)
		frame[n] = (unsigned char)(i * 31 + n * 7 + 1);
	memcpy(frame, o.dst, 6);
	memcpy(frame + 6, o.src, 6);
	if (is_kind("eth") || is_kind("arp")) {
		put16(frame + 12, is_kind("arp") ? ETH_P_ARP : ETH_P_802_EX1);
		return len;
	}
	if (is_kind("vlan")) {
		put16(frame + 12, ETH_P_8021Q);
		put16(at, TAG);
		at += 4;
	}
	put16(at - 2, v6 ? ETH_P_IPV6 : ETH_P_IP);
	at = v6 ? put_ipv6(at, (unsigned int)(end - at)) : put_ipv4(at, (unsigned int)(end - at));
	put16(at, SPORT);
	put16(at + 2, port);
	if (!is_kind("tcp4")) {
		put16(at + 4, (unsigned int)(end - at));
		put16(at + 6, 0);
	}
	return len;
}

/* Packets of one stream may differ in length only if they cannot be joined. */
static void check_frame(const unsigned char *got, unsigned int len, unsigned int i)
{
	unsigned char want[LONGEST];
	const unsigned int want_len = make_frame(want, i);

	must(len == want_len, "frame %u is of %u bytes, not %u", i, len, want_len);
	for (unsigned int n = 0; n < len; n++)
		must(got[n] == want[n], "byte %u of frame %u is %02x, not %02x", n, i, got[n],
		     want[n]);
}

/* ---- raw packet QPs ---- */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct ibv_mr *mr;
static struct ibv_qp *qp[QPS_MAX + 1];
static unsigned char slots[QPS_MAX + 1][SLOTS][LONGEST];

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = { SLOTS, SLOTS, 2, 2, o.inlined ? 1000 : 0 },
		.send_cq = cq,
		.recv_cq = cq,
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *made = ibv_create_qp_ex(ctx, &init);

	must(made, "ibv_create_qp_ex: %s", strerror(errno));
	must(!ibv_modify_qp(made, &a, IBV_QP_STATE | IBV_QP_PORT), "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(made, &a, IBV_QP_STATE), "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(made, &a, IBV_QP_STATE), "RTS");
	return made;
}

static void open_all(const char *name)
{
	ctx = open_device(name);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	channel = o.events ? ibv_create_comp_channel(ctx) : NULL;
	must((cq = ibv_create_cq(ctx, 4096, NULL, channel, 0)), "ibv_create_cq");
	must((mr = ibv_reg_mr(pd, slots, sizeof(slots), IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	if (o.events)
		must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
}

/* In two pieces, so that lists are gone through. */
static void post_recv(unsigned int q, unsigned int slot)
{
	struct ibv_sge sge[2] = { { (uintptr_t)slots[q][slot], 50, mr->lkey },
				  { (uintptr_t)slots[q][slot] + 50, LONGEST - 50, mr->lkey } };
	struct ibv_recv_wr wr = {
		.wr_id = q * SLOTS + slot, .sg_list = sge, .num_sge = 2
	}, *bad;

	must(!ibv_post_recv(qp[q], &wr, &bad), "ibv_post_recv");
}

static struct ibv_flow *add_flow(struct ibv_qp *to, unsigned int priority)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		union {
			struct ibv_flow_spec_ipv4 ipv4;
			struct ibv_flow_spec_tcp_udp l4;
		};
	} f = {
		.attr = { .size = sizeof(f.attr) + sizeof(f.eth),
			  .num_of_specs = 1,
			  .port = 1,
			  .priority = (uint16_t)priority },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(f.eth) },
	};
	const bool udp4 = !strcmp(o.flow, "udp4"), udp6 = !strcmp(o.flow, "udp6");
	struct ibv_flow *flow;

	memcpy(f.eth.val.dst_mac, o.dst, 6);
	memset(f.eth.mask.dst_mac, 0xff, 6);
	memcpy(f.eth.val.src_mac, o.src, 6);
	memset(f.eth.mask.src_mac, 0xff, 6);
	if (udp4 || udp6 || !strcmp(o.flow, "tcp")) {
		f.eth.val.ether_type = htons(udp6 ? ETH_P_IPV6 : ETH_P_IP);
		f.eth.mask.ether_type = 0xffff;
		f.l4 = (struct ibv_flow_spec_tcp_udp){
			.type = udp4 || udp6 ? IBV_FLOW_SPEC_UDP : IBV_FLOW_SPEC_TCP,
			.size = sizeof(f.l4),
			.val = { .dst_port = htons((uint16_t)o.port) },
			.mask = { .dst_port = 0xffff },
		};
		f.attr.num_of_specs = 2;
		f.attr.size = (uint16_t)(f.attr.size + sizeof(f.l4));
	} else if (!strcmp(o.flow, "src4")) {
		f.ipv4 = (struct ibv_flow_spec_ipv4){
			.type = IBV_FLOW_SPEC_IPV4,
			.size = sizeof(f.ipv4),
			.val = { .src_ip = htonl(SOURCE) },
			.mask = { .src_ip = htonl(0xffffff00) },
		};
		f.attr.num_of_specs = 2;
		f.attr.size = (uint16_t)(f.attr.size + sizeof(f.ipv4));
	} else if (!strcmp(o.flow, "vlan")) {
		f.eth.val.vlan_tag = htons(TAG);
		f.eth.mask.vlan_tag = htons(0xfff);
	} else if (strcmp(o.flow, "mac") != 0) {
		f.attr.num_of_specs = 0;
		f.attr.size = sizeof(f.attr);
		f.attr.type = !strcmp(o.flow, "all") ? IBV_FLOW_ATTR_ALL_DEFAULT :
						       IBV_FLOW_ATTR_MC_DEFAULT;
	}
	flow = ibv_create_flow(to, &f.attr);
	must(flow, "ibv_create_flow: %s", strerror(errno));
	return flow;
}

static void await(struct ibv_wc *wc)
{
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc))) {
		struct ibv_cq *which;
		void *arg;

		if (!o.events)
			continue;
		must(!ibv_get_cq_event(channel, &which, &arg), "ibv_get_cq_event");
		ibv_ack_cq_events(which, 1);
		must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			break;
	}
	must(n == 1, "ibv_poll_cq: %d", n);
	must(wc->status == IBV_WC_SUCCESS, "a completion says %s", ibv_wc_status_str(wc->status));
}

static void receive(void)
{
	const unsigned int all = o.qps + o.lower;
	struct ibv_flow *flow[QPS_MAX + 1];
	unsigned int next[QPS_MAX + 1] = { 0 };
	struct ibv_wc wc;

	for (unsigned int q = 0; q < all; q++) {
		qp[q] = make_qp();
		for (unsigned int slot = 0; slot < SLOTS; slot++)
			post_recv(q, slot);
		flow[q] = add_flow(qp[q], o.priority + (q == o.qps));
	}
	printf("ready\n");
	fflush(stdout);
	if (o.none)
		pause();
	for (unsigned int i = 0; i < o.count * o.qps; i++) {
		unsigned int q, slot;

		await(&wc);
		q = (unsigned int)wc.wr_id / SLOTS;
		slot = (unsigned int)wc.wr_id % SLOTS;
		must(wc.opcode == IBV_WC_RECV && wc.qp_num == qp[q]->qp_num, "the completion");
		must(q < o.qps, "a frame for the flow that comes behind");
		check_frame(slots[q][slot], wc.byte_len, next[q]++);
		post_recv(q, slot);
	}
	for (unsigned int q = 0; q < o.qps; q++)
		must(next[q] == o.count, "QP %u has %u frames", q, next[q]);
	printf("received %u\n", o.count);
	for (unsigned int q = 0; q < all; q++) {
		must(ibv_destroy_qp(qp[q]) == EBUSY, "a QP with a flow is destroyed");
		must(!ibv_destroy_flow(flow[q]), "ibv_destroy_flow");
		must(!ibv_destroy_qp(qp[q]), "ibv_destroy_qp");
	}
}

static void send_one(unsigned int slot, unsigned int len)
{
	const unsigned int first = o.length < 30 ? len : 20;
	struct ibv_sge sge[2] = { { (uintptr_t)slots[0][slot], first, mr->lkey },
				  { (uintptr_t)slots[0][slot] + first, len - first, mr->lkey } };
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp[0]);

	if (!o.inlined) {
		must(!ibv_post_send(qp[0], &wr, &bad), "ibv_post_send");
		return;
	}
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, slots[0][slot], len);
	must(!ibv_wr_complete(ex), "ibv_wr_complete");
}

/* Few at a time: a receiver of datagrams does not report missing room. */
static void send_all(void)
{
	struct ibv_wc wc;

	qp[0] = make_qp();
	for (unsigned int i = 0; i < o.count;) {
		unsigned int n = 0;

		for (; n < 16 && i + n < o.count; n++)
			send_one(n, make_frame(slots[0][n], i + n));
		i += n;
		for (; n; n--)
			await(&wc);
	}
	printf("sent %u\n", o.count);
	must(!ibv_destroy_qp(qp[0]), "ibv_destroy_qp");
}

/* ---- packet sockets ---- */

static int packet_socket(const char *iface)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = (int)if_nametoindex(iface) };
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);

	must(fd >= 0 && !bind(fd, (const struct sockaddr *)&at, sizeof(at)), "a packet socket: %s",
	     strerror(errno));
	return fd;
}

static void wire_send(const char *iface)
{
	const int fd = packet_socket(iface);
	unsigned char frame[LONGEST];

	for (unsigned int i = 0; i < o.count; i++) {
		const unsigned int len = make_frame(frame, i);

		must(send(fd, frame, len, 0) == (ssize_t)len, "send: %s", strerror(errno));
	}
	printf("sent %u\n", o.count);
}

/* Returns true for a frame of ours, by its MACs and the following bytes: others come as well. */
static bool is_ours(const unsigned char *frame, ssize_t len, const struct sockaddr_ll *from)
{
	return from->sll_pkttype != PACKET_OUTGOING && len >= 14 && !memcmp(frame, o.dst, 6) &&
	       !memcmp(frame + 6, o.src, 6);
}

/* The kernel removes a frame's tag and reports it separately. */
static unsigned int put_tag_back(unsigned char *frame, unsigned int len, const struct msghdr *msg)
{
	for (const struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR((struct msghdr *)msg, (struct cmsghdr *)c)) {
		struct tpacket_auxdata aux;

		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
			continue;
		memmove(frame + 16, frame + 12, len - 12);
		put16(frame + 12, ETH_P_8021Q);
		put16(frame + 14, aux.tp_vlan_tci);
		return len + 4;
	}
	return len;
}

static void wire_recv(const char *iface)
{
	const int fd = packet_socket(iface), one = 1;
	unsigned char frame[LONGEST];

	must(!setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)), "PACKET_AUXDATA");
	printf("ready\n");
	fflush(stdout);
	for (unsigned int i = 0; i < o.count;) {
		char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		struct iovec iov = { frame, sizeof(frame) - 4 };
		struct sockaddr_ll from;
		struct msghdr msg = { .msg_name = &from,
				      .msg_namelen = sizeof(from),
				      .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control,
				      .msg_controllen = sizeof(control) };
		ssize_t len = recvmsg(fd, &msg, 0);

		must(len >= 0, "recvmsg: %s", strerror(errno));
		if (!is_ours(frame, len, &from))
			continue;
		check_frame(frame, put_tag_back(frame, (unsigned int)len, &msg), i++);
	}
	printf("received %u\n", o.count);
}

/* ---- */

static void refused(const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1, 0 } };

	ctx = open_device(device);
	must((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "a CQ");
	init.send_cq = init.recv_cq = cq;
	printf("%s\n", ibv_create_qp(pd, &init) ? "made" : strerrorname_np(errno));
}

static void read_mac(unsigned char mac[6], const char *text)
{
	must(sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		    &mac[4], &mac[5]) == 6,
	     "no MAC: %s", text);
}

static void read_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "k:f:p:d:s:n:l:P:q:axeiz")) != -1) {
		const unsigned int number = optarg ? (unsigned int)strtoul(optarg, NULL, 0) : 0;

		switch (c) {
		case 'k': o.kind = optarg; break;
		case 'f': o.flow = optarg; break;
		case 'p': o.port = number; break;
		case 'd': read_mac(o.dst, optarg); break;
		case 's': read_mac(o.src, optarg); break;
		case 'n': o.count = number; break;
		case 'l': o.length = number; break;
		case 'P': o.priority = number; break;
		case 'q': o.qps = number; break;
		case 'a': o.alike = true; break;
		case 'x': o.lower = true; break;
		case 'e': o.events = true; break;
		case 'i': o.inlined = true; break;
		case 'z': o.none = true; break;
		default: exit(2);
		}
	}
	must(o.length + 8 <= LONGEST && o.qps && o.qps <= QPS_MAX, "options");
}

int main(int argc, char **argv)
{
	must(argc >= 3, "raw MODE WHERE [OPTION...]");
	read_options(argc - 2, argv + 2);
	if (!strcmp(argv[1], "wire-send")) {
		wire_send(argv[2]);
	} else if (!strcmp(argv[1], "wire-recv")) {
		wire_recv(argv[2]);
	} else if (!strcmp(argv[1], "refused")) {
		refused(argv[2]);
	} else {
		open_all(argv[2]);
		!strcmp(argv[1], "send") ? send_all() : receive();
	}
	return 0;
}
