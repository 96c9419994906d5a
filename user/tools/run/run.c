/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce run: starts a program on our library. Finds libibverbs.so.1 relative to this program, in
 * the build tree and installed. Sets environment variables, makes the devices' files in a private
 * mount namespace (sysfs_private.h), and executes the program.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../../broker/pin.h"
#include "../../os/ask.h"
#include "../../os/options.h"
#include "../../os/privilege.h"
#include "../cli.h"
#include "daemonize.h"
#include "reaper.h"
#include "sysfs_private.h"

/* As env(1), nohup(1) and the shells. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

#define LIBRARY "libibverbs.so.1"
/* In the directory of LIBRARY: the directory with the command RDMA_NAME (rdma.c). */
#define COMMANDS "bin"
/* In the directory of LIBRARY: redirects socket calls. */
#define PRELOAD "librspreload.so"
/* The Makefile sets XROCE_LIBDIR: the install directory, relative to the command's. */
/* The path of brokers' sockets, present in our library only, also when it is stripped. */
#define MARK ASK_PATH

/* ---- the library ---- */

/*
 * Returns whether the file is our library: under a prefix like /usr, the system's library may have
 * this name.
 */
static bool library_is_ours(const char *path)
{
	struct stat st;
	void *map;
	bool found;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	map = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ?
		      mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) :
		      MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED)
		return false;
	found = memmem(map, (size_t)st.st_size, MARK, sizeof(MARK)) != NULL;
	munmap(map, (size_t)st.st_size);
	return found;
}

int library_dir(char *dir, size_t n)
{
	/* the installed path first, since PREFIX/lib of an installation is not ours */
	static const char *const place[] = { XROCE_LIBDIR, "../lib" };
	char self[PATH_MAX], path[2 * PATH_MAX], *real;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	self[len] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		const char *base = place[i][0] == '/' ? "" : self;

		snprintf(path, sizeof(path), "%s/%s/" LIBRARY, base, place[i]);
		if (!library_is_ours(path))
			continue;
		snprintf(path, sizeof(path), "%s/%s", base, place[i]);
		real = realpath(path, NULL);
		if (!real)
			return -errno;
		len = snprintf(dir, n, "%s", real);
		free(real);
		return (size_t)len < n ? 0 : -ENAMETOOLONG;
	}
	snprintf(dir, n, "%s/%s nor in %s/%s", XROCE_LIBDIR[0] == '/' ? "" : self, place[0], self,
		 place[1]);
	return -ENOENT;
}

/* ---- the program and its variables ---- */

/* Finds the file that execvp(3) executes for name. Returns false if there is none. */
static bool search_path(const char *name, char *file, size_t n)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(file, n, "%s", name);
		return access(file, X_OK) == 0;
	}
	for (path = path ? path : "/bin:/usr/bin";; path++) {
		size_t len = strcspn(path, ":");

		snprintf(file, n, "%.*s/%s", len ? (int)len : 1, len ? path : ".", name);
		if (access(file, X_OK) == 0)
			return true;
		path += len;
		if (!*path)
			return false;
	}
}

/*
 * Warns if the program gains privileges at its start, as the loader then ignores LD_LIBRARY_PATH
 * (ld.so(8), secure-execution mode). Returns true if so.
 */
static bool warn_if_privileged(const char *name)
{
	char file[PATH_MAX];
	struct stat st;
	const char *what;

	if (!search_path(name, file, sizeof(file)) || stat(file, &st))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		what = "set-user-ID";
	else if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
		what = "set-group-ID";
	else if (getuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0)
		what = "given file capabilities";
	else
		return false;
	fprintf(stderr,
		"xroce run: warning: %s is %s: the dynamic loader ignores LD_LIBRARY_PATH, so the "
		"program does not use xroce; run it as its owner, or run a copy without that "
		"privilege\n",
		file, what);
	return true;
}

/*
 * Prepends text to a colon-separated variable. Returns 0 or -errno. To the loader an empty element
 * means the current directory, so none may be left.
 */
