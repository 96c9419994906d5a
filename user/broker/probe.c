/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tests of probe.h. They run in a child because a process that leaves its network namespace
 * cannot easily return to it, and because the kernel frees all that the child made when it exits.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <errno.h>
#include <xroce/trace.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "dispatcher.h"
#include "probe.h"
#include "hook.h"
#include "../io/tx_gso.h"
#include "../io/tx_redirect.h"
#include "../os/bpf_room.h"
#include "../os/kernel.h"
#include "xroce.skel.h"

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4) /* from 6.6 on; missing in older headers */
#endif

#define LOOPBACK_IFINDEX 1 /* in every namespace */
#define PROBE_FRAMES	 64
#define PROBE_CHUNK	 4096

static int probe_set_up(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	strncpy(ifr.ifr_name, name, sizeof(ifr.ifr_name) - 1);
	ret = ioctl(fd, SIOCSIFFLAGS, &ifr) ? -errno : 0;
	close(fd);
	return ret;
}

static int try_socket(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_bind(unsigned int bind_flags)
{
	const struct xsk_umem_config umem_config = {
		.fill_size = PROBE_FRAMES, .comp_size = PROBE_FRAMES, .frame_size = PROBE_CHUNK
	};
	const struct xsk_socket_config config = {
		.rx_size = PROBE_FRAMES,
		.tx_size = PROBE_FRAMES,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = (__u16)bind_flags,
	};
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	struct xsk_socket *xsk;
	struct xsk_umem *umem;
	void *area;
	int ret;

	area = mmap(NULL, PROBE_FRAMES * PROBE_CHUNK, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return -errno;
	ret = xsk_umem__create(&umem, area, PROBE_FRAMES * PROBE_CHUNK, &fill, &completion,
			       &umem_config);
	if (!ret) {
		ret = xsk_socket__create(&xsk, "lo", 0, umem, &rx, &tx, &config);
		if (!ret)
			xsk_socket__delete(xsk);
		xsk_umem__delete(umem);
	}
	munmap(area, PROBE_FRAMES * PROBE_CHUNK);
	return ret;
}

static void probe_trial(struct probe *p)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_SKB_MODE);
	struct xroce_bpf *bpf = hook_open_program();
	struct tx_redirect redirect;
	struct tx_gso gso;
	int fd;

	/* as attach_make() does, if permitted */
	kernel_raise_limit(RLIMIT_MEMLOCK);
	p->program = bpf ? bpf_load(bpf->skeleton) : -errno;
	p->socket = try_socket();
	p->redirect = tx_redirect_open(&redirect, LOOPBACK_IFINDEX, &p->redirect_step);
	p->gso = tx_gso_open(&gso, LOOPBACK_IFINDEX, &p->gso_step);
	if (!p->program)
		p->dispatcher = dispatcher_try(&p->dispatcher_step);
	p->namespace = unshare(CLONE_NEWNET) ? -errno : probe_set_up("lo");
	if (p->namespace)
		goto out;
	if (!p->program) {
		fd = bpf_link_create(bpf_program__fd(bpf->progs.xroce_xdp),
				     (int)if_nametoindex("lo"), BPF_XDP, &opts);
		p->link = fd < 0 ? fd : 0;
		if (fd >= 0)
			close(fd);
	}
	if (!p->socket)
		p->bind = try_bind(XDP_COPY);
	/* in another namespace, as the kernel frees a queue some time after its socket */
	if (!p->bind && !unshare(CLONE_NEWNET) && !probe_set_up("lo"))
		p->multibuffer = try_bind(XDP_COPY | XDP_USE_SG);
out:
	xroce_bpf__destroy(bpf);
	tx_redirect_close(&redirect);
	tx_gso_close(&gso);
}

int probe_run(struct probe *probe)
{
	const struct probe untried = { -ENODATA, -ENODATA, -ENODATA, -ENODATA, -ENODATA,
				       -ENODATA, -ENODATA, NULL,     -ENODATA, NULL,
				       -ENODATA, NULL };
	struct probe *shared;
	int ret = 0, status;
	pid_t child;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return -errno;
	*shared = untried;
	child = fork();
	if (child == 0) {
		probe_trial(shared);
		_exit(0);
	}
	if (child < 0)
		ret = -errno;
	else
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	*probe = *shared;
	munmap(shared, sizeof(*shared));
	return ret;
}
