/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <xroce/wire.h>

#include "../os/complain.h"
#include "tx_gso.h"
#include "tx_redirect.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* newer than the headers that we build with */
#endif

#define SEND_BUFFER (4 << 20) /* most bytes in flight: about 60 super-packets */
#define ETH_HEADER  14u
#define ETH_SOURCE  6u
#define SHORT_FRAME 2048u
#define SENDS_MAX   32u	      /* super-packets and single frames in one gather */
#define PIECES_MAX  512u      /* pieces of memory in these */
/* Single frames dropped in a row that indicate a rule: other traffic fills a queue more briefly. */
#define DROPS_OF_RULE 16u
/* Pause between tries of a refused super-packet: TX_HEALTH_REFUSALS of them take 20 ms. */
#define PAUSE_MIN_NS (20 * NSEC_PER_USEC)
#define PAUSE_MAX_NS (2 * NSEC_PER_MSEC)
_Static_assert(PIECES_MAX > GSO_SEGMENTS_MAX && PIECES_MAX <= 1024,
	       "room for any super-packet; the kernel's UIO_MAXIOV is for each");

struct tx_gso_call {
	u32 sends, pieces, frames;
	struct mmsghdr msg[SENDS_MAX];
	u32 count[SENDS_MAX]; /* frames in each message */
	u32 len[SENDS_MAX];   /* length of its first frame in bytes */
	int tap[SENDS_MAX];   /* the descriptor that it is written to */
	bool once[SENDS_MAX]; /* not to be sent again, as parts of it may have left */
	struct {
		struct virtio_net_hdr vnet;
		u8 header[GSO_HEADER_BYTES];
	} head[SENDS_MAX];
	struct iovec piece[PIECES_MAX];
};

/* The kernel reads both as one buffer. */
_Static_assert(offsetof(struct tx_gso_call, head[0].header) -
			       offsetof(struct tx_gso_call, head[0]) ==
		       sizeof(struct virtio_net_hdr),
	       "no padding");

/* ---- making and ending ---- */

