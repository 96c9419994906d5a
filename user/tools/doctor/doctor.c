/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce doctor: prints each problem and its remedy on one line. Checks the host here: privileges,
 * limits, kernel and library; doctor_iface.c checks interfaces. Changes nothing.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../../broker/pin.h"
#include "../../broker/probe.h"
#include "../../io/tx.h"
#include "../../io/tx_redirect.h"
#include "../../io/xsk.h"
#include "../../os/options.h"
#include "../../os/privilege.h"
#include "../run/sysfs_private.h"
#include "../serve/sysfs_global.h"
#include "../output.h"
#include "doctor.h"

/* ---- findings ---- */

/* The interface is a separate member, so its name is stripped from what. */
static void finding_json(struct doctor *d, const char *level, const char *what, const char *remedy,
			 const char *fmt, va_list ap)
{
	const size_t n = d->iface ? strlen(d->iface) : 0;
	struct json *j = d->json;
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	json_open_object(j, NULL);
	json_text(j, "level", level);
	if (d->iface)
		json_text(j, "interface", d->iface);
	else
		json_null(j, "interface");
	json_text(j, "what", n && !strncmp(what, d->iface, n) && what[n] == ' ' ? what + n + 1 :
										what);
	json_text(j, "finding", text);
	if (remedy)
		json_text(j, "remedy", remedy);
	else
		json_null(j, "remedy");
	json_close(j);
}

/* Prints a finding; output_clean() cleans it, as names in it are foreign input. */
static void finding_print(const char *level, const char *what, const char *remedy, const char *fmt,
			  va_list ap)
{
	char line[2048];
	size_t n;

	snprintf(line, sizeof(line), "%s: ", what);
	n = strlen(line);
	vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	n = strlen(line);
	if (remedy)
		snprintf(line + n, sizeof(line) - n, " -> %s", remedy);
	output_clean(line);
	printf("%-4s  %s\n", level, line);
}

void finding(struct doctor *d, enum level level, const char *what, const char *remedy,
	     const char *fmt, ...)
{
	static const char *const word[] = {
		[LEVEL_OK] = "ok", [LEVEL_WARN] = "warn", [LEVEL_FAIL] = "FAIL"
	};
	va_list ap;

	d->failures += level == LEVEL_FAIL;
	va_start(ap, fmt);
	if (d->json)
		finding_json(d, level == LEVEL_FAIL ? "fail" : word[level], what, remedy, fmt, ap);
	else
		finding_print(word[level], what, remedy, fmt, ap);
	va_end(ap);
}

/* ---- the host ---- */

/* Returns the bytes of packet memory of a port, which the kernel counts as locked. */
static u64 packet_memory(u32 queues)
{
	return (u64)xsk_rx_frames(queues) * queues * UMEM_CHUNK +
	       (u64)min_u32(queues, XROCE_MAX_SHARD) * XSK_TX_SLOTS * UMEM_TX_SLOT_BYTES;
}

/*
 * Creates and closes a BPF map that can be mapped, which needs CAP_BPF at most. Returns 0 or
 * -errno: -EINVAL from a kernel without such maps.
 */
static int probe_mmapable_array(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "xroce_probe", sizeof(u32), sizeof(u32),
				      1, &opts);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Returns whether bpf(2) is refused as a whole, to a process with the capabilities. */
static bool bpf_is_refused(int err)
{
	return err == -EPERM || err == -EACCES || err == -ENOSYS;
}

/* Returns the names of the missing capabilities after "missing", or NULL. text: 64 bytes. */
static const char *missing_caps(char *text, u64 caps)
{
	const size_t none = strlen(strcpy(text, "missing"));

	if (!privilege_has(caps, CAP_NET_ADMIN))
		strcat(text, " CAP_NET_ADMIN");
	/* capabilities(7): CAP_SYS_ADMIN includes CAP_BPF */
	if (!privilege_has(caps, CAP_BPF) && !privilege_has(caps, CAP_SYS_ADMIN))
		strcat(text, " CAP_BPF");
	if (!privilege_has(caps, CAP_NET_RAW))
		strcat(text, " CAP_NET_RAW");
	return text[none] ? text : NULL;
}

