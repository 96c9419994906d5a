/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../engine/timer_heap.h"
#include "../../os/clock.h"
#include "cable.h"
#include "lab_capture.h"

enum {
	RING_BYTES = 16 << 20, /* of frames that wait for the cable, for each host */
	BLOCK_BYTES = 1 << 18,
	TRIES = 100,	       /* to send a frame for which the kernel has no memory, in ms */
	BATCH = 64,	       /* frames of one host before the next host's */
	QUEUE_MAX = 65536,     /* frames that wait for their time */
	RATE_QUEUE_MAX = 1000, /* of them because of the rate, as tc-netem's limit */
};
#define SWAP_NS		(5 * (u64)NSEC_PER_MSEC) /* longest wait of a frame for the next one */
#define SAME_NS		64 /* frames that leave within this time keep their order */
#define HEADER_MAX	(sizeof(struct ether_header) + 8) /* with two VLAN tags */
#define IGNORE_OUTGOING 23 /* PACKET_IGNORE_OUTGOING, since Linux 4.20 */

struct port {
	int fd;
	u8 *ring;
	u32 frame_bytes, frames, next;
	u64 free_ns; /* when the link has sent all frames before */
	u64 last_ns; /* when the frame leaves that was queued last */
	u32 waiting; /* frames in the queue because of the rate */
};

/* A frame that leaves later. */
struct waiting {
	u32 to, len;
	bool by_rate;
	u8 *data;
};

struct forwarder {
	struct cable *cable;
	const struct cable_plan *plan;
	struct port port[LAB_HOSTS];
	struct timer_heap queue; /* of frames that leave later, by their places in `waiting` */
	struct waiting *waiting;
	u32 *free; /* places in `waiting`; those before queue.len are taken */
	/* frames that wait to be overtaken, by direction */
	struct held {
		u8 *data;
		u32 len;
		u64 until_ns;
	} held[LAB_HOSTS][LAB_HOSTS];
	u32 num_held;
	u8 *copy; /* of a frame that is changed */
	struct lab_capture capture;
};

/* ---- the queue ---- */

static bool queue_open(struct forwarder *f)
{
	f->queue = (struct timer_heap){ .at = malloc(QUEUE_MAX * sizeof(*f->queue.at)),
					.place = calloc(QUEUE_MAX, sizeof(*f->queue.place)) };
	f->waiting = malloc(QUEUE_MAX * sizeof(*f->waiting));
	f->free = malloc(QUEUE_MAX * sizeof(*f->free));
	if (!f->queue.at || !f->queue.place || !f->waiting || !f->free)
		return false;
	for (u32 i = 0; i < QUEUE_MAX; i++)
		f->free[i] = i;
	return true;
}

/* Adds a frame that leaves at at_ns. Frames of a port with the same time keep their order. */
static bool queue_put(struct forwarder *f, const struct waiting *w, u64 at_ns)
{
	struct port *p = &f->port[w->to];
	u8 *data = f->queue.len < QUEUE_MAX ? malloc(w->len) : NULL;
	u32 slot;

	if (!data) {
		f->cable->lost_queue++;
		return false;
	}
	if (at_ns <= p->last_ns && p->last_ns - at_ns < SAME_NS)
		at_ns = p->last_ns + 1;
	p->last_ns = at_ns;
	memcpy(data, w->data, w->len);
	slot = f->free[f->queue.len];
	f->waiting[slot] = *w;
	f->waiting[slot].data = data;
	timer_heap_add(&f->queue, (struct timer){ at_ns, slot });
	return true;
}

/* Takes the first one; the caller frees its data. */
static struct waiting queue_take(struct forwarder *f)
{
	const u32 slot = f->queue.at[0].slot;

	timer_heap_remove(&f->queue, 0);
	f->free[f->queue.len] = slot;
	return f->waiting[slot];
}

/* ---- sending ---- */

static void send_now(struct forwarder *f, u32 to, const u8 *data, u32 len)
{
	u32 tries = 0;

	/* a link that is down loses it */
	while (send(f->port[to].fd, data, len, 0) < 0 && errno == ENOBUFS && tries++ < TRIES)
		poll(NULL, 0, 1);
	f->cable->forwarded++;
}

