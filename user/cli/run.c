/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce run: start a program on our library. It sets environment variables and becomes the program; nothing else. */
#define _GNU_SOURCE
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli.h"

/* As env(1), nohup(1) and the shells have it. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* The file that execvp(3) will run for name, or false. */
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

/* The loader ignores LD_LIBRARY_PATH for a program that gains privileges at its start (ld.so(8), secure-execution mode). */
static void warn_if_privileged(const char *name)
{
	char file[PATH_MAX];
	struct stat st;
	const char *what;

	if (!search_path(name, file, sizeof(file)) || stat(file, &st))
		return;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		what = "set-user-ID";
	else if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
		what = "set-group-ID";
	else if (getuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0)
		what = "given file capabilities";
	else
		return;
	fprintf(stderr,
		"xroce run: warning: %s is %s: the dynamic loader will ignore LD_LIBRARY_PATH and it will not run on xroce; "
		"run it as its owner, or run a copy without that privilege\n",
		file, what);
}

/* Put dir in front of LD_LIBRARY_PATH. Returns 0 or -errno. */
static int prepend_library_path(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *joined;
	int ret;

	/* An empty value means the current directory to the loader: never leave one behind. */
	if (!old || !*old)
		return setenv("LD_LIBRARY_PATH", dir, 1) ? -errno : 0;
	if (asprintf(&joined, "%s:%s", dir, old) < 0)
		return -ENOMEM;
	ret = setenv("LD_LIBRARY_PATH", joined, 1) ? -errno : 0;
	free(joined);
	return ret;
}

