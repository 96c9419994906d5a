/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Instances and TAP devices of clients (user/broker/instance.c, tap.c). The program of an instance
 * with sockets is an empty file, whose size is the program's number. The TAP device of a sole
 * client is the writing end of a pipe: the device is there as long as one of its descriptors is,
 * in a process or in a message.
 */
#define _GNU_SOURCE
#include "faked.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/broker/pinned.h"
#include "../../user/broker/readonly_maps.h"
#include "../../user/broker/tap.h"

/* By prog_id. engine: mapped by the broker and the process. */
static struct program {
	struct xroce_engine engine;
	int fd;
} programs[PROGRAMS_MAX];

/* ---- TAP devices of sole clients ---- */

static void forget_sole_tap(u32 i)
{
	fd_close(faked.sole_tap[i].fd);
	faked.sole_tap[i].tap = 0;
}

/* The broker does not notice, and may delete a device once more. */
void faked_sweep_taps(void)
{
	for (u32 i = 0; i < SOLE_TAPS_MAX; i++) {
		if (!faked.sole_tap[i].tap || !fd_is_ready(faked.sole_tap[i].fd))
			continue;
		if (faked.tap[faked.sole_tap[i].tap] == TAP_THERE)
			faked.tap[faked.sole_tap[i].tap] = TAP_GONE;
		forget_sole_tap(i);
	}
}

static ino_t inode_of(int fd)
{
	struct stat st;

	must(!fstat(fd, &st));
	return st.st_ino;
}

u32 faked_tap(int fd)
{
	for (u32 i = 0; i < SOLE_TAPS_MAX; i++)
		if (faked.sole_tap[i].tap && inode_of(faked.sole_tap[i].fd) == inode_of(fd))
			return faked.sole_tap[i].tap;
	return 0;
}

u32 faked_instances(void)
{
	return faked.instances;
}

u32 faked_taps(void)
{
	u32 n = 0;

	faked_sweep_taps();
	for (u32 i = 1; i <= faked.taps; i++)
		n += faked.tap[i] == TAP_THERE;
	return n;
}

/* ---- user/broker/instance.c, tap.c ---- */

static u32 tap_new(void)
{
	must(faked.taps + 1 < TAPS_MAX);
	faked.tap[++faked.taps] = TAP_THERE;
	return faked.taps;
}

struct xroce_bpf *instance_open_with_sockets(void *plan)
{
	const int fd = fd_own(memfd_create("program", MFD_CLOEXEC));
	const u32 prog_id = ++faked.sole_programs;

	must(fd >= 0 && prog_id < PROGRAMS_MAX && !ftruncate(fd, prog_id));
	programs[prog_id] = (struct program){ .fd = fd };
	return (struct xroce_bpf *)&programs[prog_id];
}

int faked_prog_fd(const struct xroce_bpf *bpf)
{
	return ((const struct program *)bpf)->fd;
}

void instance_free_program(struct xroce_bpf *bpf)
{
	if (bpf)
		fd_close(faked_prog_fd(bpf));
}

u32 faked_prog_id(int prog_fd)
{
	struct stat st;

	must(!fstat(prog_fd, &st) && st.st_size > 0 && st.st_size < PROGRAMS_MAX);
	return (u32)st.st_size;
}

struct xroce_engine *faked_engine(u32 prog_id)
{
	must(prog_id && prog_id <= faked.sole_programs);
	return &programs[prog_id].engine;
}

int instance_make_with_sockets(struct instance *i, struct xroce_bpf *bpf,
			       const struct instance_plan *plan, const char **step)
{
	*step = "make an instance";
	faked_step();
	if (faked_fails(FAULT_INSTANCE)) {
		instance_free_program(bpf);
		return -ENOMEM;
	}
	*i = (struct instance){ .bpf = bpf,
				.has_sockets = true,
				.others_fd = fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
				.rings = INSTANCE_RINGS_NONE,
				.tap_fd = -1,
				.single_fd = -1,
				.single_link_fd = -1 };
	i->wake_fd = faked_prog_fd(bpf);
	i->prog_id = faked_prog_id(i->wake_fd);
	i->readonly_maps.engine = &programs[i->prog_id].engine;
	faked.instances++;
	return 0;
}

