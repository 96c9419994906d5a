/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce serve: the broker of interfaces, in the foreground. xroce stop: stops the broker of an
 * interface, and removes the remains of killed brokers.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../client/ask.h"
#include "../../client/broker_socket.h"
#include "../../client/spawn.h"
#include "../../broker/pin.h"
#include "../../os/inherited.h"
#include "../../os/options.h"
#include "../../broker/broker.h"
#include "../cli.h"
#include "sysfs_global.h"
#include "../output.h"

#define SERVE_MODE     0666
#define SERVE_CLIENTS  128
#define SERVE_QPS      4096
#define SERVE_RINGS    4096
#define SERVE_SERVICES 2048
#define SERVE_MIB      1024
#define SERVE_MOST_MIB 1048576
#define SERVE_MOST_QPS 65536

/* ---- serve: options ---- */

struct serve {
	struct broker_options options;
	const char *netns;
	bool background;
	bool files; /* show the devices' files to all processes */
	struct sysfs_global everyone;
};

/* Parses an octal mode. */
static bool serve_mode(const char *text, mode_t *mode)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 8);

	*mode = (mode_t)value;
	return isdigit((unsigned char)*text) && !*end && value <= 0777;
}

static bool serve_group(const char *name, gid_t *group)
{
	const struct group *entry = getgrnam(name);

	if (entry)
		*group = entry->gr_gid;
	return entry || cli_number32(name, 0, UINT_MAX - 1, group);
}

static int serve_pkey(struct pkey_table *pkeys, const char *text)
{
	switch (option_add_pkey(pkeys, text, strlen(text))) {
	case 0:
		return EXIT_OK;
	case -EEXIST:
		return usage_error(&command_serve, "--pkey '%s' is given twice", text);
	case -ENOSPC:
		return usage_error(&command_serve, "--pkey: more than %u P_Keys, including 0xffff",
				   XROCE_MAX_PKEY);
	default:
		return usage_error(&command_serve, "--pkey '%s' is not a P_Key, such as "
						   "0x8001", text);
	}
}

/* Adds the P_Keys of a comma-separated list. */
static int serve_pkeys(struct pkey_table *pkeys, char *list)
{
	int ret = EXIT_OK;
	char *one;

	while (!ret && (one = strsep(&list, ",")))
		ret = serve_pkey(pkeys, one);
	return ret;
}

enum {
	OPTION_WHILE_USED = CLI_LONG,
	OPTION_BACKGROUND,
	OPTION_FILES,
	OPTION_FIRST,
	OPTION_SOCKETS,
	OPTION_KIND,
	OPTION_PKEYS,
	OPTION_PINS,
	OPTION_PIN_GROUP,
	OPTION_MAX_CLIENTS,
	OPTION_MAX_QPS,
	OPTION_MAX_RINGS,
	OPTION_MAX_SERVICES,
	OPTION_MAX_MEMORY,
};

#define A_LIMIT "a number from 1 to 65536"
#define A_GROUP "the name or number of a group"

