/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks of this process and this kernel. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../../os/privilege.h"
#include "../../attach/pin.h"
#include "../../attach/probe.h"
#include "../../io/tx.h"
#include "../../io/tx_redirect.h"
#include "../../io/xsk.h"
#include "doctor.h"
#include "../serve/sysfs_global.h"

/* Returns the bytes of packet memory of a port, which the kernel counts as locked. */
static u64 packet_memory(u32 queues)
{
	return (u64)xsk_rx_frames(queues) * queues * UMEM_CHUNK +
	       (u64)min_u32(queues, XROCE_MAX_SHARD) * XSK_TX_SLOTS * UMEM_TX_SLOT_BYTES;
}

static void check_privileges(struct doctor *d, u64 caps)
{
	const bool admin = privilege_has(caps, CAP_SYS_ADMIN);
	char missing[64] = "";

	if (!privilege_has(caps, CAP_NET_ADMIN))
		strcat(missing, " CAP_NET_ADMIN");
	/* capabilities(7): CAP_SYS_ADMIN includes CAP_BPF */
	if (!privilege_has(caps, CAP_BPF) && !admin)
		strcat(missing, " CAP_BPF");
	if (!privilege_has(caps, CAP_NET_RAW))
		strcat(missing, " CAP_NET_RAW");
	if (*missing && d->brokered) {
		finding(d, LEVEL_OK, "privileges", NULL, "none needed, the interface has a broker");
	} else if (*missing) {
		finding(d, LEVEL_FAIL, "privileges",
			"run as root, or with CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW", "missing%s",
			missing);
	} else if (!privilege_in_first_user_namespace()) {
		finding(d, LEVEL_FAIL, "privileges",
			"run outside the container, or give it the host's user namespace",
			"only those of a user namespace, which the kernel does not accept for BPF");
	} else {
		d->may_bpf = true;
		finding(d, LEVEL_OK, "privileges", NULL, "CAP_NET_ADMIN, CAP_BPF, CAP_NET_RAW");
	}
}

static void check_memlock(struct doctor *d, u64 caps)
{
	struct rlimit lim;

	/* With CAP_SYS_RESOURCE the port raises the limit itself. */
	if (privilege_has(caps, CAP_IPC_LOCK) || privilege_has(caps, CAP_SYS_RESOURCE)) {
		finding(d, LEVEL_OK, "locked memory", NULL, "not limited (%s)",
			privilege_has(caps, CAP_IPC_LOCK) ? "CAP_IPC_LOCK" : "CAP_SYS_RESOURCE");
	} else if (getrlimit(RLIMIT_MEMLOCK, &lim)) {
		finding(d, LEVEL_WARN, "locked memory", NULL, "cannot read the limit: %s",
			strerror(errno));
	} else if (lim.rlim_max == RLIM_INFINITY) {
		finding(d, LEVEL_OK, "locked memory", NULL, "not limited");
	} else if (lim.rlim_max >= packet_memory(XROCE_MAX_QUEUE)) {
		finding(d, LEVEL_OK, "locked memory", NULL, "%llu MiB allowed",
			(unsigned long long)lim.rlim_max >> 20);
	} else {
		finding(d, lim.rlim_max < packet_memory(1) ? LEVEL_FAIL : LEVEL_WARN,
			"locked memory",
			"raise it: `ulimit -l unlimited` as root, or LimitMEMLOCK= of the service",
			"limit of %llu KiB for all processes of this user; an interface needs %llu "
			"KiB with one receive queue, %llu KiB with many",
			(unsigned long long)lim.rlim_max >> 10,
			(unsigned long long)packet_memory(1) >> 10,
			(unsigned long long)packet_memory(XROCE_MAX_QUEUE) >> 10);
	}
}

static void check_kernel(struct doctor *d)
{
	struct utsname u;

	if (uname(&u) < 0)
		memset(&u, 0, sizeof(u));
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		finding(d, LEVEL_WARN, "kernel", "use a kernel with CONFIG_DEBUG_INFO_BTF=y",
			"%s, without type information (BTF): bpftool shows less", u.release);
	else
		finding(d, LEVEL_OK, "kernel", NULL, "%s, with type information (BTF)", u.release);
}

