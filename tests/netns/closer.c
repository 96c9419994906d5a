/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * closer closes|leaves DIR: a process with a device closes all descriptors, opens files in DIR, and
 * then closes the device, after its objects or with them: the files stay open.
 * closer chroot DIR: a process with a device enters DIR, which has no /proc, and opens the device
 * again, with objects.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 64
#define LAST  1024

static struct ibv_cq *cq;
static struct ibv_pd *pd;
static struct ibv_qp *qp;

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	cq = ctx ? ibv_create_cq(ctx, 8, NULL, NULL, 0) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	init.send_cq = init.recv_cq = cq;
	if (pd && cq && (qp = ibv_create_qp(pd, &init)))
		return ctx;
	perror("closer: no device");
	return NULL;
}

static int closes(struct ibv_context *ctx, bool leaves)
{
	int fd[FILES], closed = 0;
	char name[16];
	struct stat st;

	for (int i = 3; i < LAST; i++)
		close(i);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file-%d", i);
		fd[i] = open(name, O_RDWR | O_CREAT, 0600);
		if (fd[i] < 0)
			return 1;
	}
	if (!leaves && (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd)))
		return 1;
	if (ibv_close_device(ctx))
		return 1;
	for (int i = 0; i < FILES; i++)
		closed += fstat(fd[i], &st) != 0;
	printf("%d files were closed\n", closed);
	return closed != 0;
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx = open_device();

	if (argc != 3 || !ctx || chdir(argv[2]))
		return 2;
	if (strcmp(argv[1], "chroot"))
		return closes(ctx, !strcmp(argv[1], "leaves"));
	if (chroot(".")) {
		perror("chroot");
		return 2;
	}
	return !open_device();
}
