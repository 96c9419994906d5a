/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Defaults chosen by the administrator: files in /etc/rdma/rsocket with one number each. An
 * unreadable file or a text that is not a number leaves the default; a number out of range is
 * clamped.
 */
#include <stdio.h>

#include "rsocket_object.h"
#include "rsocket_wire.h"

#define CONFIG_DIR "/etc/rdma/rsocket/"

static struct rsocket_config config = {
	.send_bytes = 1 << 17,
	.receive_bytes = 1 << 17,
	.requests = 384,
	.receives = 384,
	.inlined = 64,
	.polling_us = 10,
	.wake_up_ms = 500,
};

static void config_read(const char *path, u32 least, u32 most, u32 *value)
{
	FILE *f = fopen(path, "re");
	long long n;

	if (!f)
		return;
	if (fscanf(f, "%lld", &n) == 1)
		*value = n < least ? least : n > most ? most : (u32)n;
	fclose(f);
}

static void config_load(void)
{
	u32 wake_up = (u32)config.wake_up_ms;

	config_read(CONFIG_DIR "wmem_default", RSOCKET_LEAST_BYTES, RSOCKET_MOST_BYTES,
		    &config.send_bytes);
	config_read(CONFIG_DIR "mem_default", RSOCKET_LEAST_BYTES, RSOCKET_MOST_BYTES,
		    &config.receive_bytes);
	config_read(CONFIG_DIR "sqsize_default", RSOCKET_LEAST_REQUESTS, RSOCKET_MOST_REQUESTS,
		    &config.requests);
	config_read(CONFIG_DIR "rqsize_default", RSOCKET_LEAST_REQUESTS, RSOCKET_MOST_REQUESTS,
		    &config.receives);
	config_read(CONFIG_DIR "inline_default", 0, RSOCKET_MOST_REQUESTS, &config.inlined);
	config_read(CONFIG_DIR "iomap_size", 0, 0xffff, &config.iomap_size);
	config_read(CONFIG_DIR "polling_time", 0, 1000000, &config.polling_us);
	config_read(CONFIG_DIR "wake_up_interval", 1, 1000000, &wake_up);
	config.wake_up_ms = (int)wake_up;
	config.iomap_size = wire_iomap_size(config.iomap_size);
}

const struct rsocket_config *rsocket_config(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, config_load);
	return &config;
}
