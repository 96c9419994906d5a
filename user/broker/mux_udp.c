/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mux of a broker without privileges: receives by UDP sockets, and runs the receiving programs
 * itself (user/host). Clients send by sockets of their own, so that nothing here sees what they
 * send; their connections are noted from the MADs that they get, as for a sole client.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "../client/attach_error.h"
#include "../cm/mad.h"
#include "../io/tx_udp.h"
#include "../os/gid_text.h"
#include "../os/kernel.h"
#include "../os/process.h"
#include "mux.h"

/* The counters of the broker's own sender, which nobody reads. */
static struct xroce_engine_stats mux_udp_stats;

/* Reports an address without a socket. */
static int mux_udp_complain(const struct netdev *dev, const struct gid *gid, int err)
{
	char text[GID_TEXT], comm[32];
	pid_t pid = 0;

	gid_text(gid->raw, text);
	if (err == -EADDRINUSE &&
	    netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == -EPERM && pid > 0)
		attach_complain(dev,
				"UDP port %u of %s is in use, and process %d (%s) of another user "
				"claims the interface; end it, or as root, run `xroce serve %s`",
				ROCE_UDP_PORT, text, (int)pid, comm, dev->name);
	else if (err == -EADDRINUSE)
		attach_complain(dev,
				"UDP port %u of %s is in use by another program (`ss -ulnp "
				"sport = %u` shows it), or by rdma_rxe; end it",
				ROCE_UDP_PORT, text, ROCE_UDP_PORT);
	else
		attach_complain(dev, "cannot receive at UDP port %u of %s: %s", ROCE_UDP_PORT, text,
				strerror(-err));
	return err;
}

int mux_make_udp(struct mux *m, const struct netdev *dev)
{
	int err;

	*m = (struct mux){ .hook = HOOK_NONE, .hairpin_fd = -1, .hairpin_link_fd = -1 };
	m->dev = *dev;
	m->first_port = mux_read_first_port();
	m->receive.set_fd = -1;
	err = host_receive_check();
	if (err) {
		attach_complain(dev,
				"cannot receive datagrams: recvmmsg(2) fails (%s); a seccomp "
				"filter must permit it",
				strerror(-err));
		return err;
	}
	err = host_make(&m->host);
	if (!err)
		err = host_receive_open(&m->receive, m->host, dev->ifindex);
	if (!err)
		err = tx_udp_open(dev, &mux_udp_stats, &m->udp);
	if (err) {
		attach_failed(dev, "create UDP sockets", err);
		mux_udp_unmake(m);
		return err;
	}
	m->is_on = true;
	err = mux_udp_publish(m, dev);
	if (err)
		mux_udp_unmake(m);
	return err;
}

void mux_udp_unmake(struct mux *m)
{
	if (!m->host)
		return;
	host_receive_close(&m->receive);
	if (m->udp)
		tx_close(m->udp);
	host_free(m->host);
	m->udp = NULL;
	m->host = NULL;
	m->is_on = false;
}

static void mux_udp_put_gids(struct mux *m, const struct netdev *now)
{
	struct host_map *map = &m->host->map[HOST_GID];

	for (u32 i = 0; i < m->dev.num_gids; i++)
		host_map_remove(map, &m->dev.gid[i].gid);
	for (u32 i = 0; i < now->num_gids; i++)
		host_map_put(map, &now->gid[i].gid, &i);
	memset(m->host->engine.gid, 0, sizeof(m->host->engine.gid));
	if (now->num_gids)
		memcpy(m->host->engine.gid, now->gid[0].gid.raw, sizeof(m->host->engine.gid));
}

int mux_udp_publish(struct mux *m, const struct netdev *now)
{
	struct gid failed;
	int err = host_receive_follow(&m->receive, now, &failed);

	mux_udp_put_gids(m, now);
	m->dev = *now;
	/* once for an address, as the broker tries again */
	if (err && !gid_equal(&failed, &m->told_gid))
		mux_udp_complain(now, &failed, err);
	m->told_gid = err ? failed : (struct gid){ 0 };
	return err;
}

void mux_udp_send(struct mux *m, const u8 *frame, u32 len)
{
	u8 *copy = tx_frame(m->udp);

	if (!copy)
		return; /* a lost MAD is sent again, or the peer repeats its request */
	memcpy(copy, frame, len);
	tx_commit(m->udp, copy, len);
	tx_flush(m->udp);
}

/* ---- dead peers ---- */

struct mux_udp_search {
	struct mux *m;
	u64 serial;
	mux_dead_peer_fn *fn;
	void *arg;
};

static void mux_udp_conn(void *arg, const void *key, const void *value)
{
	const struct mux_udp_search *s = arg;
	struct mux_dead_peer o = { .conn = *(const struct xroce_conn *)value };

	memcpy(&o.own_id, key, sizeof(o.own_id));
	if (o.conn.serial != s->serial)
		return;
	kernel_random_renew(&o.tid, 1);
	host_map_remove(&s->m->host->map[HOST_CONN], &o.own_id);
	s->fn(s->arg, &o);
}

static void mux_udp_request(void *arg, const void *key, const void *value)
{
	const struct mux_udp_search *s = arg;
	const struct xroce_asked_key *k = key;
	const struct xroce_asked *asked = value;
	struct mux_dead_peer o = { .is_request = true,
				   .tid = be64toh(asked->tid),
				   .conn = { .id = k->id } };

	/* whether the client has answered is not known */
	if (asked->serial != s->serial || k->kind != CM_REQ || !asked->qpn)
		return;
	memcpy(o.conn.gid, k->gid, sizeof(o.conn.gid));
	memcpy(o.conn.own_gid, asked->own_gid, sizeof(o.conn.own_gid));
	s->fn(s->arg, &o);
}

void mux_udp_take_dead_peers(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg)
{
	struct mux_udp_search s = { m, serial, fn, arg };

	host_map_each(&m->host->map[HOST_CONN], mux_udp_conn, &s);
	host_map_each(&m->host->map[HOST_ASKED], mux_udp_request, &s);
}