int instance_make_tap(const struct instance_plan *plan, u32 *tap)
{
	int pair[2];
	u32 at = 0;

	faked_step();
	if (faked_fails(FAULT_TAP))
		return -ENOMEM;
	while (faked.sole_tap[at].tap)
		must(++at < SOLE_TAPS_MAX);
	must(!pipe2(pair, O_CLOEXEC));
	*tap = faked.sole_tap[at].tap = tap_new();
	faked.sole_tap[at].fd = pair[0];
	return fd_own(pair[1]);
}

int instance_make(struct instance *i, const struct instance_plan *plan, const char **step)
{
	*step = "make an instance";
	if (faked_fails(FAULT_INSTANCE))
		return -ENOMEM;
	*i = (struct instance){ .bpf = (struct xroce_bpf *)&faked,
				.others_fd = -1,
				.wake_fd = fd_nothing(),
				.rings = INSTANCE_RINGS_NONE,
				.tap_fd = fd_nothing(),
				.single_fd = fd_nothing(),
				.single_link_fd = fd_nothing(),
				.tap = tap_new(),
				.single = tap_new() };
	faked.instances++;
	return 0;
}

u32 instance_fds(const struct instance *i, int fd[ASK_SOCKETS_FDS])
{
	const u32 n = i->has_sockets ? ASK_SOCKETS_FDS : ASK_FDS;

	for (u32 k = 0; k < n; k++)
		fd[k] = i->wake_fd;
	fd[ASK_FD_TAP] = i->has_sockets ? i->wake_fd : i->tap_fd;
	fd[ASK_FD_SINGLE] = i->has_sockets ? i->others_fd : i->single_fd;
	return n;
}

bool instance_ring_is_ahead(const struct instance_rings *r, u32 n)
{
	return n < INSTANCE_RINGS;
}

int instance_ring(struct instance_rings *r, u32 n)
{
	must(n < XROCE_MAX_RING);
	return faked_fails(FAULT_RING) ? -ENOMEM : fd_nothing();
}

void instance_rings_close(struct instance_rings *r)
{
}

int instance_prog_fd(const struct instance *i)
{
	return i->wake_fd;
}

void instance_close(struct instance *i)
{
	must(i->bpf && faked.instances);
	fd_close(i->wake_fd);
	if (i->has_sockets) {
		fd_close(i->others_fd);
	} else {
		fd_close(i->tap_fd);
		fd_close(i->single_fd);
	}
	if (i->single_link_fd >= 0) {
		fd_close(i->single_link_fd);
		/* no client got them: these were the last descriptors of the devices */
		faked.tap[i->tap] = faked.tap[i->single] = TAP_NONE;
	}
	i->bpf = NULL;
	faked.instances--;
}

/* Deletes each once, also if the kernel has deleted it. */
int tap_delete(const u32 *tap, u32 n)
{
	faked_sweep_taps();
	for (u32 i = 0; i < n; i++) {
		must(!tap[i] || (faked.tap[tap[i]] != TAP_NONE && !faked.sender[tap[i]]));
		faked.tap[tap[i]] = TAP_NONE;
	}
	return 0;
}

/* The next broker deletes the devices of a dead one. */
void faked_lose_instances(void)
{
	faked.instances = 0;
	memset(faked.tap, 0, sizeof(faked.tap));
}

/* ---- user/broker/pinned.c: nothing is pinned ---- */

int pinned_begin(struct broker *b)
{
	return 0;
}

void pinned_end(struct broker *b)
{
}

void pinned_client(struct client *c, const struct instance *i)
{
}

void pinned_client_end(struct client *c)
{
}

/* ---- user/broker/readonly_maps.c: no reader of a client's maps here ---- */

const struct readonly_maps readonly_maps_none;

void readonly_maps_close(struct readonly_maps *s)
{
	s->engine = NULL;
}
