/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verbs as a whole, on one device against itself: contract DEVICE. What single man pages
 * promise is in man_*.c. It links with libibverbs and nothing of this project.
 */
#include "contract.h"

int main(int argc, char **argv)
{
	bool good;

	ctx = argc == 2 ? open_device(argv[1]) : NULL;
	if (!ctx) {
		fprintf(stderr, "usage: contract DEVICE (%s)\n",
			argc == 2 ? "there is no such device" : "one argument");
		return 2;
	}
	good = run_all(object_cases);
	good &= run_all(errno_cases);
	good &= run_all(traffic_cases);
	good &= run_all(event_cases);
	good &= run_all(mw_cases);
	good &= run_all(xrc_cases);
	if (ibv_close_device(ctx))
		good = false;
	return !good;
}
