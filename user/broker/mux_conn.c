/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections of a client that has ended, as noted by the broker's programs (bpf/conn.h). */
#include <bpf/bpf.h>

#include "../os/kernel.h"
#include "../cm/mad.h"
#include "mux.h"
#include "xroce_broker.skel.h"

#define BATCH 128u

_Static_assert(XROCE_MAX_TAP > INSTANCE_TAPS * XROCE_MAX_CLIENT,
	       "a device of the broker's own beside all clients'");

bool mux_has_place(const struct mux *m, u32 place)
{
	struct xroce_cm_client p;

	if (m->host)
		return host_map_find(&m->host->map[HOST_CM_CLIENT], &place);
	return !bpf_map_lookup_elem(bpf_map__fd(m->bpf->maps.xroce_cm_client), &place, &p);
}

int mux_speak_for(struct mux *m, u32 tap, u32 place)
{
	const int fd = bpf_map__fd(m->bpf->maps.xroce_tap);
	/* not a client's number: it has no QPs, and so can send only MADs */
	const struct xroce_tap entry = { .client = XROCE_MAX_CLIENT, .place = place };

	return bpf_map_update_elem(fd, &tap, &entry, BPF_ANY);
}

void mux_silence(struct mux *m, u32 tap)
{
	bpf_map_delete_elem(bpf_map__fd(m->bpf->maps.xroce_tap), &tap);
}

struct batch {
	int fd;
	bool begun, ended;
	u32 at; /* the kernel's position, 32 bits for a hash map */
};

/* Reads the next entries of a map. Returns their number, 0 at the end. */
static u32 batch_next(struct batch *b, void *keys, void *values)
{
	u32 n = BATCH, next = 0;
	int err;

	if (b->ended)
		return 0;
	err = bpf_map_lookup_batch(b->fd, b->begun ? &b->at : NULL, &next, keys, values, &n, NULL);
	b->begun = true;
	b->at = next;
	/* ENOENT: these are the last ones */
	b->ended = err;
	return err && err != -ENOENT ? 0 : n;
}

static void mux_take_conns(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg)
{
	struct batch b = { .fd = bpf_map__fd(m->bpf->maps.xroce_conn) };
	struct xroce_conn conn[BATCH];
	u32 id[BATCH], n;

	while ((n = batch_next(&b, id, conn)))
		for (u32 i = 0; i < n; i++) {
			struct mux_dead_peer o = { .conn = conn[i], .own_id = id[i] };

			if (conn[i].serial != serial)
				continue;
			kernel_random_renew(&o.tid, 1);
			bpf_map_delete_elem(b.fd, &id[i]);
			fn(arg, &o);
		}
}

static void mux_take_requests(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg)
{
	struct batch b = { .fd = bpf_map__fd(m->bpf->maps.xroce_asked) };
	struct xroce_asked_key key[BATCH];
	struct xroce_asked asked[BATCH];
	u32 n;

	while ((n = batch_next(&b, key, asked)))
		for (u32 i = 0; i < n; i++) {
			struct mux_dead_peer o = { .is_request = true,
						   .tid = be64toh(asked[i].tid),
						   .conn = { .id = key[i].id } };

			if (asked[i].serial != serial || key[i].kind != CM_REQ ||
			    asked[i].answered || !asked[i].qpn)
				continue;
			memcpy(o.conn.gid, key[i].gid, sizeof(o.conn.gid));
			memcpy(o.conn.own_gid, asked[i].own_gid, sizeof(o.conn.own_gid));
			fn(arg, &o);
		}
}

void mux_take_dead_peers(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg)
{
	if (m->host) {
		mux_udp_take_dead_peers(m, serial, fn, arg);
		return;
	}
	mux_take_conns(m, serial, fn, arg);
	mux_take_requests(m, serial, fn, arg);
}
