/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this user may do with a pinned map: "read N write ERROR" with the sum of the first words of
 * its values, or errors' names instead. pin_reader FILE
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By a descriptor for reading alone: can an element be written? */
static int reader_write(int fd, const void *key, const void *value)
{
	return bpf_map_update_elem(fd, key, value, BPF_ANY);
}

static void reader_read(int fd)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	char *key, *value;
	int err;

	if (bpf_obj_get_info_by_fd(fd, &info, &len)) {
		printf("read nothing: %s\n", strerrorname_np(errno));
		return;
	}
	key = calloc(1, info.key_size);
	value = calloc(1024, info.value_size + 8);
	if (!key || !value || bpf_map_get_next_key(fd, NULL, key)) {
		printf("read no element\n");
	} else {
		err = bpf_map_lookup_elem(fd, key, value);
		printf("read %s", err ? strerrorname_np(-err) : "an element");
		err = reader_write(fd, key, value);
		printf(", write %s\n", err ? strerrorname_np(-err) : "it");
	}
	free(key);
	free(value);
}

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_obj_get_opts, for_reading, .file_flags = BPF_F_RDONLY);
	int fd;

	if (argc != 2)
		return 2;
	fd = bpf_obj_get(argv[1]);
	printf("open for both %s\n", fd < 0 ? strerrorname_np(-fd) : "works");
	if (fd >= 0)
		close(fd);
	fd = bpf_obj_get_opts(argv[1], &for_reading);
	if (fd < 0) {
		printf("open %s\n", strerrorname_np(-fd));
		return 1;
	}
	reader_read(fd);
	close(fd);
	return 0;
}