/* Checks the JIT compiler; without it XDP works, but interpreted. */
static void check_jit(struct doctor *d)
{
	FILE *f = fopen("/proc/sys/net/core/bpf_jit_enable", "re");
	int on = 1;

	if (!f)
		return;
	if (fscanf(f, "%d", &on) == 1 && !on)
		finding(d, LEVEL_WARN, "BPF compiler", "run `sysctl net.core.bpf_jit_enable=1`",
			"off: the XDP program is interpreted, which is slow");
	fclose(f);
}

static int probe_mmapable_array(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "xroce_probe", sizeof(u32), sizeof(u32), 1,
				&opts);

	if (fd < 0)
		return 0;
	close(fd);
	return 1;
}

static void check_bpf_types(struct doctor *d)
{
	const struct {
		const char *name;
		int works; /* 1, 0 or -errno */
	} type[] = {
		{ "XDP programs (CONFIG_NET, CONFIG_BPF_SYSCALL)",
		  libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_XDP, NULL) },
		{ "XSK maps (CONFIG_XDP_SOCKETS)",
		  libbpf_probe_bpf_map_type(BPF_MAP_TYPE_XSKMAP, NULL) },
		{ "ring buffers (5.8)", libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) },
		{ "arrays of maps (4.12)",
		  libbpf_probe_bpf_map_type(BPF_MAP_TYPE_ARRAY_OF_MAPS, NULL) },
		{ "arrays in shared memory (5.5)", probe_mmapable_array() },
	};
	bool all = true;

	for (size_t i = 0; i < ARRAY_SIZE(type); i++) {
		if (type[i].works == 1)
			continue;
		all = false;
		finding(d, LEVEL_FAIL, "BPF",
			"use Linux 5.18 or later, 6.6 or later for path MTU 4096",
			"the kernel does not have %s", type[i].name);
	}
	if (all)
		finding(d, LEVEL_OK, "BPF", NULL,
			"XDP programs, XSK maps, ring buffers, arrays of maps, mappable arrays");
}

/* Returns the remedy for a probe's -errno: for a lack of descriptors, or other. */
static const char *remedy_of(int err, const char *other)
{
	if (err == -EMFILE)
		return "raise `ulimit -n`";
	return err == -ENFILE ? "raise sysctl fs.file-max" : other;
}

static void check_probe(struct doctor *d, const struct probe *p, u64 caps)
{
	/*
	 * Without CAP_PERFMON the verifier's defences against speculation (bpf_bypass_spec_v1)
	 * refuse pointer arithmetic.
	 */
	if ((p->program == -EACCES || p->program == -EPERM) && !privilege_has(caps, CAP_PERFMON) &&
	    !privilege_has(caps, CAP_SYS_ADMIN))
		finding(d, LEVEL_FAIL, "XDP program",
			"run as root, or with CAP_PERFMON as well",
			"does not load: the kernel's verifier requires CAP_PERFMON");
	else if (p->program)
		finding(d, LEVEL_FAIL, "XDP program",
			remedy_of(p->program, "use Linux 5.18 or later; XROCE_DEBUG=1 shows the "
					      "kernel's message when a program opens a device"),
			"does not load: %s", strerror(-p->program));
	else
		finding(d, LEVEL_OK, "XDP program", NULL, "loads, with all its maps");

	if (p->link == 0)
		finding(d, LEVEL_OK, "bpf_link", NULL, "attaches XDP; detached when its process "
						       "exits");
	else if (p->link != -ENODATA)
		finding(d, LEVEL_FAIL, "bpf_link", remedy_of(p->link, "use Linux 5.9 or later"),
			"does not attach XDP: %s", strerror(-p->link));

	if (p->dispatcher == 0)
		finding(d, LEVEL_OK, "dispatcher", NULL,
			"other XDP programs can run together with xroce's: with "
			"XROCE_ATTACH=dispatcher, or where a dispatcher is attached already");
	else if (p->dispatcher != -ENODATA)
		finding(d, LEVEL_OK, "dispatcher", NULL,
			"not available, so XDP is attached exclusively: %s: %s", p->dispatcher_step,
			strerror(-p->dispatcher));

	if (p->socket)
		finding(d, LEVEL_FAIL, "AF_XDP",
			p->socket == -EAFNOSUPPORT ? "use a kernel with CONFIG_XDP_SOCKETS=y" :
						     remedy_of(p->socket, NULL),
			"no sockets: %s", strerror(-p->socket));
	else if (p->bind == 0)
		finding(d, LEVEL_OK, "AF_XDP", NULL, "sockets bind");
	else if (p->bind == -ENODATA)
		finding(d, LEVEL_OK, "AF_XDP", NULL, "sockets can be created");
	else
		finding(d, LEVEL_FAIL, "AF_XDP",
			p->bind == -ENOBUFS || p->bind == -ENOMEM ? "raise `ulimit -l`" :
								    remedy_of(p->bind, NULL),
			"sockets do not bind: %s", strerror(-p->bind));

	if (p->redirect == 0)
		finding(d, LEVEL_OK, "redirection", NULL,
			"a TAP device can be created: frames are sent by XDP where the interface "
			"accepts them");
	else if (p->redirect != -ENODATA)
		finding(d, LEVEL_WARN, "redirection",
			remedy_of(p->redirect, tx_redirect_remedy(p->redirect_step, caps)),
			"not available, so frames are sent by a slower way: %s: %s",
			p->redirect_step, strerror(-p->redirect));

	if (p->gso == 0)
		finding(d, LEVEL_OK, "segmentation", NULL,
			"a packet socket can be created: frames can be sent as UDP super-packets");
	else if (p->gso != -ENODATA)
		finding(d, LEVEL_WARN, "segmentation",
			p->gso == -EPERM	? "run with CAP_NET_RAW" :
			p->gso == -EAFNOSUPPORT ? "use a kernel with CONFIG_PACKET=y" :
						  NULL,
			"frames cannot be sent as UDP super-packets, which is slower where they "
			"cannot be redirected: %s: %s",
			p->gso_step, strerror(-p->gso));

	/* Not probed: judge by the kernel's release. */
	d->multibuffer =
		p->multibuffer == -ENODATA ? netdev_kernel_multibuffer() : p->multibuffer == 0;
	if (d->multibuffer)
		finding(d, LEVEL_OK, "multi-buffer", NULL,
			"AF_XDP accepts frames in several buffers%s: path MTU up to 4096",
			p->multibuffer ? " (judged by the kernel's release)" : "");
	else
		finding(d, LEVEL_WARN, "multi-buffer", "use Linux 6.6 or later",
			"AF_XDP does not accept frames in several buffers: path MTU up to 2048");
}