static int prepend_to_variable(const char *variable, const char *text)
{
	const char *old = getenv(variable);
	char *joined;
	int ret;

	if (!old || !*old)
		return setenv(variable, text, 1) ? -errno : 0;
	if (asprintf(&joined, "%s:%s", text, old) < 0)
		return -ENOMEM;
	ret = setenv(variable, joined, 1) ? -errno : 0;
	free(joined);
	return ret;
}

static int prepend(const char *variable, const char *text)
{
	int ret = prepend_to_variable(variable, text);

	if (!ret)
		return EXIT_OK;
	fprintf(stderr, "xroce run: cannot set %s: %s\n", variable, strerror(-ret));
	return EXIT_FAILED;
}

/* Makes the program's sockets rsockets: rsocket(7). */
static int set_preload(const char *dir)
{
	char file[3 * PATH_MAX];

	snprintf(file, sizeof(file), "%s/" PRELOAD, dir);
	if (access(file, R_OK)) {
		fprintf(stderr, "xroce run: cannot read %s: %s\n", file, strerror(errno));
		return EXIT_USAGE;
	}
	if (strchr(dir, ' ')) {
		fprintf(stderr,
			"xroce run: the library directory '%s' has a space in its name, which "
			"LD_PRELOAD cannot contain; move it\n",
			dir);
		return EXIT_USAGE;
	}
	return prepend("LD_PRELOAD", file);
}

const char *library_why(int err)
{
	return err == -ESRCH ? "/proc is not mounted (`mount -t proc proc /proc`)" : strerror(-err);
}

/* Puts the directory COMMANDS in front of PATH if it is installed. */
static int set_commands(const char *dir)
{
	char file[3 * PATH_MAX];

	snprintf(file, sizeof(file), "%s/" COMMANDS "/" RDMA_NAME, dir);
	if (!getenv("PATH") || access(file, X_OK))
		return EXIT_OK;
	*strrchr(file, '/') = 0;
	return prepend("PATH", file);
}

static int set_library(bool with_rsockets)
{
	char dir[2 * PATH_MAX + 64];
	int ret = library_dir(dir, sizeof(dir));

	if (ret == -ENOENT)
		fprintf(stderr,
			"xroce run: xroce's libibverbs.so.1 is neither in %s; build it (`make`) or "
			"install it (`make install`)\n",
			dir);
	else if (ret)
		fprintf(stderr, "xroce run: cannot find the directory of this program: %s\n",
			library_why(ret));
	if (ret)
		return EXIT_USAGE;
	if (strpbrk(dir, ":;")) {
		fprintf(stderr,
			"xroce run: the library directory '%s' has a colon or semicolon in its "
			"name, which LD_LIBRARY_PATH cannot contain; move it\n",
			dir);
		return EXIT_USAGE;
	}
	ret = prepend("LD_LIBRARY_PATH", dir);
	if (!ret)
		ret = set_commands(dir);
	return ret || !with_rsockets ? ret : set_preload(dir);
}

/* ---- variables for the library: os/options.h ---- */

enum { OPTION_OF_PIN = CLI_LONG, OPTION_OF_TABLE /* the first of option_table */ };

static const struct cli_option run_first = {
	'd', "dev", "IFACE",
	"show only IFACE to COMMAND, as its single device\n"
	"(sets " NETDEV_ENV ")", NULL
};

static const struct cli_option run_last[] = {
	{ 'N', "no-mounts", NULL, "run COMMAND in the caller's mount namespace, without files\n"
	  "in /sys/class/infiniband and /dev/infiniband", NULL },
	{ OPTION_OF_PIN, "pin", "[=DIR]",
	  "pin the maps of a broker that COMMAND starts, and of its\n"
	  "clients, in DIR of a BPF file system (sets XROCE_PIN),\n"
	  "default " PIN_DIR, "an absolute path" },
	{ 'r', "rsockets", NULL,
	  "replace COMMAND's stream and datagram sockets by rsockets,\n"
	  "over RDMA (sets LD_PRELOAD; rsocket(7)); servers that fork\n"
	  "need RDMAV_FORK_SAFE=1 at both ends (xroce-rdmacm(7))", NULL },
	{ 'v', "verbose", NULL,
	  "print the command and the directory of the libraries to\n"
	  "standard error", NULL },
};