static void check_privileges(struct doctor *d, u64 caps)
{
	const char *remedy = "run as root, or with CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW";
	char missing[64], refused[128];
	const char *why = missing_caps(missing, caps);
	int err;

	if (!why && !privilege_in_first_user_namespace()) {
		why = "only those of a user namespace, which the kernel does not accept for BPF";
		remedy = "run outside the container, or give it the host's user namespace";
	} else if (!why && bpf_is_refused(err = probe_mmapable_array())) {
		snprintf(refused, sizeof(refused),
			 "bpf(2) is refused despite the capabilities (%s), as by a seccomp profile",
			 strerror(-err));
		why = refused;
		remedy = "allow bpf(2) in the profile, or run `xroce serve` outside of it";
	}
	d->may_bpf = !why;
	d->may_use_udp = options_port() != PORT_XDP && options_share() != SHARE_NEVER;
	if (!why)
		finding(d, LEVEL_OK, "privileges", NULL, "CAP_NET_ADMIN, CAP_BPF, CAP_NET_RAW");
	else if (d->brokered)
		finding(d, LEVEL_OK, "privileges", NULL, "none needed, the interface has a broker");
	else
		finding(d, d->may_use_udp ? LEVEL_WARN : LEVEL_FAIL, "privileges", remedy, "%s%s",
			why, d->may_use_udp ? ": ports use UDP sockets, which are slower" : "");
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
	if (access("/sys/kernel", F_OK))
		finding(d, LEVEL_WARN, "kernel", "mount it: `mount -t sysfs sysfs /sys`",
			"%s, without /sys, from which XDP programs read the kernel's type "
			"information (BTF): a broker that starts here uses UDP sockets",
			u.release);
	else if (access("/sys/kernel/btf/vmlinux", R_OK))
		finding(d, LEVEL_WARN, "kernel", "use a kernel with CONFIG_DEBUG_INFO_BTF=y",
			"%s, without type information (BTF), which a broker's XDP programs need: "
			"it uses UDP sockets",
			u.release);
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
		{ "arrays in shared memory (5.5)", !probe_mmapable_array() },
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

static void check_files(struct doctor *d, const struct netdev *list, int n)
{
	const u32 left = sysfs_global_sweep(true);
	const int err = left ? 0 : sysfs_private_check(list, (u32)n);

	if (err)
		finding(d, LEVEL_WARN, "files", "run as root, or allow user namespaces",
			"`xroce run` cannot show /sys/class/infiniband and /dev/infiniband to its "
			"program: %s",
			strerror(-err));
	else if (left)
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
			library_why(ret));
	else
		finding(d, LEVEL_OK, "library", NULL, "%s/libibverbs.so.1", dir);
}

static void doctor_host(struct doctor *d, const struct netdev *list, int n)
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
	check_files(d, list, n);
	check_library(d);
}

/* ---- the command ---- */

/* Sets *list to the *n interfaces to check, for free(). Returns an exit code. */
static int doctor_interfaces(const char *name, struct netdev **list, int *n)
{
	if (name) {
		*n = 1;
		*list = calloc(1, sizeof(**list));
		return *list ? find_device(&command_doctor, name, *list) : EXIT_FAILED;
	}
	*n = netdev_list(list);
	if (*n >= 0)
		return EXIT_OK;
	fprintf(stderr, "xroce doctor: cannot read the network interfaces: %s\n", strerror(-*n));
	return EXIT_FAILED;
}

/* Without a name, checks interfaces that a program could use: up, with an address, not lo. */
static bool doctor_looks_at(const char *name, const struct netdev *dev)
{
	return name || (!dev->is_loopback && dev->is_up && dev->num_gids);
}

