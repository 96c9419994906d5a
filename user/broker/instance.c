/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <unistd.h>

#include "hook.h"
#include "../client/shared_maps.h"
#include "../host/client.h"
#include "../os/privilege.h"
#include "../os/bpf_room.h"
#include "../os/kernel.h"
#include "instance.h"
#include "tap.h"
#include "xroce.skel.h"

static const struct instance instance_none = { .others_fd = -1,
					       .wake_fd = -1,
					       .rings = INSTANCE_RINGS_NONE,
					       .tap_fd = -1,
					       .single_fd = -1,
					       .single_link_fd = -1,
					       .readonly_maps = { .slot = TRACE_SLOT_MAPS_NONE } };

int instance_prog_fd(const struct instance *i)
{
	return i->host ? -1 : bpf_program__fd(i->bpf->progs.xroce_xdp);
}

static int instance_set_up(struct xroce_bpf *bpf, const struct instance_plan *plan,
			   bool has_sockets)
{
	int err;

	bpf->rodata->xroce_shared = !has_sockets;
	bpf->rodata->xroce_ifindex = has_sockets && !plan->without_others ? plan->ifindex : 0;
	err = bpf_map__set_max_entries(bpf->maps.xroce_ring, plan->ring_bytes);
	if (!err)
		err = bpf_map__reuse_fd(bpf->maps.xroce_others, plan->clients_fd);
	if (!err)
		err = bpf_map__reuse_fd(bpf->maps.xroce_turn, plan->turn_fd);
	return err ? err : bpf_map__reuse_fd(bpf->maps.xroce_gid, plan->gids_fd);
}

/* Opens a program. Returns NULL with errno set. */
static struct xroce_bpf *instance_open(const struct instance_plan *plan, bool has_sockets)
{
	struct xroce_bpf *bpf = hook_open_program();
	const int err = bpf ? instance_set_up(bpf, plan, has_sockets) : 0;

	if (!err)
		return bpf;
	xroce_bpf__destroy(bpf);
	errno = -err;
	return NULL;
}

struct xroce_bpf *instance_open_with_sockets(void *plan)
{
	return instance_open(plan, true);
}

void instance_free_program(struct xroce_bpf *bpf)
{
	xroce_bpf__destroy(bpf);
}