static const struct cli_option serve_table[] = {
	{ 'm', "mode", "MODE", "set the mode of the socket in /run/xroce, default 0666",
	  "an octal mode, such as 0660" },
	{ 'g', "group", "GROUP", "set the group of the socket, a name or number, for --mode\n"
	  "0660", A_GROUP },
	{ 'n', "netns", "NS",
	  "serve interfaces of network namespace NS: a name of\n"
	  "ip-netns(8), or the PID of a process in it", NULL },
	{ OPTION_BACKGROUND, "background", NULL,
	  "return when the broker listens, and serve in a new session", NULL },
	{ OPTION_WHILE_USED, "while-used", NULL,
	  "exit 1 s after the last client exits, or after 10 s without\n"
	  "any client", NULL },
	/* client/spawn.c */
	{ OPTION_FIRST, "first", NULL, NULL, NULL },
	{ OPTION_SOCKETS, "sockets", NULL, NULL, NULL },
	{ OPTION_KIND, "port", "KIND",
	  "receive by an XDP program (xdp), by UDP sockets (sockets),\n"
	  "which need no privilege, or by sockets if XDP is impossible\n"
	  "(auto, the default)", "auto, xdp or sockets" },
	{ OPTION_PKEYS, "pkey", "LIST",
	  "add the P_Keys of LIST after the default 0xffff to the\n"
	  "table, up to 31 of them: 0x8001 for full members, 0x0001\n"
	  "for limited ones", NULL },
	{ OPTION_PINS, "pin", "[=DIR]",
	  "pin the readable maps of the broker and of its clients in\n"
	  "DIR of a BPF file system, default " PIN_DIR, "an absolute path" },
	{ OPTION_PIN_GROUP, "pin-group", "GROUP",
	  "let GROUP read the pinned maps, default only root", A_GROUP },
	{ OPTION_FILES, "files", NULL,
	  "show the devices to all processes in /sys/class/infiniband\n"
	  "and /dev/infiniband until the broker exits, as 'xroce run'\n"
	  "does for one program", NULL },
	{ OPTION_MAX_CLIENTS, "max-clients", "N",
	  "limit a user to N processes with a port, default 128\n"
	  "(1024 for all users)", "a number from 1 to 1024" },
	{ OPTION_MAX_QPS, "max-qps", "N", "limit a user to N QPs, default 4096", A_LIMIT },
	{ OPTION_MAX_RINGS, "max-rings", "N", "limit a user to N wake-up rings, default 4096",
	  A_LIMIT },
	{ OPTION_MAX_SERVICES, "max-services", "N",
	  "limit a user to N services of the connection manager\n"
	  "(bound ports), default 2048 (8192 for all users)", "a number from 1 to 8192" },
	{ OPTION_MAX_MEMORY, "max-memory", "MIB",
	  "limit a user to MIB MiB of kernel memory for ports,\n"
	  "channels and tracers, default 1024", "a number from 1 to 1048576" },
	{ 0 },
};

static int serve_option(void *arg, int opt, char *value)
{
	struct serve *s = arg;
	struct broker_options *o = &s->options;
	bool good = true;

	switch (opt) {
	case 'm':
		good = serve_mode(value, &o->mode);
		break;
	case 'g':
		good = serve_group(value, &o->group);
		break;
	case 'n':
		s->netns = value;
		break;
	case OPTION_BACKGROUND:
		s->background = true;
		break;
	case OPTION_FIRST:
		o->client_fd = SPAWN_CLIENT_FD;
		break;
	case OPTION_SOCKETS:
		o->sockets = true;
		break;
	case OPTION_KIND:
		o->udp = !strcmp(value, "sockets");
		o->or_udp = !strcmp(value, "auto");
		good = o->udp || o->or_udp || !strcmp(value, "xdp");
		break;
	case OPTION_WHILE_USED:
		o->while_used = true;
		break;
	case OPTION_FILES:
		s->files = true;
		break;
	case OPTION_PKEYS:
		return serve_pkeys(&o->pkeys, value);
	case OPTION_PINS:
		good = !value || *value == '/';
		o->pin = value ? value : PIN_DIR;
		break;
	case OPTION_PIN_GROUP:
		good = serve_group(value, &o->pin_group);
		break;
	case OPTION_MAX_CLIENTS:
		good = cli_number32(value, 1, XROCE_MAX_CLIENT, &o->max_clients);
		break;
	case OPTION_MAX_QPS:
		good = cli_number32(value, 1, SERVE_MOST_QPS, &o->max_qps);
		break;
	case OPTION_MAX_RINGS:
		good = cli_number32(value, 1, SERVE_MOST_QPS, &o->max_rings);
		break;
	case OPTION_MAX_SERVICES:
		good = cli_number32(value, 1, BROKER_SERVICES, &o->max_services);
		break;
	case OPTION_MAX_MEMORY:
		good = cli_number32(value, 1, SERVE_MOST_MIB, &o->max_memory_mib);
		break;
	}
	return good ? EXIT_OK : CLI_REFUSED;
}

/* ---- serve: the network namespace ---- */