static void doctor_look(struct doctor *d, const char *name, const struct netdev *list, int n)
{
	u32 usable = 0, looked_at = 0, brokered = 0;

	for (int i = 0; i < n; i++) {
		if (!doctor_looks_at(name, &list[i]))
			continue;
		looked_at++;
		brokered += doctor_has_broker(&list[i]);
	}
	d->brokered = looked_at && brokered == looked_at;
	doctor_host(d, list, n);
	for (int i = 0; i < n; i++) {
		if (!doctor_looks_at(name, &list[i]))
			continue;
		d->iface = list[i].name;
		if (d->json)
			terminal_say("xroce doctor: checking %s", d->iface);
		doctor_iface(d, &list[i]);
		d->iface = NULL;
		usable++;
	}
	if (!usable)
		finding(d, LEVEL_FAIL, "interfaces",
			"`ip link set IFACE up`, `ip address add ADDRESS/PREFIX dev IFACE`",
			"no interface except lo is up and has an address");
}

static void doctor_json(struct doctor *d, const char *name, const struct netdev *list, int n)
{
	struct json j;

	d->json = &j;
	json_begin(&j, stdout);
	json_open_object(&j, NULL);
	json_open_array(&j, "findings");
	doctor_look(d, name, list, n);
	json_close(&j);
	json_number(&j, "failures", d->failures);
	json_close(&j);
	json_end(&j);
	terminal_say(NULL);
}

static int doctor_main(int argc, char **argv)
{
	struct netdev *list = NULL;
	struct doctor d = { 0 };
	const char *name;
	bool is_json;
	int ret = iface_arguments(&command_doctor, argc, argv, &name, &is_json), n;

	if (ret)
		return ret;
	ret = doctor_interfaces(name, &list, &n);
	if (!ret) {
		/* The probes fork, and a child would write buffered output again. */
		setvbuf(stdout, NULL, _IOLBF, 0);
		if (is_json)
			doctor_json(&d, name, list, n);
		else
			doctor_look(&d, name, list, n);
		ret = d.failures ? EXIT_FAILED : EXIT_OK;
	}
	free(list);
	return ret;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check the requirements of xroce and suggest fixes",
	.main = doctor_main,
	.help = "usage: xroce doctor [OPTION] [IFACE]\n"
		"\n"
		"Checks the privileges of this process, the kernel, and IFACE, or every interface\n"
		"that is up and has an address, and prints a line for each check:\n"
		"\n"
		"  ok    SUBJECT: FINDING\n"
		"  warn  SUBJECT: FINDING -> REMEDY    works, but slower or with limits\n"
		"  FAIL  SUBJECT: FINDING -> REMEDY    does not work\n"
		"\n"
		"The checks: capabilities; locked memory; kernel release and type information\n"
		"(BTF); BPF map and program types; whether the XDP program loads, bpf_link\n"
		"attaches it, and AF_XDP sockets bind, with frames in several buffers; whether\n"
		"a TAP device can be created, which the fastest way to send needs\n"
		"(" TX_TUN_DEVICE ", CAP_SYS_ADMIN); the library; and for each interface its "
		"link,\n"
		"addresses, MTU and path MTU, receive queues, XDP mode, broker, the program on\n"
		"its XDP hook, and RDMA devices of the kernel that use it.\n"
		"\n"
		"It leaves nothing: probes run in a network namespace of their own; a port is\n"
		"requested from the interface's broker and returned. Without a broker, and\n"
		"without the privileges for XDP, it starts one as a program would, which binds\n"
		"UDP port 4791 and ends within seconds. Run it as the user and in the network\n"
		"namespace of the programs: other users may get other results.\n"
		"\n",
	.letters = "j",
	.help_end =
		"\n"
		"Exit status: 0 if no check failed, 1 if one did, 2 for wrong usage or no such\n"
		"interface.\n",
};