/* Describes the loaded program. Returns 0 or -errno. */
static int instance_describe(struct instance *i, const struct instance_plan *plan)
{
	struct bpf_prog_info info = { 0 };
	u32 len = sizeof(info);
	const int prog_fd = instance_prog_fd(i);
	int err;

	/* the program does not use these maps: bound to it, so that xroce list finds them */
	bpf_prog_bind_map(prog_fd, bpf_map__fd(i->bpf->maps.xroce_eng_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(i->bpf->maps.xroce_eng_drop), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(i->bpf->maps.xroce_sock), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(i->bpf->maps.xroce_qp_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(i->bpf->maps.xroce_cq_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(i->bpf->maps.xroce_srq_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(i->bpf->maps.xroce_mr_stat), NULL);
	i->ring_bytes = plan->ring_bytes;
	err = bpf_obj_get_info_by_fd(prog_fd, &info, &len);
	i->prog_id = info.id;
	return err;
}

/*
 * Makes the ring by which XDP wakes the worker, slot 0 of xroce_channel, and rings for
 * channels, and inserts all at once.
 */
static int instance_make_rings(struct instance *i)
{
	const int map_fd = bpf_map__fd(i->bpf->maps.xroce_channel);
	u32 slot[1 + INSTANCE_RINGS] = { 0 };
	int fd[1 + INSTANCE_RINGS];

	fd[0] = i->wake_fd = kernel_ring_make();
	for (u32 n = 0; n < INSTANCE_RINGS; n++) {
		slot[1 + n] = XROCE_MAX_QUEUE + n;
		fd[1 + n] = i->rings.ahead[n] = kernel_ring_make();
	}
	for (u32 n = 0; n < ARRAY_SIZE(fd); n++)
		if (fd[n] < 0)
			return fd[n];
	i->rings.channel_fd = fcntl(map_fd, F_DUPFD_CLOEXEC, 0);
	return i->rings.channel_fd < 0 ? -errno :
					 kernel_map_put_all(map_fd, slot, fd, ARRAY_SIZE(fd));
}

bool instance_ring_is_ahead(const struct instance_rings *r, u32 n)
{
	return n < INSTANCE_RINGS && r->ahead[n] >= 0;
}

int instance_ring(struct instance_rings *r, u32 n)
{
	int fd;

	if (n >= XROCE_MAX_RING)
		return -ENOSPC;
	if (!instance_ring_is_ahead(r, n))
		return kernel_ring_insert(r->channel_fd, XROCE_MAX_QUEUE + n);
	fd = r->ahead[n];
	r->ahead[n] = -1;
	return fd;
}

void instance_rings_close(struct instance_rings *r)
{
	for (u32 n = 0; n < INSTANCE_RINGS; n++)
		if (r->ahead[n] >= 0)
			close(r->ahead[n]);
	if (r->channel_fd >= 0)
		close(r->channel_fd);
	*r = (struct instance_rings)INSTANCE_RINGS_NONE;
}

/* Attaches the programs before the device is up, so that no frame passes unchecked. */
int instance_make_tap(const struct instance_plan *plan, u32 *tap)
{
	const int fd = tap_make(plan->ifindex, TAP_ALL, tap);
	int err;

	if (fd < 0)
		return fd;
	err = tap_guard(*tap, plan->tap_ingress_fd, plan->tap_egress_fd);
	if (!err)
		err = tap_set_up(*tap);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Makes the device for single frames. Its XDP link ends with the broker: no redirection then. */
static int instance_make_single(struct instance *i, const struct instance_plan *plan)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	int err;

	i->single_fd = tap_make(plan->ifindex, TAP_SINGLE, &i->single);
	if (i->single_fd < 0)
		return i->single_fd;
	err = tap_guard(i->single, plan->tap_ingress_fd, plan->tap_egress_fd);
	if (err)
		return err;
	i->single_link_fd = bpf_link_create(plan->tap_single_fd, (int)i->single, BPF_XDP, &opts);
	return i->single_link_fd < 0 ? i->single_link_fd : tap_set_up(i->single);
}

/* Makes all of a loaded program's instance except the ways out. Undoes nothing. */
static int instance_make_common(struct instance *i, const struct instance_plan *plan,
				const char **step)
{
	int err;

	*step = "load a client's program";
	err = instance_describe(i, plan);
	if (!err) {
		*step = "open a client's maps for observers";
		err = readonly_maps_open(&i->readonly_maps, i->bpf->obj);
	}
	if (!err) {
		*step = "create a client's ring buffers";
		err = instance_make_rings(i);
	}
	return err;
}

int instance_make_with_sockets(struct instance *i, struct xroce_bpf *bpf,
			       const struct instance_plan *plan, const char **step)
{
	libbpf_print_fn_t before = privilege_hush_libbpf();
	int err;

	*i = instance_none;
	i->bpf = bpf;
	i->has_sockets = true;
	err = instance_make_common(i, plan, step);
	libbpf_set_print(before);
	if (!err) {
		*step = "create an eventfd";
		i->others_fd = kernel_event_make(false);
		err = i->others_fd < 0 ? i->others_fd : 0;
	}
	if (err)
		instance_close(i);
	return err;
}

/* Gives observers the maps that they can read. */
static void instance_show(struct instance *i)
{
	_Static_assert(READONLY_MAPS_MAPS >= 13, "those of readonly_map_is() that a client has");
	i->readonly_maps.num = i->host->num_shown;
	memcpy(i->readonly_maps.fd, i->host->shown_fd,
	       i->readonly_maps.num * sizeof(*i->readonly_maps.fd));
	i->host->num_shown = 0;
}

/* By which the client is traced; the trace page's descriptor becomes the instance's. */
static int instance_show_trace(struct instance *i)
{
	struct readonly_maps *s = &i->readonly_maps;

	s->slot.trace_fd = i->host->trace_fd;
	i->host->trace_fd = -1;
	s->slot.engine_fd = fcntl(i->host->map_fd[ASK_FD_ENGINE], F_DUPFD_CLOEXEC, 0);
	if (s->slot.engine_fd < 0)
		return -errno;
	s->engine = shared_map(s->slot.engine_fd, sizeof(*s->engine));
	if (!s->engine)
		return -errno;
	s->slot.page_fd = host_file_read_only(s->slot.trace_fd);
	/* without /proc no map can be shown */
	if (s->slot.page_fd < 0)
		s->err = -EPERM;
	return 0;
}

static int instance_make_udp(struct instance *i, const struct instance_plan *plan,
			     const char **step)
{
	static u32 made;
	int err = 0;

	*i = instance_none;
	/*
	 * no program of the kernel has such an ID, and observers tell processes of this host by
	 * theirs: another broker, or the next one, begins elsewhere
	 */
	if (!made)
		err = kernel_random(&made, sizeof(made));
	if (err) {
		*step = "get random numbers";
		return err;
	}
	i->prog_id = ASK_NO_PROGRAM | ++made;
	*step = "allocate a client's memory";
	i->ring_bytes = plan->ring_bytes;
	err = host_client_make(plan->ring_bytes, &i->host);
	if (!err) {
		instance_show(i);
		err = instance_show_trace(i);
	}
	if (err)
		instance_close(i);
	return err;
}

int instance_make(struct instance *i, const struct instance_plan *plan, const char **step)
{
	libbpf_print_fn_t before;
	int err;

	if (plan->by_udp)
		return instance_make_udp(i, plan, step);
	before = privilege_hush_libbpf();
	*i = instance_none;
	*step = "load a client's program";
	i->bpf = instance_open(plan, false);
	err = i->bpf ? bpf_load(i->bpf->skeleton) : -errno;
	if (!err)
		err = instance_make_common(i, plan, step);
	if (!err) {
		*step = "create a client's TAP devices";
		i->tap_fd = instance_make_tap(plan, &i->tap);
		err = i->tap_fd < 0 ? i->tap_fd : 0;
	}
	if (!err)
		err = instance_make_single(i, plan);
	libbpf_set_print(before);
	if (err)
		instance_close(i);
	return err;
}

static u32 instance_sockets_fds(const struct instance *i, int fd[ASK_SOCKETS_FDS])
{
	fd[ASK_FD_XSK] = bpf_map__fd(i->bpf->maps.xroce_xsk);
	fd[ASK_FD_OTHERS] = i->others_fd;
	fd[ASK_FD_GROUP] = bpf_map__fd(i->bpf->maps.xroce_group);
	fd[ASK_FD_FLOW] = bpf_map__fd(i->bpf->maps.xroce_flow);
	fd[ASK_FD_FLOWS] = bpf_map__fd(i->bpf->maps.xroce_flows);
	fd[ASK_FD_FLOW_COUNT] = bpf_map__fd(i->bpf->maps.xroce_flow_cnt);
	fd[ASK_FD_COPIES] = bpf_map__fd(i->bpf->maps.xroce_copies);
	_Static_assert(sizeof(*i->bpf->bss) == sizeof(u32), "xroce_copying alone");
	fd[ASK_FD_COPYING] = bpf_map__fd(i->bpf->maps.bss);
	return ASK_SOCKETS_FDS;
}

u32 instance_fds(const struct instance *i, int fd[ASK_SOCKETS_FDS])
{
	if (i->host) {
		host_client_fds(i->host, fd);
		return ASK_FDS;
	}
	fd[ASK_FD_QP] = bpf_map__fd(i->bpf->maps.xroce_qp);
	fd[ASK_FD_CQ] = bpf_map__fd(i->bpf->maps.xroce_cq);
	fd[ASK_FD_EXPECT] = bpf_map__fd(i->bpf->maps.xroce_expect);
	fd[ASK_FD_ENGINE] = bpf_map__fd(i->bpf->maps.xroce_engine);
	fd[ASK_FD_VECTOR] = bpf_map__fd(i->bpf->maps.xroce_vector);
	fd[ASK_FD_SOCK] = bpf_map__fd(i->bpf->maps.xroce_sock);
	fd[ASK_FD_STATS] = bpf_map__fd(i->bpf->maps.xroce_eng_stat);
	fd[ASK_FD_DROPS] = bpf_map__fd(i->bpf->maps.xroce_eng_drop);
	fd[ASK_FD_RX] = bpf_map__fd(i->bpf->maps.xroce_ring);
	fd[ASK_FD_WAKE] = i->wake_fd;
	fd[ASK_FD_TAP] = i->tap_fd;
	fd[ASK_FD_SINGLE] = i->single_fd;
	fd[ASK_FD_QP_STAT] = bpf_map__fd(i->bpf->maps.xroce_qp_stat);
	fd[ASK_FD_CQ_STAT] = bpf_map__fd(i->bpf->maps.xroce_cq_stat);
	fd[ASK_FD_SRQ_STAT] = bpf_map__fd(i->bpf->maps.xroce_srq_stat);
	fd[ASK_FD_MR_STAT] = bpf_map__fd(i->bpf->maps.xroce_mr_stat);
	fd[ASK_FD_TRACE] = bpf_program__fd(i->bpf->progs.xroce_trace_tx);
	/* not loaded on this kernel: sends a descriptor that cannot be run as a program */
	if (fd[ASK_FD_TRACE] < 0)
		fd[ASK_FD_TRACE] = fd[ASK_FD_MR_STAT];
	return i->has_sockets ? instance_sockets_fds(i, fd) : ASK_FDS;
}

void instance_close(struct instance *i)
{
	const int fd[] = { i->others_fd, i->wake_fd, i->tap_fd, i->single_link_fd, i->single_fd };

	if (!i->bpf && !i->host)
		return;
	host_client_free(i->host);
	for (u32 n = 0; n < ARRAY_SIZE(fd); n++)
		if (fd[n] >= 0)
			close(fd[n]);
	instance_rings_close(&i->rings);
	readonly_maps_close(&i->readonly_maps);
	xroce_bpf__destroy(i->bpf);
	*i = instance_none;
}
