/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce run: start a program on our library. It sets environment variables and becomes the program;
 * nothing else.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../base/options.h"
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

/*
 * The loader ignores LD_LIBRARY_PATH for a program that gains privileges at its start (ld.so(8),
 * secure-execution mode).
 */
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
		"xroce run: warning: %s is %s: the dynamic loader will ignore LD_LIBRARY_PATH and "
		"it will not run on xroce; "
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
		fprintf(stderr,
			"xroce run: our libibverbs.so.1 is neither in %s; build it with 'make' or "
			"install it with 'make install'\n",
			dir);
	else if (ret)
		fprintf(stderr, "xroce run: cannot find our own directory: %s\n", strerror(-ret));
	if (ret)
		return EXIT_USAGE;
	if (strpbrk(dir, ":;")) {
		fprintf(stderr,
			"xroce run: the library's directory '%s' has a colon or semicolon in its "
			"name, which LD_LIBRARY_PATH cannot hold; "
			"move it\n",
			dir);
		return EXIT_USAGE;
	}
	ret = prepend_library_path(dir);
	if (ret) {
		fprintf(stderr, "xroce run: cannot set LD_LIBRARY_PATH: %s\n", strerror(-ret));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* ---- what the library is told by variables of its own: base/options.h ---- */

static const struct option_spec *spec_of(int letter)
{
	for (u32 i = 0; i < NUM_OPTIONS; i++)
		if (option_table[i].flag && option_table[i].letter == letter)
			return &option_table[i];
	return NULL;
}

static int set_variable(const struct option_spec *spec, const char *value)
{
	char wants[128];

	if (!option_is_valid(spec, value))
		return usage_error(&command_run, "'%s' is not %s", value,
				   option_wants(spec, wants, sizeof(wants)));
	if (!setenv(spec->variable, value, 1))
		return EXIT_OK;
	fprintf(stderr, "xroce run: cannot set %s: %s\n", spec->variable, strerror(errno));
	return EXIT_FAILED;
}

/* Our own options, and those of the table. */
static void add_options(struct option *options, char *letters)
{
	static const struct option own[] = {
		{ "dev", required_argument, NULL, 'd' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
	};
	u32 n = ARRAY_SIZE(own);

	memcpy(options, own, sizeof(own));
	letters = stpcpy(letters, "+:d:vh");
	for (u32 i = 0; i < NUM_OPTIONS; i++) {
		const struct option_spec *spec = &option_table[i];

		if (!spec->flag)
			continue;
		options[n++] = (struct option){ spec->flag, required_argument, NULL, spec->letter };
		letters += sprintf(letters, "%c:", spec->letter);
	}
	options[n] = (struct option){ 0 };
}

static void run_print_options(void)
{
	char wants[128], left[32];

	for (u32 i = 0; i < NUM_OPTIONS; i++) {
		const struct option_spec *spec = &option_table[i];

		if (!spec->flag)
			continue;
		snprintf(left, sizeof(left), "-%c, --%s %s", spec->letter, spec->flag, spec->value);
		printf("  %-16s %s: %s", left, spec->help,
		       option_wants(spec, wants, sizeof(wants)));
		if (spec->kind == OPTION_IS_NUMBER)
			printf(", otherwise %u", spec->fallback);
		printf(" (%s)\n", spec->variable);
	}
}

static int run_main(int argc, char **argv)
{
	struct option options[NUM_OPTIONS + 4];
	char letters[8 + 2 * NUM_OPTIONS];
	const struct option_spec *spec;
	const char *dev_name = NULL;
	bool verbose = false;
	struct netdev dev;
	int opt, ret;

	opterr = 0;
	add_options(options, letters);
	while ((opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		switch (opt) {
		case 'd':
			dev_name = optarg;
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			command_help(&command_run);
			return EXIT_OK;
		case ':':
			return usage_error(&command_run, "option '%s' needs an argument",
					   argv[optind - 1]);
		default:
			spec = spec_of(opt);
			if (!spec)
				return usage_error(&command_run, "unknown option '%s'",
						   argv[optind - 1]);
			ret = set_variable(spec, optarg);
			if (ret)
				return ret;
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
			fprintf(stderr, "xroce run: cannot set " NETDEV_ENV ": %s\n",
				strerror(errno));
			return EXIT_FAILED;
		}
	}
	ret = set_library();
	if (ret)
		return ret;
	warn_if_privileged(argv[0]);
	if (verbose) {
		const char *only = getenv(NETDEV_ENV);

		fprintf(stderr, "xroce run: LD_LIBRARY_PATH=%s %s%s%s%s\n",
			getenv("LD_LIBRARY_PATH"), only ? NETDEV_ENV "=" : "", only ? only : "",
			only ? " " : "", argv[0]);
	}

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
		"Runs COMMAND, an unmodified program that uses libibverbs, with our "
		"libibverbs.so.1 in place of the system's.\n"
		"Every Ethernet interface of the network namespace is then an RDMA device, named "
		"xroce_IFACE. Nothing happens to an\n"
		"interface before COMMAND creates a queue pair on it, and all of it is gone when "
		"COMMAND ends.\n"
		"\n"
		"It puts the library's directory in front of LD_LIBRARY_PATH and becomes COMMAND; "
		"there is no process in between.\n"
		"\n"
		"  -d, --dev IFACE  let COMMAND see this interface only, as its first and single "
		"device (sets " NETDEV_ENV ")\n",
	.print_options = run_print_options,
	.help_end = "  -v, --verbose    say on standard error what is run, and with which library\n"
		    "  -h, --help       this text\n"
		    "\n"
		    "COMMAND needs the privileges that 'xroce doctor' names: root, or some "
		    "capabilities. A program that is\n"
		    "set-user-ID or has file capabilities of its own does not look at "
		    "LD_LIBRARY_PATH: run warns of it.\n"
		    "\n"
		    "Exit status: COMMAND's; 127 if it is not found, 126 if it cannot be run; 2 "
		    "for wrong usage, no such interface or no library,\n"
		    "1 for other failures, before it was run.\n"
		    "\n"
		    "Examples:\n"
		    "  xroce run -- ibv_devinfo -v\n"
		    "  xroce run --dev eth0 -- ibv_rc_pingpong -g 0 192.0.2.7\n",
};
