/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xdp/libxdp.h>
#include <xroce/trace.h>

#include "../os/bpf_room.h"
#include "../os/options.h"
#include "../os/privilege.h"
#include "dispatcher.h"
#include "hook.h"
#include "xroce.skel.h"

#define PATH_BYTES 256

/* The libraries' print functions, shared with the application. Ours prints with XROCE_DEBUG. */
struct prints {
	libxdp_print_fn_t libxdp;
	libbpf_print_fn_t libbpf;
};

static int dispatcher_print(enum libxdp_print_level level, const char *format, va_list args)
{
	return options_is_set(OPTION_DEBUG) ? vfprintf(stderr, format, args) : 0;
}

static struct prints dispatcher_hush(void)
{
	return (struct prints){ libxdp_set_print(dispatcher_print), privilege_hush_libbpf() };
}

static void dispatcher_unhush(struct prints before)
{
	libxdp_set_print(before.libxdp);
	libbpf_set_print(before.libbpf);
}

/* ---- the dispatcher of an interface ---- */

/* Returns the interface's dispatcher, which the caller closes; NULL if it has none. */
static struct xdp_multiprog *dispatcher_get(u32 ifindex)
{
	const struct prints before = dispatcher_hush();
	struct xdp_multiprog *found = xdp_multiprog__get_from_ifindex((int)ifindex);

	dispatcher_unhush(before);
	if (!found || libxdp_get_error(found))
		return NULL;
	if (!xdp_multiprog__is_legacy(found))
		return found;
	xdp_multiprog__close(found);
	return NULL;
}

bool dispatcher_is_there(u32 ifindex, bool *native)
{
	struct xdp_multiprog *found = dispatcher_get(ifindex);

	if (!found)
		return false;
	*native = xdp_multiprog__attach_mode(found) == XDP_MODE_NATIVE;
	xdp_multiprog__close(found);
	return true;
}

/* ---- the link of our slot ---- */

/* Sets path to libxdp's directory of pins, with libxdp's variable and default. */
static void dispatcher_pins(char *path)
{
	const char *bpffs = secure_getenv("LIBXDP_BPFFS");

	snprintf(path, PATH_BYTES, "%s/xdp", bpffs ? bpffs : "/sys/fs/bpf");
}

/* Sets path to libxdp's pin of the link of program prog_id. Returns false if it has no slot. */
static bool dispatcher_link_path(u32 ifindex, u32 prog_id, char *path)
{
	struct xdp_multiprog *found = dispatcher_get(ifindex);
	struct xdp_program *program = NULL;
	char pins[PATH_BYTES];
	u32 slot = 0;

	if (!found)
		return false;
	dispatcher_pins(pins);
	while ((program = xdp_multiprog__next_prog(program, found))) {
		if (xdp_program__id(program) == prog_id)
			break;
		slot++;
	}
	if (program)
		snprintf(path, 2 * PATH_BYTES, "%s/dispatch-%u-%u/prog%u-link", pins, ifindex,
			 xdp_program__id(xdp_multiprog__main_prog(found)), slot);
	xdp_multiprog__close(found);
	return program;
}

static u32 dispatcher_prog_id(int prog_fd)
{
	struct bpf_prog_info info = { 0 };
	u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(prog_fd, &info, &len) ? 0 : info.id;
}

/* Returns whether fd is a link of that program, not the program itself. */
static bool dispatcher_is_link(int fd, u32 prog_id)
{
	struct bpf_link_info info = { 0 };
	u32 len = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == BPF_LINK_TYPE_TRACING &&
	       info.prog_id == prog_id;
}

/*
 * Replaces the link's pin by a descriptor, which it returns. The name stays, as libxdp removes it
 * later and fails if it is missing. It now pins the program, which libxdp has pinned elsewhere too.
 */