static void check_pins(struct doctor *d)
{
	char why[256];

	if (pins_try(PIN_DIR, why, sizeof(why)))
		finding(d, LEVEL_OK, "pinned maps", NULL, "not possible: %s", why);
	else
		finding(d, LEVEL_OK, "pinned maps", NULL,
			"possible in " PIN_DIR ": `xroce serve --pin`, `xroce run --pin`");
}

static void check_files(struct doctor *d)
{
	const u32 left = sysfs_global_sweep(true);

	if (left)
		finding(d, LEVEL_WARN, "files",
			"run `xroce stop`, or `xroce serve` again",
			"%u device%s left by a killed broker", left,
			left == 1 ? "" : "s");
	else
		finding(d, LEVEL_OK, "files", NULL,
			"/sys/class/infiniband, /dev/infiniband: `xroce run` shows them to its "
			"program, `xroce serve --files` to all processes");
}

static void check_library(struct doctor *d)
{
	char dir[2 * PATH_MAX + 64];
	int ret = library_dir(dir, sizeof(dir));

	if (ret == -ENOENT)
		finding(d, LEVEL_FAIL, "library", "run `make` or `make install`",
			"xroce's libibverbs.so.1 is neither in %s", dir);
	else if (ret)
		finding(d, LEVEL_FAIL, "library", NULL, "cannot find its directory: %s",
			strerror(-ret));
	else
		finding(d, LEVEL_OK, "library", NULL, "%s/libibverbs.so.1", dir);
}

void doctor_host(struct doctor *d)
{
	const u64 caps = privilege_caps();
	struct probe probe;
	int ret;

	check_privileges(d, caps);
	/* clients of a broker lock no memory */
	if (d->may_bpf || !d->brokered)
		check_memlock(d, caps);
	check_kernel(d);
	check_jit(d);
	d->multibuffer = netdev_kernel_multibuffer();
	if (d->may_bpf) {
		check_bpf_types(d);
		ret = probe_run(&probe);
		if (ret)
			finding(d, LEVEL_WARN, "XDP program", NULL, "cannot be tested: %s",
				strerror(-ret));
		else
			check_probe(d, &probe, caps);
		check_pins(d);
	} else if (!d->brokered) {
		finding(d, LEVEL_WARN, "BPF and AF_XDP", "run `xroce doctor` with these privileges",
			"not tested: privileges are missing");
	}
	check_files(d);
	check_library(d);
}
