/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce stop: stops the broker of an interface, and removes the remains of killed brokers. */
#include <getopt.h>
#include <sys/socket.h>

#include "../../attach/ask.h"
#include "../../attach/broker_socket.h"
#include "../../attach/pin.h"
#include "../../os/options.h"
#include "../cli.h"
#include "sysfs_global.h"

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
			/* the process uses the interface exclusively and has no broker */
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

static int stop_main(int argc, char **argv)
{
	static const struct option options[] = { { "pin", optional_argument, NULL, 'P' }, { 0 } };
	const char *dir = options_pin();
	struct netdev dev;
	int err, ret, opt;
	bool swept;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (opt != 'P')
			return usage_error(&command_stop, "unknown option '%s'", argv[optind - 1]);
		dir = optarg;
	}
	if (argc - optind != 1)
		return usage_error(&command_stop, "%s",
				   argc == optind ? "no interface given" :
						    "more than one interface");
	ret = find_device(&command_stop, argv[optind], &dev);
	if (ret)
		return ret;
	err = stop_broker(&dev);
	swept = stop_sweep(dir ? dir : PIN_DIR);
	if (!err || (err == -ENOENT && swept))
		return EXIT_OK;
	fprintf(stderr, "xroce stop: %s: %s\n", dev.name,
		err == -ENOENT ? "no broker on this interface" :
		err == -EACCES ? "permission denied: only root or the broker's own user may stop "
				 "it" :
				 strerror(-err));
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
		"\n"
		"  --pin[=DIR]  remove maps that killed processes left pinned in DIR,\n"
		"               default " PIN_DIR "\n"
		"\n"
		"Exit status: 0 if the broker has exited, 1 if there is none or it may not be\n"
		"stopped, 2 for wrong usage or no such interface.\n",
};