/* run_first, the options of option_table, run_last */
static struct cli_option run_table[1 + NUM_OPTIONS + ARRAY_SIZE(run_last) + 1];

static void run_make_options(void)
{
	static char texts[NUM_OPTIONS][256], wants[NUM_OPTIONS][128];
	struct cli_option *o = run_table;
	char fallback[32] = "";

	*o++ = run_first;
	for (u32 i = 0; i < NUM_OPTIONS; i++) {
		const struct option_spec *spec = &option_table[i];

		if (!spec->flag)
			continue;
		option_wants(spec, wants[i], sizeof(wants[i]));
		if (spec->kind == OPTION_IS_NUMBER)
			snprintf(fallback, sizeof(fallback), ", default %u", spec->fallback);
		else
			*fallback = 0;
		snprintf(texts[i], sizeof(texts[i]), "%s\n%s: %.127s%s (%s)", spec->help,
			 spec->value, wants[i], fallback, spec->variable);
		*o++ = (struct cli_option){ OPTION_OF_TABLE + (int)i, spec->flag, spec->value,
					    texts[i], wants[i] };
	}
	memcpy(o, run_last, sizeof(run_last));
}

static int set_variable(const struct option_spec *spec, const char *value)
{
	if (!option_is_valid(spec, value))
		return CLI_REFUSED;
	if (!setenv(spec->variable, value, 1))
		return EXIT_OK;
	fprintf(stderr, "xroce run: cannot set %s: %s\n", spec->variable, strerror(errno));
	return EXIT_FAILED;
}