/* Sends a frame now, or when the delay and the link's rate permit it. */
static void send_frame(struct forwarder *f, u32 to, u8 *data, u32 len, u64 delay_ns)
{
	const struct cable_plan *plan = f->plan;
	struct port *p = &f->port[to];
	const u64 now_ns = clock_now_ns();
	struct waiting w = { .to = to, .len = len, .data = data };
	u64 at_ns = now_ns + delay_ns + plan->delay_ns;

	if (plan->bits_per_second) {
		w.by_rate = true;
		if (p->waiting >= RATE_QUEUE_MAX) {
			f->cable->lost_queue++;
			return;
		}
		if (p->free_ns < now_ns)
			p->free_ns = now_ns;
		p->free_ns += (u64)len * 8 * NSEC_PER_SEC / plan->bits_per_second;
		at_ns += p->free_ns - now_ns;
	}
	if (at_ns == now_ns)
		send_now(f, to, data, len);
	else if (queue_put(f, &w, at_ns))
		p->waiting += w.by_rate;
}

static void release(struct forwarder *f, u32 from, u32 to)
{
	struct held *h = &f->held[from][to];

	if (!h->data)
		return;
	send_frame(f, to, h->data, h->len, 0);
	free(h->data);
	h->data = NULL;
	f->num_held--;
}

static bool hold(struct forwarder *f, u32 from, u32 to, const u8 *data, u32 len)
{
	struct held *h = &f->held[from][to];

	if (h->data)
		return false;
	h->data = malloc(len);
	if (!h->data)
		return false;
	memcpy(h->data, data, len);
	h->len = len;
	h->until_ns = clock_now_ns() + SWAP_NS;
	f->num_held++;
	return true;
}

/* ---- a frame ---- */

static void forward_to(struct forwarder *f, u32 from, u32 to, u8 *data, u32 len)
{
	struct lab_fate fate;
	const bool is_rdma = lab_wire_decide(&f->cable->wire, from + 1, to + 1, data, len, &fate);

	if (f->capture.out.out)
		lab_capture_frame(&f->capture, &f->cable->wire, from + 1, to + 1, data, len,
				  is_rdma ? &fate : NULL);
	if (!is_rdma) {
		send_frame(f, to, data, len, 0);
		return;
	}
	if (fate.drop)
		return;
	if (fate.corrupt || fate.mark) {
		/* the next host of a group gets it as it was */
		memcpy(f->copy, data, len);
		data = f->copy;
		lab_wire_change(data, len, &fate);
	}
	if (fate.swap && hold(f, from, to, data, len))
		return;
	for (u32 i = 0; i < fate.copies; i++)
		send_frame(f, to, data, len, fate.delay_ns);
	release(f, from, to);
}

static void forward(struct forwarder *f, u32 from, u8 *data, u32 len)
{
	const u32 mtu = atomic_load_explicit(&f->cable->path_mtu, memory_order_relaxed);

	if (len < sizeof(struct ether_header) || (mtu && len > mtu + sizeof(struct ether_header)) ||
	    atomic_load_explicit(&f->cable->partitioned, memory_order_relaxed))
		return;
	for (u32 to = 0; to < f->plan->num; to++)
		if (to != from && (data[0] & 1 || !memcmp(data, f->plan->hosts[to].mac, ETH_ALEN)))
			forward_to(f, from, to, data, len);
}

/* ---- receiving ---- */