/* Enters the namespace by its `ip netns` name or a PID in it. Returns an exit code. */
static int serve_enter(const char *netns)
{
	char path[PATH_MAX];
	u32 pid;
	int fd, err;

	if (cli_number32(netns, 1, INT_MAX, &pid))
		snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	else
		snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = strchr(netns, '/') ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "xroce serve: no network namespace '%s': neither a name of `ip "
				"netns` nor a PID\n", netns);
		return EXIT_USAGE;
	}
	err = setns(fd, CLONE_NEWNET) ? errno : 0;
	close(fd);
	if (!err)
		return EXIT_OK;
	fprintf(stderr, "xroce serve: cannot enter network namespace '%s': %s\n", netns,
		strerror(err));
	return EXIT_FAILED;
}

/* ---- serve: the connection of the process that started it ---- */

static int serve_inherit(const struct serve *s, int interfaces)
{
	if (s->options.client_fd < 0 && !s->options.sockets)
		return EXIT_OK;
	if (s->options.client_fd < 0 || !s->options.while_used || interfaces != 1)
		return usage_error(&command_serve, "--first and --sockets are reserved for the "
						   "library");
	if (!fcntl(s->options.client_fd, F_SETFD, FD_CLOEXEC))
		return EXIT_OK;
	fprintf(stderr, "xroce serve: no connection to serve: %s\n", strerror(errno));
	return EXIT_USAGE;
}

/* ---- systemd ---- */