static int tx_gso_open_socket(u32 ifindex, int *fd, const char **why)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_ifindex = (int)ifindex };
	const int one = 1, bytes = SEND_BUFFER;

	/* protocol 0: it receives nothing */
	*why = "creating a packet socket";
	*fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	/*
	 * Without PACKET_QDISC_BYPASS, with which the kernel drops super-packets to be cut. A
	 * send buffer that cannot grow is used as it is.
	 */
	if (setsockopt(*fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(*fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*why = "setting PACKET_VNET_HDR";
	if (setsockopt(*fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		return -errno;
	*why = "binding a packet socket";
	return bind(*fd, (const struct sockaddr *)&at, sizeof(at)) ? -errno : 0;
}

int tx_gso_open(struct tx_gso *g, u32 ifindex, const char **why)
{
	int err;

	*g = (struct tx_gso){ .fd = -1, .single_fd = -1 };
	*why = "allocating memory";
	g->ids = calloc(1, sizeof(*g->ids));
	g->call = calloc(1, sizeof(*g->call));
	err = g->ids && g->call ? tx_gso_open_socket(ifindex, &g->fd, why) : -ENOMEM;
	if (err)
		tx_gso_close(g);
	return err;
}

/* Sets the header size to the kernel's default, which the descriptor's creator may have changed. */
static int gso_set_header_size(int tap_fd)
{
	const int bytes = sizeof(struct virtio_net_hdr);

	return ioctl(tap_fd, TUNSETVNETHDRSZ, &bytes) ? -errno : 0;
}

int tx_gso_open_taps(struct tx_gso *g, int fd, int single_fd)
{
	int err = gso_set_header_size(fd);

	*g = (struct tx_gso){ .fd = -1, .single_fd = -1, .is_tap = true };
	if (err)
		return err;
	g->ids = calloc(1, sizeof(*g->ids));
	g->call = calloc(1, sizeof(*g->call));
	if (!g->ids || !g->call) {
		tx_gso_close(g);
		return -ENOMEM;
	}
	g->fd = fd;
	g->single_fd = single_fd;
	return 0;
}

void tx_gso_close(struct tx_gso *g)
{
	if (g->fd >= 0)
		close(g->fd);
	if (g->single_fd >= 0)
		close(g->single_fd);
	free(g->ids);
	free(g->call);
	*g = (struct tx_gso){ .fd = -1, .single_fd = -1 };
}

/* Returns whether rules seem to drop frames: single frames are dropped as well. */
static bool gso_is_ruled(const struct tx_gso *g)
{
	return g->drops >= DROPS_OF_RULE;
}

bool tx_gso_is_doubted(const struct tx_gso *g)
{
	return g->is_refusing || gso_is_ruled(g);
}

bool tx_gso_is_idle(const struct tx_gso *g)
{
	int bytes;

	return ioctl(g->fd, SIOCOUTQ, &bytes) || bytes == 0;
}

/* ---- sending ---- */

static void add_piece(struct tx_gso_call *c, void *at, size_t bytes)
{
	c->piece[c->pieces++] = (struct iovec){ .iov_base = at, .iov_len = bytes };
}

/*
 * Returns whether receivers cannot detect that a frame arrives twice. ENOBUFS from a packet socket
 * may concern only the last of the frames that the kernel cut a super-packet into. Reliable
 * services discard the duplicates; for the others each is another message. A TAP sends nothing of a
 * super-packet that it refuses.
 */
static bool is_unreliable(const struct gso_frame *f)
{
	const u8 opcode = gso_opcode(f);

	return OPCODE_TRANSPORT(opcode) == XROCE_UC || OPCODE_TRANSPORT(opcode) == XROCE_UD;
}

/*
 * Adds a frame for the TAP of single frames. The frame goes to the interface as it is; or, with the
 * group bit in its source MAC, with an Ethernet header that the kernel writes.
 */
static void gso_add_single(struct tx_gso *g, const struct gso_frame *frame)
{
	struct tx_gso_call *c = g->call;
	u8 *header = c->head[c->sends].header;

	c->tap[c->sends] = g->single_fd;
	if (g->is_direct) {
		add_piece(c, frame->bytes, frame->len);
		return;
	}
	memcpy(header, frame->bytes, ETH_HEADER);
	header[ETH_SOURCE] |= XROCE_ROUTED;
	add_piece(c, header, ETH_HEADER);
	add_piece(c, frame->bytes + ETH_HEADER, frame->len - ETH_HEADER);
}

/* Adds a single frame after an empty virtio_net_hdr. */
static void gso_add_alone(struct tx_gso *g, const struct gso_frame *frame)
{
	struct tx_gso_call *c = g->call;
	struct virtio_net_hdr *vnet = &c->head[c->sends].vnet;

	*vnet = (struct virtio_net_hdr){ 0 };
	c->tap[c->sends] = g->fd;
	add_piece(c, vnet, sizeof(*vnet));
	add_piece(c, frame->bytes, frame->len);
}

/*
 * Returns how many bytes the kernel should keep linear; it limits them to a page. For short frames
 * through a TAP that is all of the super-packet, as it finds their headers faster there. For long
 * frames it is the headers alone, as copying page by page is faster.
 */
static u32 gso_linear(const struct tx_gso *g, const struct gso_frame *frame, u32 count)
{
	if (!g->is_tap || frame->len > SHORT_FRAME)
		return GSO_HEADER_BYTES;
	return (count - 1) * (frame->len - GSO_HEADER_BYTES) + frame[count - 1].len;
}

static void gso_add_super(struct tx_gso *g, const struct gso_frame *frame, u32 count)
{
	struct tx_gso_call *c = g->call;

	c->head[c->sends].vnet = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = (u16)gso_linear(g, frame, count),
		.gso_size = (u16)gso_join(g->ids, frame, count, c->head[c->sends].header),
		.csum_start = GSO_UDP_AT,
		.csum_offset = GSO_UDP_CHECKSUM_AT - GSO_UDP_AT,
	};
	c->tap[c->sends] = g->fd;
	add_piece(c, &c->head[c->sends], sizeof(c->head[0]));
	for (u32 i = 0; i < count; i++) {
		add_piece(c, frame[i].bytes + GSO_HEADER_BYTES, frame[i].len - GSO_HEADER_BYTES);
		c->once[c->sends] |= !g->is_tap && is_unreliable(&frame[i]);
	}
}

/* Adds one packet of count frames. */
static void gso_add_packet(struct tx_gso *g, const struct gso_frame *frame, u32 count)
{
	struct tx_gso_call *c = g->call;
	struct iovec *first = &c->piece[c->pieces];

	c->once[c->sends] = false;
	if (count > 1)
		gso_add_super(g, frame, count);
	else if (g->single_fd >= 0 && frame->len <= TX_TAP_BYTES)
		gso_add_single(g, frame);
	else
		gso_add_alone(g, frame);
	c->msg[c->sends].msg_hdr =
		(struct msghdr){ .msg_iov = first,
				 .msg_iovlen = (size_t)(&c->piece[c->pieces] - first) };
	c->len[c->sends] = frame->len;
	c->count[c->sends++] = count;
	c->frames += count;
}

/* Gathers as many of the n frames as there is room for. */
static void gso_gather(struct tx_gso *g, const struct gso_frame *frame, u32 n)
{
	struct tx_gso_call *c = g->call;

	c->sends = c->pieces = c->frames = 0;
	while (c->frames < n && c->sends < SENDS_MAX &&
	       c->pieces + GSO_SEGMENTS_MAX + 1 <= PIECES_MAX)
		gso_add_packet(g, frame + c->frames,
			       g->refused || g->is_off || g->is_alone ?
				       1 : gso_count(frame + c->frames, n - c->frames));
}

static bool no_room(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == ENOMEM;
}

/*
 * Returns the number of messages for one call. sendmmsg() hides the error of the message after the
 * last one sent, so a `once` message is sent alone.
 */
static u32 run_at(const struct tx_gso_call *c, u32 at)
{
	u32 n = 1;

	while (!c->once[at] && at + n < c->sends && !c->once[at + n])
		n++;
	return n;
}

/*
 * Sends the gathered messages from index at on. Returns how many the kernel accepted, or -errno for
 * the first. Uses syscall(), as the libc functions are cancellation points, under the shard's lock.
 */
static long gso_hand_over(const struct tx_gso *g, u32 at)
{
	const struct tx_gso_call *c = g->call;
	const struct msghdr *m = &c->msg[at].msg_hdr;
	long sent;

	if (g->is_tap)
		sent = syscall(SYS_writev, c->tap[at], m->msg_iov, m->msg_iovlen) < 0 ? -1 : 1;
	else
		sent = syscall(SYS_sendmmsg, g->fd, &c->msg[at], run_at(c, at), MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}

static void gso_tell(struct tx_gso *g, const char *what)
{
	if (g->tell)
		complain("%s: sending without UDP segmentation offload, which is slower: the "
			 "interface %s super-packets",
			 g->tell, what);
	g->tell = NULL;
}

/*
 * Updates the doubts after the kernel accepted super-packets, or single frames of up to longest
 * bytes. A frame as long as the one refused last shows that no rule drops them. If rules did until
 * now, super-packets are enabled again.
 */
static void gso_trust(struct tx_gso *g, u32 supers, u32 longest)
{
	g->is_refusing = g->is_refusing && !supers;
	g->pause_ns = 0;
	if (!supers && longest < g->doubted_len)
		return;
	if (gso_is_ruled(g))
		tx_health_again(&g->health);
	else if (g->is_refusing)
		gso_tell(g, "refuses");
	g->drops = 0;
}

/* Counts `sent` accepted messages from index at on. Returns how many frames they hold. */
static u32 gso_count_sent(struct tx_gso *g, u32 at, u32 sent, struct xroce_engine_stats *stats)
{
	const struct tx_gso_call *c = g->call;
	u32 frames = 0, supers = 0, longest = 0;

	for (u32 i = at; i < at + sent; i++) {
		frames += c->count[i];
		supers += c->count[i] > 1;
		longest = c->len[i] > longest ? c->len[i] : longest;
	}
	tx_health_sent(&g->health, supers);
	if (unlikely(g->is_refusing || g->drops || g->pause_ns))
		gso_trust(g, supers, longest);
	if (g->is_tap && !supers) {
		stats->tx_tap += frames;
		stats->tx_tap_writes += sent;
	} else {
		stats->tx_gso += frames;
		stats->tx_gso_sends += sent;
	}
	return frames;
}

/* Returns whether the device is down or gone, which concerns single frames as well. */
static bool is_about_the_device(int err)
{
	return err == ENETDOWN || err == ENXIO || err == EIO || err == EBADFD;
}

/*
 * Sends the gathered messages. Returns how many frames are done with: fewer than were gathered if
 * there is no room, or if the rest must be gathered again.
 */
static u32 gso_send_gathered(struct tx_gso *g, struct xroce_engine_stats *stats, bool *full)
{
	struct tx_gso_call *c = g->call;
	u32 done = 0;

	for (u32 at = 0; at < c->sends;) {
		const bool is_super = c->count[at] > 1;
		const long sent = gso_hand_over(g, at);
		const int err = sent < 0 ? (int)-sent : 0;

		if (!err) {
			done += gso_count_sent(g, at, (u32)sent, stats);
			at += (u32)sent;
		} else if (err == EINTR) {
			continue;
		} else if (no_room(err)) {
			*full = true;
			g->was_refused = err != EAGAIN && is_super;
			g->was_full = err == ENOBUFS && !is_super && !c->once[at];
			if (g->was_refused || g->was_full)
				g->doubted_len = c->len[at];
			if (err == ENOBUFS && c->once[at]) {
				stats->tx_lost += c->count[at];
				done += c->count[at];
			}
			return done;
		} else if (err == EINVAL && is_super) {
			g->refused = true;
			return done;
		} else {
			g->was_refused = is_super && !is_about_the_device(err);
			if (g->was_refused)
				g->doubted_len = c->len[at];
			stats->tx_lost += c->count[at];
			done += c->count[at++];
		}
	}
	return done;
}

u32 tx_gso_send(struct tx_gso *g, const struct gso_frame *frame, u32 n,
		struct xroce_engine_stats *stats)
{
	bool full = false;
	u32 done = 0;

	g->was_refused = g->was_full = false;
	while (done < n && !full) {
		gso_gather(g, frame + done, n - done);
		done += gso_send_gathered(g, stats, &full);
	}
	return done;
}

/* ---- whether super-packets arrive ---- */

static void gso_judge(struct tx_gso *g, enum tx_verdict verdict, struct xroce_engine_stats *stats)
{
	if (verdict == TX_HEALTHY)
		return;
	g->is_off = true;
	g->again_ns = g->pause_ns = 0;
	stats->tx_gave_up++;
	if (verdict == TX_DROPS)
		gso_tell(g, "drops");
	else
		g->is_refusing = true;
}

void tx_gso_refused(struct tx_gso *g, u64 now_ns, struct xroce_engine_stats *stats)
{
	g->pause_ns = g->pause_ns ? min_u64(2 * g->pause_ns, PAUSE_MAX_NS) : PAUSE_MIN_NS;
	g->again_ns = now_ns + g->pause_ns;
	gso_judge(g, tx_health_refused(&g->health, now_ns), stats);
}

void tx_gso_dropped(struct tx_gso *g, struct xroce_engine_stats *stats)
{
	stats->tx_lost++;
	g->drops++;
	if (!gso_is_ruled(g))
		return;
	if (g->tell)
		complain("%s: the kernel drops sent frames; check for rules that drop them "
			 "(nft list ruleset, tc filter show dev %s egress)",
			 g->tell, g->tell);
	g->tell = NULL;
}

void tx_gso_look(struct tx_gso *g, u64 dropped, u64 now_ns, struct xroce_engine_stats *stats)
{
	gso_judge(g, tx_health_look(&g->health, dropped, now_ns), stats);
}

void tx_gso_try_again(struct tx_gso *g, u64 now_ns)
{
	g->is_off = tx_health_is_away(&g->health, now_ns);
}

/* ---- tx order ---- */

#define TAG_BYTES  4u
#define IPV4_BYTES 20u /* the engine sends no options */
#define IPV6_BYTES 40u
#define UDP_BYTES  8u

static u32 ethertype_at(const u8 *frame, u32 at)
{
	return (u32)frame[at] << 8 | frame[at + 1];
}

bool tx_order_matters(const u8 *frame)
{
	u32 at = ETH_HLEN - 2, type = ethertype_at(frame, at);
	u8 opcode;

	if (type == ETH_P_8021Q) {
		at += TAG_BYTES;
		type = ethertype_at(frame, at);
	}
	at += 2 + (type == ETH_P_IPV6 ? IPV6_BYTES : IPV4_BYTES) + UDP_BYTES;
	opcode = frame[at];
	return OPCODE_TRANSPORT(opcode) == XROCE_UC ||
	       OPCODE_TRANSPORT(opcode) == XROCE_UD || opcode == OPCODE_CREDIT_PROBE;
}

/* ---- tx health ---- */

/* Once disabled before, super-packets get no second chance: one refusal or bad look is enough. */
static bool was_given_up(const struct tx_health *h)
{
	return h->away_ns != 0;
}

static enum tx_verdict give_up(struct tx_health *h, enum tx_verdict why, u64 now_ns)
{
	h->away_ns = was_given_up(h) ? min_u64(2 * h->away_ns, TX_HEALTH_AWAY_MAX_NS)
				     : TX_HEALTH_AWAY_NS;
	h->until_ns = now_ns + h->away_ns;
	h->refusals = h->bad_looks = 0;
	h->bad_sends = h->sends = 0;
	return why;
}

void tx_health_sent(struct tx_health *h, u32 n)
{
	h->sends += n;
	if (n)
		h->refusals = 0;
}

enum tx_verdict tx_health_refused(struct tx_health *h, u64 now_ns)
{
	if (!h->refusals++)
		h->refused_ns = now_ns;
	if (was_given_up(h) ||
	    (h->refusals >= TX_HEALTH_REFUSALS && now_ns - h->refused_ns >= TX_HEALTH_REFUSED_NS))
		return give_up(h, TX_REFUSES, now_ns);
	return TX_HEALTHY;
}

enum tx_verdict tx_health_look(struct tx_health *h, u64 dropped, u64 now_ns)
{
	const u64 drops = dropped - h->dropped, sends = h->sends;
	const bool is_first = !h->has_looked;

	h->dropped = dropped;
	h->has_looked = true;
	h->sends = 0;
	if (is_first || !sends)
		return TX_HEALTHY;
	if (2 * drops < sends) {
		h->bad_looks = 0;
		h->bad_sends = 0;
		return TX_HEALTHY;
	}
	h->bad_looks++;
	h->bad_sends += sends;
	if (was_given_up(h) || (h->bad_looks >= TX_HEALTH_LOOKS && h->bad_sends >= TX_HEALTH_SENDS))
		return give_up(h, TX_DROPS, now_ns);
	return TX_HEALTHY;
}

void tx_health_again(struct tx_health *h)
{
	h->until_ns = min_u64(h->until_ns, 1);
	/* the next pause is as long as the first */
	h->away_ns = min_u64(h->away_ns, TX_HEALTH_AWAY_NS / 2);
}

bool tx_health_is_away(struct tx_health *h, u64 now_ns)
{
	if (h->until_ns && now_ns >= h->until_ns) {
		h->until_ns = 0;
		/* drops during the pause were not super-packets of ours */
		h->has_looked = false;
	}
	return h->until_ns != 0;
}