static int port_open(struct port *p, u32 index, u32 mtu)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = (int)index };
	const int version = TPACKET_V2, one = 1;
	struct tpacket_req req;

	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -errno;
	for (p->frame_bytes = 2048; p->frame_bytes < mtu + 256; p->frame_bytes *= 2)
		;
	req = (struct tpacket_req){ .tp_block_size = BLOCK_BYTES,
				    .tp_block_nr = RING_BYTES / BLOCK_BYTES,
				    .tp_frame_size = p->frame_bytes,
				    .tp_frame_nr = RING_BYTES / p->frame_bytes };
	p->frames = req.tp_frame_nr;
	if (setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(p->fd, SOL_PACKET, IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		return -errno;
	p->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (p->ring == MAP_FAILED)
		return -errno;
	return bind(p->fd, (const struct sockaddr *)&at, sizeof(at)) ? -errno : 0;
}

/* Returns whether more frames may wait. */
static bool port_take(struct forwarder *f, u32 from)
{
	struct port *p = &f->port[from];

	for (u32 i = 0; i < BATCH; i++) {
		struct tpacket2_hdr *h = (void *)(p->ring + (size_t)p->next * p->frame_bytes);

		/* acquire: pairs with the kernel's release of the frame */
		if (!(atomic_load_explicit(shared_word(&h->tp_status), memory_order_acquire) &
		      TP_STATUS_USER))
			return false;
		/* a host has switched its offloads on */
		if (h->tp_len > h->tp_snaplen || h->tp_len > f->plan->mtu + HEADER_MAX)
			f->cable->too_long++;
		else
			forward(f, from, (u8 *)h + h->tp_mac, h->tp_len);
		/* release: the frame is read */
		atomic_store_explicit(shared_word(&h->tp_status), TP_STATUS_KERNEL,
				      memory_order_release);
		p->next = (p->next + 1) % p->frames;
	}
	return true;
}

static void port_count_lost(struct forwarder *f, struct port *p)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	if (p->fd >= 0 && !getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		f->cable->lost_ring += stats.tp_drops;
}

/* ---- the loop ---- */

/* Sends the frames that are due, or all. Returns when the next one is due. */
static u64 send_due(struct forwarder *f, bool all)
{
	const u64 now_ns = clock_now_ns();
	u64 due_ns = NSEC_NEVER;

	for (u32 i = 0; f->num_held && i < f->plan->num * f->plan->num; i++) {
		const u32 from = i / f->plan->num, to = i % f->plan->num;
		const struct held *h = &f->held[from][to];

		if (h->data && (all || h->until_ns <= now_ns))
			release(f, from, to);
		else if (h->data)
			due_ns = min_u64(due_ns, h->until_ns);
	}
	while (f->queue.len && (all || f->queue.at[0].at_ns <= now_ns)) {
		const struct waiting w = queue_take(f);

		f->port[w.to].waiting -= w.by_rate;
		send_now(f, w.to, w.data, w.len);
		free(w.data);
	}
	return f->queue.len ? min_u64(due_ns, f->queue.at[0].at_ns) : due_ns;
}

/* Puts the changed rule into its place. Returns false at the end of control_fd. */
static bool change_rules(struct cable *c, int control_fd)
{
	char byte;

	if (read(control_fd, &byte, 1) != 1)
		return false;
	c->wire.rules[c->change_at] = c->change;
	if (c->change_at == c->wire.num_rules)
		c->wire.num_rules++;
	/* release: pairs with the acquire of the change's maker */
	atomic_fetch_add_explicit(&c->changes, 1, memory_order_release);
	return true;
}

static void forward_all(struct forwarder *f, int control_fd)
{
	const u32 num = f->plan->num;
	struct pollfd fds[LAB_HOSTS + 1];
	bool more = false;

	for (u32 i = 0; i < num; i++)
		fds[i] = (struct pollfd){ .fd = f->port[i].fd, .events = POLLIN };
	fds[num] = (struct pollfd){ .fd = control_fd, .events = POLLIN };
	for (;;) {
		const u64 due_ns = send_due(f, false), now_ns = clock_now_ns();
		const u64 wait_ns = more || due_ns <= now_ns ? 0 : due_ns - now_ns;
		const struct timespec wait = { (time_t)(wait_ns / NSEC_PER_SEC),
					       (long)(wait_ns % NSEC_PER_SEC) };

		ppoll(fds, num + 1, due_ns == NSEC_NEVER && !more ? NULL : &wait, NULL);
		if (fds[num].revents && !change_rules(f->cable, control_fd))
			return;
		more = false;
		for (u32 i = 0; i < num; i++)
			more |= port_take(f, i);
	}
}

int cable_run(struct cable *c, const struct cable_plan *plan, int ready_fd, int control_fd)
{
	static struct forwarder f;
	int err = 0;

	f = (struct forwarder){ .cable = c, .plan = plan };
	f.copy = malloc(1 << 16);
	if (!f.copy || !queue_open(&f))
		return -ENOMEM;
	for (u32 i = 0; i < LAB_HOSTS; i++)
		f.port[i].fd = -1;
	for (u32 i = 0; !err && i < plan->num; i++)
		err = port_open(&f.port[i], plan->hosts[i].port_index, plan->mtu);
	if (err)
		return err;
	lab_capture_begin(&f.capture, plan->capture_fd, plan->num);
	if (write(ready_fd, "", 1) != 1)
		return -EPIPE;
	forward_all(&f, control_fd);
	send_due(&f, true);
	for (u32 i = 0; i < plan->num; i++)
		port_count_lost(&f, &f.port[i]);
	c->capture_err = lab_capture_end(&f.capture);
	return 0;
}