/* Not sd_notify() of libsystemd: CONTRIBUTING.md, "Libraries". */
void notify_systemd(const char *state)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len;
	int fd;

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(to.sun_path))
		return;
	len = strlen(path);
	memcpy(to.sun_path, path, len);
	if (*path == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

/* ---- serve: the command ---- */

static int serve_signals(void)
{
	struct sigaction hangup = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* its terminal is closed; nohup(1) ignores that, but a blocked signal is not ignored */
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void serve_ends(void *arg, const struct netdev *dev)
{
	struct serve *s = arg;

	sysfs_global_drop(&s->everyone, dev->ifindex);
}

/*
 * The library gets the errno: ENOENT would be a command that is not installed. If there is another
 * broker, it asks that one.
 */
static int serve_exit_code(const struct serve *s, int err)
{
	if (s->options.client_fd < 0)
		return err ? EXIT_FAILED : EXIT_OK;
	return err == -EALREADY ? EXIT_OK : err == -ENOENT ? EIO : -err;
}

static int serve_devices(struct brokers *all, struct serve *s, char **names, u32 n)
{
	struct netdev *devs = calloc(n, sizeof(*devs));
	int ret = devs ? EXIT_OK : EXIT_FAILED;

	for (u32 i = 0; i < n && !ret; i++) {
		ret = find_device(&command_serve, names[i], &devs[i]);
		if (!ret)
			ret = serve_exit_code(s, brokers_add(all, &devs[i], &s->options));
	}
	if (!ret && s->files && sysfs_global_begin(&s->everyone, devs, n, &s->options.pkeys))
		ret = EXIT_FAILED;
	free(devs);
	return ret;
}

static int serve_all(struct brokers *all, struct serve *s, char **names)
{
	u32 n = 0;

	while (names[n])
		n++;
	/* remains of killed brokers */
	sysfs_global_sweep(false);
	broker_socket_bury_dead();
	return serve_devices(all, s, names, n);
}

/*
 * Reports readiness. Also closes standard error, as its reader waits for the program that started
 * this process, not for the broker.
 */
static void serve_tell(int ready_fd)
{
	if (ready_fd < 0)
		return;
	dup2(STDIN_FILENO, STDERR_FILENO);
	if (write(ready_fd, "", 1) == 1)
		close(ready_fd);
}

/* Prints a note for a user at the terminal. */
static void serve_say(char **names)
{
	for (; *names; names++)
		terminal_note("xroce serve: serving %s; ^C stops it", *names);
}

/* ready_fd: receives a byte when the broker listens; -1: none. */
static int serve_run(struct serve *s, char **names, int ready_fd)
{
	const int end_fd = serve_signals();
	struct brokers *all;
	int ret = end_fd < 0 ? -errno : brokers_make(&all);

	if (ret) {
		fprintf(stderr, "xroce serve: cannot start: %s\n", strerror(-ret));
		return EXIT_FAILED;
	}
	ret = serve_all(all, s, names);
	if (!ret) {
		notify_systemd("READY=1");
		serve_tell(ready_fd);
		if (ready_fd < 0 && !s->options.while_used)
			serve_say(names);
		ret = brokers_run(all, end_fd) ? EXIT_FAILED : EXIT_OK;
		notify_systemd("STOPPING=1");
	}
	sysfs_global_end(&s->everyone);
	brokers_unmake(all);
	close(end_fd);
	return ret;
}

/* Returns the exit code of the child, which has not served. */
static int serve_failed(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

/* Serves in a child with a new session. This process exits once the child listens or has failed. */
static int serve_in_background(struct serve *s, char **names)
{
	int ready[2], null_fd;
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) || (pid = fork()) < 0) {
		fprintf(stderr, "xroce serve: cannot start: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	if (pid) {
		close(ready[1]);
		return read(ready[0], &byte, 1) == 1 ? EXIT_OK : serve_failed(pid);
	}
	close(ready[0]);
	setsid();
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd >= 0) {
		dup2(null_fd, STDIN_FILENO);
		dup2(null_fd, STDOUT_FILENO);
	}
	return chdir("/") ? EXIT_FAILED : serve_run(s, names, ready[1]);
}

static int serve_main(int argc, char **argv)
{
	struct serve s = { .everyone = SYSFS_GLOBAL_NONE,
			   .options = { .mode = SERVE_MODE,
					.group = (gid_t)-1,
					.pin = options_pin(),
					.pin_group = (gid_t)-1,
					.max_clients = SERVE_CLIENTS,
					.max_qps = SERVE_QPS,
					.max_rings = SERVE_RINGS,
					.max_services = SERVE_SERVICES,
					.max_memory_mib = SERVE_MIB,
					.or_udp = true,
					.client_fd = -1,
					.pkeys = PKEY_TABLE_DEFAULT } };
	int ret;

	s.options.ends = serve_ends;
	s.options.ends_arg = &s;
	ret = cli_parse(&command_serve, &argc, &argv, serve_option, &s);
	if (ret)
		return ret;
	if (!argc)
		return usage_error(&command_serve, "no interface given");
	if (s.options.pin_group != (gid_t)-1 && !s.options.pin)
		return usage_error(&command_serve, "--pin-group needs --pin");
	if (s.files && s.netns)
		return usage_error(&command_serve,
				   "--files cannot be used with --netns: the files are for "
				   "processes of this namespace");
	ret = serve_inherit(&s, argc);
	/* an administrator's settings for `xroce serve` are kept */
	if (!ret && s.options.client_fd >= 0)
		inherited_reset();
	if (!ret && s.netns)
		ret = serve_enter(s.netns);
	if (ret)
		return ret;
	return s.background ? serve_in_background(&s, argv) : serve_run(&s, argv, -1);
}

const struct command command_serve = {
	.name = "serve",
	.summary = "share interfaces among processes of all users",
	.main = serve_main,
	.help = "usage: xroce serve [OPTION...] IFACE...\n"
		"\n"
		"Runs the broker of each IFACE, in the foreground by default, until it is stopped\n"
		"('xroce stop', SIGTERM, SIGINT) or the interface is removed. Any number of\n"
		"processes, also of users without privileges, can then use the interface at the\n"
		"same time. When a broker exits, its clients get a fatal event. An XDP program\n"
		"needs root, or CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON.\n"
		"\n",
	.options = serve_table,
	.help_end =
		"\n"
		"The limits are for each interface; root has none. With $NOTIFY_SOCKET set, the\n"
		"broker notifies systemd when it is ready (xroce@.service).\n"
		"\n"
		"Exit status: 0 if it was stopped, 1 if it cannot serve, 2 for wrong usage or no\n"
		"such interface.\n"
		"\n"
		"Examples:\n"
		"  xroce serve eth0 &\n"
		"  xroce serve --group rdma --mode 0660 eth0 eth1\n"
		"  xroce serve --pkey 0x8001,0x0002 eth0\n"
		"  systemctl enable --now xroce@eth0\n",
};

/* ---- stop ---- */

/* Waits until the broker closes the connection, after it has released everything. */
static void stop_await(const struct asker *a)
{
	char byte;

	while (recv(a->fd, &byte, 1, 0) < 0 && errno == EINTR)
		;
}

static int stop_broker(const struct netdev *dev)
{
	struct asker asker;
	int err;

	ask_init(&asker);
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	if (!err) {
		err = ask_stop(&asker);
		if (!err)
			stop_await(&asker);
		else if (err == -EPERM)
			err = -EACCES;
		else if (err == -EPIPE)
			/* it is ending */
			err = -ENOENT;
	}
	ask_close(&asker);
	return err;
}

/* Removes the remains of killed brokers. Returns true if there were any. */
static bool stop_sweep(const char *dir)
{
	const int swept = pins_sweep(dir);
	const u32 files = sysfs_global_sweep(false);

	broker_socket_bury_dead();
	if (swept > 0)
		fprintf(stderr,
			"xroce stop: removed the pinned maps of %d killed process%s in %s\n",
			swept, swept == 1 ? "" : "es", dir);
	if (files)
		fprintf(stderr,
			"xroce stop: removed the files of %u device%s whose broker was killed\n",
			files, files == 1 ? "" : "s");
	return swept > 0 || files;
}

static const struct cli_option stop_table[] = {
	{ OPTION_PINS, "pin", "[=DIR]",
	  "remove maps that killed processes left pinned in DIR,\n"
	  "default " PIN_DIR, NULL },
	{ 0 },
};

static int stop_option(void *arg, int opt, char *value)
{
	*(const char **)arg = value;
	return EXIT_OK;
}

/* Prints why the broker goes on. */
static void stop_complain(const struct netdev *dev, int err)
{
	char comm[32];
	pid_t pid = 0;

	fprintf(stderr, "xroce stop: cannot stop the broker of %s: ", dev->name);
	if (err == -EACCES)
		fprintf(stderr, "permission denied: only root or the broker's own user may stop "
				"it\n");
	else if (err == -ENOENT &&
		 netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == -EPERM && pid > 0)
		fprintf(stderr, "process %d (%s) of another user claims the interface; `kill %d` "
				"ends it\n",
			(int)pid, comm, (int)pid);
	else
		fprintf(stderr, "%s\n", err == -ENOENT ? "no broker on this interface" :
							 strerror(-err));
}

static int stop_main(int argc, char **argv)
{
	const char *dir = options_pin();
	struct netdev dev;
	int err, ret;
	bool swept;

	ret = cli_parse(&command_stop, &argc, &argv, stop_option, &dir);
	if (ret)
		return ret;
	if (argc != 1)
		return usage_error(&command_stop, argc ? "more than one interface" :
							 "no interface given");
	ret = find_device(&command_stop, argv[0], &dev);
	if (ret)
		return ret;
	err = stop_broker(&dev);
	swept = stop_sweep(dir ? dir : PIN_DIR);
	if (!err || (err == -ENOENT && swept))
		return EXIT_OK;
	stop_complain(&dev, err);
	return EXIT_FAILED;
}

const struct command command_stop = {
	.name = "stop",
	.summary = "stop the broker of an interface",
	.main = stop_main,
	.help = "usage: xroce stop [--pin=DIR] IFACE\n"
		"\n"
		"Stops the broker that 'xroce serve' runs for IFACE and returns when it has\n"
		"exited. Its clients get a fatal event and their work requests are flushed. Only\n"
		"root and the broker's own user may stop it.\n"
		"\n",
	.options = stop_table,
	.help_end =
		"\n"
		"Exit status: 0 if the broker has exited, 1 if there is none or it may not be\n"
		"stopped, 2 for wrong usage or no such interface.\n",
};