static int dispatcher_take_link(const char *path, int prog_fd)
{
	int fd = bpf_obj_get(path), err = 0;

	if (fd < 0)
		return -errno;
	if (!dispatcher_is_link(fd, dispatcher_prog_id(prog_fd)))
		err = -EALREADY;
	else if (unlink(path) || bpf_obj_pin(prog_fd, path))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int dispatcher_follow(u32 ifindex, int prog_fd)
{
	char path[2 * PATH_BYTES], pins[PATH_BYTES];
	int lock, err = -ENOENT;

	if (!dispatcher_link_path(ifindex, dispatcher_prog_id(prog_fd), path))
		return -ENOENT;
	/* libxdp's lock on its pins */
	dispatcher_pins(pins);
	lock = open(pins, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0)
		return -errno;
	if (flock(lock, LOCK_EX))
		err = -errno;
	else
		err = dispatcher_take_link(path, prog_fd);
	close(lock);
	return err;
}

/* ---- joining and leaving ---- */

void dispatcher_leave(u32 ifindex, int prog_fd)
{
	struct xdp_multiprog *found = dispatcher_get(ifindex);
	struct xdp_program *ours;
	struct prints before;

	if (!found)
		return;
	ours = xdp_program__from_fd(prog_fd);
	before = dispatcher_hush();
	if (ours && !libxdp_get_error(ours)) {
		xdp_program__detach(ours, (int)ifindex, xdp_multiprog__attach_mode(found), 0);
		xdp_program__close(ours);
	}
	dispatcher_unhush(before);
	xdp_multiprog__close(found);
}

void dispatcher_sweep(u32 ifindex)
{
	struct xdp_multiprog *found;
	struct xdp_program *program;
	int fd, last = -1;

	for (;;) {
		found = dispatcher_get(ifindex);
		program = NULL;
		while (found && (program = xdp_multiprog__next_prog(program, found)))
			if (!strcmp(xdp_program__name(program), DISPATCHER_OURS))
				break;
		fd = program ? dup(xdp_program__fd(program)) : -1;
		xdp_multiprog__close(found);
		/* found a second time: it cannot be removed */
		if (fd < 0 || (int)dispatcher_prog_id(fd) == last)
			break;
		last = (int)dispatcher_prog_id(fd);
		dispatcher_leave(ifindex, fd);
		close(fd);
	}
	if (fd >= 0)
		close(fd);
}

int dispatcher_join(struct bpf_object *object, u32 ifindex, bool native)
{
	DECLARE_LIBXDP_OPTS(xdp_program_opts, opts, .obj = object, .prog_name = DISPATCHER_OURS);
	const struct prints before = dispatcher_hush();
	const enum xdp_attach_mode mode = native ? XDP_MODE_NATIVE : XDP_MODE_SKB;
	struct xdp_program *ours = xdp_program__create(&opts);
	int err = !ours ? -ENOMEM : (int)libxdp_get_error(ours);
	int fd = -1;

	if (!err) {
		xdp_program__set_run_prio(ours, DISPATCHER_PRIORITY);
		err = bpf_room(object);
		if (!err)
			err = xdp_program__attach(ours, (int)ifindex, mode, 0);
		if (!err)
			fd = dispatcher_follow(ifindex, xdp_program__fd(ours));
		/* no slot: libxdp has attached it alone instead, and without a link */
		if (!err && fd == -ENOENT)
			err = -EOPNOTSUPP;
		else if (!err && fd < 0)
			err = fd;
		if (err)
			xdp_program__detach(ours, (int)ifindex, mode, 0);
		xdp_program__close(ours);
	}
	dispatcher_unhush(before);
	return err ? err : fd;
}

/* ---- the test ---- */

/* Replaces our program, which is attached nowhere, by a second copy. */
static int dispatcher_try_replace(struct xroce_bpf *target, struct xroce_bpf *slot)
{
	struct bpf_program *program = slot->progs.xroce_xdp;
	int err = bpf_load(target->skeleton), fd;

	if (err)
		return err;
	bpf_program__set_type(program, BPF_PROG_TYPE_EXT);
	bpf_program__set_expected_attach_type(program, 0);
	bpf_program__set_flags(program, 0);
	err = bpf_program__set_attach_target(program, bpf_program__fd(target->progs.xroce_xdp),
					     DISPATCHER_OURS);
	if (!err)
		err = bpf_load(slot->skeleton);
	if (err)
		return err;
	fd = bpf_raw_tracepoint_open(NULL, bpf_program__fd(program));
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int dispatcher_try_bpffs(void)
{
	const char *bpffs = secure_getenv("LIBXDP_BPFFS");
	struct statfs fs;

	if (statfs(bpffs ? bpffs : "/sys/fs/bpf", &fs))
		return -errno;
	return fs.f_type == BPF_FS_MAGIC ? 0 : -ENOENT;
}

int dispatcher_try(const char **step)
{
	const struct prints before = dispatcher_hush();
	struct xroce_bpf *target = hook_open_program(), *slot = hook_open_program();
	int err = -ENOMEM;

	*step = "replacing a function of an XDP program (freplace)";
	if (target && slot)
		err = dispatcher_try_replace(target, slot);
	xroce_bpf__destroy(target);
	xroce_bpf__destroy(slot);
	dispatcher_unhush(before);
	if (!err) {
		*step = "the BPF file system on /sys/fs/bpf";
		err = dispatcher_try_bpffs();
	}
	return err;
}