static int set_library(void)
{
	char dir[2 * PATH_MAX + 64];
	int ret = library_dir(dir, sizeof(dir));

	if (ret == -ENOENT)
		fprintf(stderr, "xroce run: our libibverbs.so.1 is neither in %s; build it with 'make' or install it with 'make install'\n",
			dir);
	else if (ret)
		fprintf(stderr, "xroce run: cannot find our own directory: %s\n", strerror(-ret));
	if (ret)
		return EXIT_USAGE;
	if (strpbrk(dir, ":;")) {
		fprintf(stderr, "xroce run: the library's directory '%s' has a colon or semicolon in its name, which LD_LIBRARY_PATH cannot hold; "
			"move it\n", dir);
		return EXIT_USAGE;
	}
	ret = prepend_library_path(dir);
	if (ret) {
		fprintf(stderr, "xroce run: cannot set LD_LIBRARY_PATH: %s\n", strerror(-ret));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* ---- what the library is told by variables of its own (docs/port.md) ---- */

static bool is_number(const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoul(text, &end, 10);
	return !*end && n >= least && n <= most;
}

static bool is_spin(const char *text)
{
	return is_number(text, 0, 1000000);
}

static bool is_shards(const char *text)
{
	return is_number(text, 1, XROCE_MAX_SHARD);
}

/* Digits, with single commas between them. */
static bool is_cpus(const char *text)
{
	bool digit = false;

	for (; *text; text++) {
		if (*text == ',' ? !digit : *text < '0' || *text > '9')
			return false;
		digit = *text != ',';
	}
	return digit;
}

static bool is_word(const char *text, const char *words)
{
	const size_t len = strlen(text);

	for (; *words; words += strlen(words) + 1)
		if (strlen(words) == len && !memcmp(words, text, len))
			return true;
	return false;
}

static bool is_tx(const char *text)
{
	return is_word(text, "auto\0xsk\0tap\0live\0gso\0");
}

static bool is_xdp(const char *text)
{
	return is_word(text, "auto\0native\0generic\0");
}

static const struct tuning {
	int opt;
	const char *variable;
	bool (*is_valid)(const char *text);
	const char *wants;
} tunings[] = {
	{ 's', "XROCE_SPIN_US", is_spin, "microseconds, 0 to 1000000" },
	{ 'c', "XROCE_VECTOR_CPUS", is_cpus, "a list of CPUs, as in 2,3" },
	{ 'n', "XROCE_SHARDS", is_shards, "a number from 1 to 8" },
	{ 't', "XROCE_TX", is_tx, "auto, xsk, tap, live or gso" },
	{ 'x', "XROCE_XDP", is_xdp, "auto, native or generic" },
};
_Static_assert(XROCE_MAX_SHARD == 8, "the text says so");

/* Returns an exit status; EXIT_OK and *found for an option of these. */
static int tune(int opt, const char *value, bool *found)
{
	for (size_t i = 0; i < ARRAY_SIZE(tunings); i++) {
		const struct tuning *t = &tunings[i];

		if (t->opt != opt)
			continue;
		*found = true;
		if (!t->is_valid(value))
			return usage_error(&command_run, "'%s' is not %s", value, t->wants);
		if (!setenv(t->variable, value, 1))
			return EXIT_OK;
		fprintf(stderr, "xroce run: cannot set %s: %s\n", t->variable, strerror(errno));
		return EXIT_FAILED;
	}
	*found = false;
	return EXIT_OK;
}

static int run_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dev", required_argument, NULL, 'd' },
		{ "spin", required_argument, NULL, 's' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "shards", required_argument, NULL, 'n' },
		{ "tx", required_argument, NULL, 't' },
		{ "xdp", required_argument, NULL, 'x' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *dev_name = NULL;
	bool verbose = false, found;
	struct netdev dev;
	int opt, ret;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:d:s:c:n:t:x:vh", options, NULL)) != -1) {
		switch (opt) {
		case 'd':
			dev_name = optarg;
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			fputs(command_run.help, stdout);
			return EXIT_OK;
		case ':':
			return usage_error(&command_run, "option '%s' needs an argument", argv[optind - 1]);
		default:
			ret = tune(opt, optarg, &found);
			if (ret)
				return ret;
			if (!found)
				return usage_error(&command_run, "unknown option '%s'", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return usage_error(&command_run, "no command given");
	argv += optind;

	if (dev_name) {
		ret = find_device(&command_run, dev_name, &dev);
		if (ret)
			return ret;
		if (setenv(NETDEV_ENV, dev_name, 1)) {
			fprintf(stderr, "xroce run: cannot set " NETDEV_ENV ": %s\n", strerror(errno));
			return EXIT_FAILED;
		}
	}
	ret = set_library();
	if (ret)
		return ret;
	warn_if_privileged(argv[0]);
	if (verbose) {
		const char *only = getenv(NETDEV_ENV);

		fprintf(stderr, "xroce run: LD_LIBRARY_PATH=%s %s%s%s%s\n", getenv("LD_LIBRARY_PATH"), only ? NETDEV_ENV "=" : "",
			only ? only : "", only ? " " : "", argv[0]);
	}

	execvp(argv[0], argv);
	ret = errno;
	fprintf(stderr, "xroce run: cannot run '%s': %s\n", argv[0], ret == ENOENT ? "command not found" : strerror(ret));
	return ret == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

const struct command command_run = {
	.name = "run",
	.summary = "run a program on the xroce devices",
	.main = run_main,
	.help =
		"usage: xroce run [--dev IFACE] [OPTION...] [--] COMMAND [ARGUMENT...]\n"
		"\n"
		"Runs COMMAND, an unmodified program that uses libibverbs, with our libibverbs.so.1 in place of the system's.\n"
		"Every Ethernet interface of the network namespace is then an RDMA device, named xroce_IFACE. Nothing happens to an\n"
		"interface before COMMAND creates a queue pair on it, and all of it is gone when COMMAND ends.\n"
		"\n"
		"It puts the library's directory in front of LD_LIBRARY_PATH and becomes COMMAND; there is no process in between.\n"
		"\n"
		"  -d, --dev IFACE  let COMMAND see this interface only, as its first and single device (sets " NETDEV_ENV ")\n"
		"  -s, --spin US    how long a service thread spins after work, at most: 0 to 1000000, otherwise 100 (XROCE_SPIN_US)\n"
		"  -c, --cpus LIST  the CPUs of the service threads, one a shard: 2,3 (XROCE_VECTOR_CPUS)\n"
		"  -n, --shards N   at most so many shards, each with an engine and a service thread: 1 to 8 (XROCE_SHARDS)\n"
		"  -t, --tx WAY     how frames leave: auto, xsk, tap, live or gso (XROCE_TX)\n"
		"  -x, --xdp MODE   how XDP is attached: auto, native or generic (XROCE_XDP)\n"
		"  -v, --verbose    say on standard error what is run, and with which library\n"
		"  -h, --help       this text\n"
		"\n"
		"COMMAND needs the privileges that 'xroce doctor' names: root, or some capabilities. A program that is\n"
		"set-user-ID or has file capabilities of its own does not look at LD_LIBRARY_PATH: run warns of it.\n"
		"\n"
		"Exit status: COMMAND's; 127 if it is not found, 126 if it cannot be run; 2 for wrong usage, no such interface or no library,\n"
		"1 for other failures, before it was run.\n"
		"\n"
		"Examples:\n"
		"  xroce run -- ibv_devinfo -v\n"
		"  xroce run --dev eth0 -- ibv_rc_pingpong -g 0 192.0.2.7\n",
};