/* Returns EXIT_OK, or EXIT_USAGE after a message about the first variable that is invalid. */
static int check_variables(void)
{
	char wants[128], shown[128];

	for (u32 i = 0; i < NUM_OPTIONS; i++) {
		const struct option_spec *spec = &option_table[i];
		const char *text = getenv(spec->variable);

		if (!text || !*text || option_is_valid(spec, text))
			continue;
		snprintf(shown, sizeof(shown), "%s", text);
		output_clean(shown);
		fprintf(stderr, "xroce run: invalid value '%s' of %s: it takes %s\n", shown,
			spec->variable, option_wants(spec, wants, sizeof(wants)));
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

struct run_choices {
	const char *dev;
	bool verbose, with_rsockets, without_files;
};

static int run_option(void *arg, int opt, char *value)
{
	struct run_choices *c = arg;

	switch (opt) {
	case 'd':
		c->dev = value;
		return EXIT_OK;
	case 'N':
		c->without_files = true;
		return EXIT_OK;
	case OPTION_OF_PIN:
		return set_variable(&option_table[OPTION_PIN], value ? value : PIN_DIR);
	case 'r':
		c->with_rsockets = true;
		return EXIT_OK;
	case 'v':
		c->verbose = true;
		return EXIT_OK;
	default:
		return set_variable(&option_table[opt - OPTION_OF_TABLE], value);
	}
}

/* Explains why no process can outlive the program. */
static const char *outlive_strerror(int err)
{
	return err == -ECHILD ? "the program would be the parent, as the first process of this PID "
				"namespace or as a subreaper, or /proc is of another one" :
				strerror(-err);
}

/* Makes the files. A failure is no error, since most programs run without them. */
static void show_files(bool verbose)
{
	struct netdev *devs;
	int n = netdev_list(&devs), err, counters_err;

	if (n <= 0)
		return;
	err = sysfs_private_enter(devs, (u32)n, &counters_err);
	free(devs);
	if (!verbose && !options_is_set(OPTION_DEBUG))
		return;
	if (!err && counters_err)
		fprintf(stderr,
			"xroce run: cannot serve counter files by /dev/fuse: %s\n",
			outlive_strerror(counters_err));
	if (err)
		fprintf(stderr,
			"xroce run: cannot show the devices in /sys/class/infiniband and "
			"/dev/infiniband: cannot create a mount namespace: %s\n",
			strerror(-err));
}

/*
 * The maps that the program pins, and a program of its children's, do not go with it if it is
 * killed: a process that outlives it takes them away.
 */
static void keep_pins_work(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	pins_sweep(options_pin());
}

static void keep_pins(bool verbose)
{
	int fd, err;

	/* the broker removes a client's pins */
	if (!options_pin() || !privilege_may_attach())
		return;
	fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	err = fd < 0 ? -errno : daemonize("xroce-pins", 0, keep_pins_work, &fd, &fd, 1);
	if (fd >= 0)
		close(fd);
	if (err && (verbose || options_is_set(OPTION_DEBUG)))
		fprintf(stderr,
			"xroce run: pinned maps remain until the next use of xroce if the program "
			"is killed: %s\n",
			outlive_strerror(err));
}

static int run_main(int argc, char **argv)
{
	struct run_choices c = { 0 };
	struct netdev dev;
	int ret = cli_parse(&command_run, &argc, &argv, run_option, &c);

	if (ret)
		return ret;
	if (!argc)
		return usage_error(&command_run, "no command given");
	ret = check_variables();
	if (ret)
		return ret;
	if (c.dev) {
		ret = find_device(&command_run, c.dev, &dev);
		if (ret)
			return ret;
		if (setenv(NETDEV_ENV, c.dev, 1)) {
			fprintf(stderr, "xroce run: cannot set " NETDEV_ENV ": %s\n",
				strerror(errno));
			return EXIT_FAILED;
		}
	}
	ret = set_library(c.with_rsockets);
	if (ret)
		return ret;
	if (warn_if_privileged(argv[0]))
		c.without_files = true; /* it does not load our library */
	if (c.verbose) {
		const char *only = getenv(NETDEV_ENV);

		fprintf(stderr, "xroce run: LD_LIBRARY_PATH=%s %s%s%s%s%s%s%s\n",
			getenv("LD_LIBRARY_PATH"), c.with_rsockets ? "LD_PRELOAD=" : "",
			c.with_rsockets ? getenv("LD_PRELOAD") : "", c.with_rsockets ? " " : "",
			only ? NETDEV_ENV "=" : "", only ? only : "", only ? " " : "", argv[0]);
	}
	reaper_fork();
	keep_pins(c.verbose);
	if (!c.without_files)
		show_files(c.verbose);
	reaper_bind();

	execvp(argv[0], argv);
	ret = errno;
	fprintf(stderr, "xroce run: cannot run '%s': %s\n", argv[0],
		ret == ENOENT ? "command not found" : strerror(ret));
	return ret == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

const struct command command_run = {
	.name = "run",
	.summary = "run a program on the xroce devices",
	.main = run_main,
	.help = "usage: xroce run [--dev IFACE] [OPTION...] [--] COMMAND [ARGUMENT...]\n"
		"\n"
		"Runs COMMAND, an unmodified program that uses libibverbs or librdmacm, with the\n"
		"libibverbs.so.1 and librdmacm.so.1 of xroce instead of the system's. Every\n"
		"Ethernet interface of the network namespace is then an RDMA device, named\n"
		"xroce_IFACE. An interface is not changed before COMMAND creates a queue pair on\n"
		"it, and everything is removed when COMMAND exits.\n"
		"\n"
		"It prepends the library directory to LD_LIBRARY_PATH and executes COMMAND in the\n"
		"same process; in a container whose first process does not wait for orphans, in a\n"
		"child. COMMAND sees the devices in /sys/class/infiniband and /dev/infiniband, in\n"
		"its own mount namespace.\n"
		"\n",
	.make_options = run_make_options,
	.options = run_table,
	.is_wrapper = true,
	.help_end =
		"\n"
		"COMMAND needs the privileges that 'xroce doctor' lists: root, or some\n"
		"capabilities. A set-user-ID program, or one with file capabilities, ignores\n"
		"LD_LIBRARY_PATH: run prints a warning.\n"
		"\n"
		"Exit status: that of COMMAND; 127 if it is not found, 126 if it cannot be run;\n"
		"2 for wrong usage, no such interface or no library, 1 for other failures before\n"
		"COMMAND was run.\n"
		"\n"
		"Examples:\n"
		"  xroce run -- ibv_devinfo -v\n"
		"  xroce run --dev eth0 -- ibv_rc_pingpong -g 0 192.0.2.7\n",
};
