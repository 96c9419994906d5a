/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pump moves frames: sockets to engine_input(), engine_output() to the wire or, for frames to our own address, back to engine_input().
 * It is one of the engine's two callers, and keeps the engine's rule that no input happens inside an output: frames to ourselves wait in a
 * short queue in the transmit slot that they were written in.
 *
 * It bounds what one call does. What is left over is said in resume_ns, and somebody comes back: the application or the service thread.
 */
#include "port_state.h"

#define TX_BATCH	 128u /* what is queued for ourselves meanwhile fits, too */
_Static_assert(TX_BATCH <= XSK_TX_SLOTS, "struct port's loop");
#define ROUNDS_MAX	 8  /* output batches in one call; a ping-pong with oneself would never end */
#define BURST_NS	 1000 /* after sending: less than an answer takes */
#define BURST_POSTS	 32   /* who has posted as many in quick succession will do so again, */
#define BURST_AGAIN_NS	 (50 * NSEC_PER_USEC) /* soon: the first of them waits for the others, too */
#define BLOCKED_MIN_NS	 (20 * NSEC_PER_USEC)
#define BLOCKED_MAX_NS	 (5 * NSEC_PER_MSEC)

struct input {
	struct port *port;
	u64 now_ns;
};

static void input(void *arg, const struct engine_frame *frames, u32 n)
{
	const struct input *in = arg;

	engine_input_batch(in->port->engine, frames, n, in->now_ns);
}

static u32 receive(struct port *port, u64 now_ns)
{
	struct xsk_set *s = &port->made.xsks;
	struct input in = { port, now_ns };
	u32 n = 0;

	for (u32 i = 0; i < s->count; i++)
		n += xsk_receive(s, &s->xsk[i], input, &in, &port->made.drops->multibuffer);
	return n;
}

/* Frames to ourselves, in the order they were sent. */
static void receive_looped(struct port *port, u64 now_ns)
{
	for (u32 i = 0; i < port->loop_count; i++) {
		const struct rx_frame frame = { .data = port->loop[i].frame, .len = port->loop[i].len };

		engine_input(port->engine, NULL, &frame, now_ns);
		tx_give_back(port->made.tx, port->loop[i].frame);
	}
	port->made.stats->loopback_packets += port->loop_count;
	port->loop_count = 0;
}

enum sent { SENT_ALL, SENT_BATCH, SENT_BLOCKED };

/* One batch out. SENT_ALL: the engine has no more; SENT_BATCH: it may; SENT_BLOCKED: no room for any, or the interface does not take them now. */
static enum sent send_batch(struct port *port, u64 now_ns, u32 *moved)
{
	struct tx *tx = port->made.tx;
	u32 room = min_u32(tx_room(tx, now_ns), TX_BATCH);
	enum sent result = room ? SENT_BATCH : SENT_BLOCKED;

	for (u32 n = 0; n < room; n++) {
		u8 *frame = tx_frame(tx);
		u32 len = engine_output(port->engine, frame, UMEM_TX_SLOT_BYTES, now_ns);

		if (len == 0) {
			tx_give_back(tx, frame);
			result = SENT_ALL;
			break;
		}
		++*moved;
		/* on lo every address is the interface's own */
		if (memcmp(frame, port->dev.mac, sizeof(port->dev.mac)) == 0)
			port->loop[port->loop_count++] = (struct loop_frame){ frame, len };
		else
			tx_commit(tx, frame, len);
	}
	return tx_flush(tx) ? result : SENT_BLOCKED;
}

/* What has come, and time-outs. True if anything came. */
static bool take_in(struct port *port, u64 now_ns)
{
	u32 received = receive(port, now_ns);

	/* no time-out while the answer may be among what still lies in the ring: a thread that was kept from running is late itself */
	if (received < XSK_RX_BATCH && now_ns >= engine_deadline_ns(port->engine))
		engine_expire(port->engine, now_ns);
	return received > 0;
}

/* What there is to send, within bounds. True if anything was. */
static bool transmit(struct port *port, u64 now_ns)
{
	const u32 posts = atomic_load_explicit(&port->put_off, memory_order_relaxed);
	u64 resume_ns = NSEC_NEVER;
	enum sent sent = SENT_BATCH;
	u32 moved = 0;

	port->owes = false;
	atomic_store_explicit(&port->put_off, 0, memory_order_relaxed);
	/* The queue is empty at the start of each round, and a round sends less than it holds. */
	for (u32 round = 0; round < ROUNDS_MAX && sent == SENT_BATCH; round++) {
		sent = send_batch(port, now_ns, &moved);
		if (port->loop_count) {
			receive_looped(port, now_ns);
			if (sent == SENT_ALL)
				sent = SENT_BATCH; /* there may be answers */
		}
	}

	if (sent == SENT_BATCH)
		resume_ns = now_ns;
	if (sent == SENT_BLOCKED) {
		port->made.stats->tx_no_room++;
		port->blocked_ns = port->blocked_ns ? min_u64(2 * port->blocked_ns, BLOCKED_MAX_NS) : BLOCKED_MIN_NS;
		resume_ns = now_ns + port->blocked_ns;
	} else {
		port->blocked_ns = 0;
	}
	atomic_store_explicit(&port->resume_ns, resume_ns, memory_order_relaxed);
	if (moved)
		atomic_store_explicit(&port->burst_until_ns, port_now_ns() + (posts >= BURST_POSTS ? BURST_AGAIN_NS : BURST_NS),
				      memory_order_relaxed);
	return moved > 0;
}

/* The interface has gone: what was posted is flushed, what would be sent has nowhere to go. */
static bool run_gone(struct port *port, u64 now_ns)
{
	u8 frame[PACKET_FRAME_MAX];

	engine_expire(port->engine, now_ns);
	while (engine_output(port->engine, frame, sizeof(frame), now_ns))
		;
	port->owes = false;
	port->blocked_ns = 0;
	atomic_store_explicit(&port->put_off, 0, memory_order_relaxed);
	atomic_store_explicit(&port->resume_ns, NSEC_NEVER, memory_order_relaxed);
	return false;
}

bool pump_run(struct port *port)
{
	u64 now_ns = port_now_ns();
	bool came;

	if (port->dead)
		return false;
	if (unlikely(atomic_load_explicit(&port->gone, memory_order_relaxed)))
		return run_gone(port, now_ns);
	came = take_in(port, now_ns);
	return transmit(port, now_ns) || came;
}

void pump_poll(struct port *port, const struct cq *cq)
{
	u64 now_ns = port_now_ns();

	if (port->dead)
		return;
	if (unlikely(atomic_load_explicit(&port->gone, memory_order_relaxed))) {
		run_gone(port, now_ns);
		return;
	}
	take_in(port, now_ns);
	/* Every other run sends: who always finds completions would never send an ACK else. */
	if (!port->owes && !cq_empty(cq) && !cq_is_armed(cq) && service_may_wait(port)) {
		port->owes = true;
		atomic_store_explicit(&port->resume_ns, now_ns, memory_order_relaxed);
		return;
	}
	transmit(port, now_ns);
}
