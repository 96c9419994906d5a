/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "mad_sender.h"

#include <linux/virtio_net.h>
#include <unistd.h>

#include "../client/attach_error.h"
#include "../engine/packet.h"

#define PKEY	  0xffff
#define HOP_LIMIT 64

void mad_sender_init(struct mad_sender *s, struct mux *mux, const struct instance_plan *plan)
{
	*s = (struct mad_sender){ .mux = mux, .plan = plan, .fd = -1 };
}

/* Makes the device if there is none. Returns false if that fails. */
static bool mad_sender_is_ready(struct mad_sender *s)
{
	if (s->fd >= 0)
		return true;
	s->fd = instance_make_tap(s->plan, &s->tap);
	if (s->fd < 0)
		attach_failed(&s->mux->dev, "create the TAP device for messages to peers", s->fd);
	return s->fd >= 0;
}

static struct cm_mad mad_sender_farewell(const struct mux_dead_peer *o)
{
	struct cm_mad m = { .kind = o->is_request ? CM_REJ : CM_DREQ,
			    .tid = o->tid,
			    .local_id = o->own_id,
			    .remote_id = o->conn.id };

	if (o->is_request)
		m.rej = (struct cm_rej){ .about = CM_ABOUT_REQ,
					 .reason = CM_REJ_CONSUMER_DEFINED };
	else
		m.dreq.qpn = o->conn.qpn;
	return m;
}

/* Builds a frame; the kernel finds the next hop and writes the MACs. Returns its length. */
static u32 mad_sender_build(const struct mad_sender *s, const struct speech *speech, u8 *frame)
{
	const struct packet p = { .opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY),
				  .migreq = true,
				  .pkey = PKEY,
				  .dest_qpn = XROCE_CM_QPN,
				  .src_qpn = XROCE_CM_QPN,
				  .qkey = XROCE_CM_QKEY,
				  .payload_len = CM_MAD_BYTES };
	struct path path = { .hop_limit = HOP_LIMIT,
			     .udp_sport = path_udp_sport(0, XROCE_CM_QPN, XROCE_CM_QPN) };
	u8 *payload;

	memcpy(path.smac, s->mux->dev.mac, sizeof(path.smac));
	path.smac[0] |= XROCE_ROUTED;
	path.local = speech->own;
	path.peer = speech->peer;
	path.is_ipv6 = !gid_is_ipv4(&path.local);
	payload = packet_put_headers(frame, &path, &p);
	cm_mad_encode(payload, &speech->mad);
	return packet_seal(frame, payload, CM_MAD_BYTES);
}

void mad_sender_say(struct mad_sender *s, u32 place, const struct speech *speech)
{
	struct {
		struct virtio_net_hdr none;
		u8 frame[PACKET_HEADER_MAX + CM_MAD_BYTES + ROCE_ICRC_BYTES];
	} __attribute__((packed)) out = { 0 };
	u32 len;

	if (s->mux->host) {
		len = mad_sender_build(s, speech, out.frame);
		mux_udp_send(s->mux, out.frame, len);
		return;
	}
	if (!mad_sender_is_ready(s) || mux_speak_for(s->mux, s->tap, place))
		return;
	len = mad_sender_build(s, speech, out.frame);
	/* a lost MAD is sent again, or the peer repeats its request */
	if (write(s->fd, &out, sizeof(out.none) + len) < 0)
		return;
}

void mad_sender_tell(struct mad_sender *s, u32 place, const struct mux_dead_peer *o)
{
	struct speech speech = { .mad = mad_sender_farewell(o) };

	memcpy(speech.own.raw, o->conn.own_gid, sizeof(speech.own.raw));
	memcpy(speech.peer.raw, o->conn.gid, sizeof(speech.peer.raw));
	mad_sender_say(s, place, &speech);
}

void mad_sender_close(struct mad_sender *s)
{
	if (s->fd >= 0) {
		mux_silence(s->mux, s->tap);
		close(s->fd);
	}
	s->fd = -1;
}
