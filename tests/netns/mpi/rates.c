/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What MPI makes of the way between two ranks, for scripts/bench-frameworks.sh:
 *
 *   rates TIMES
 *
 * Rank 0 prints "latency US", half a round trip of 8 bytes, and "bandwidth GBIT/S" of messages of
 * 1 MiB, 8 at a time, TIMES / 20 times.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG 1048576
#define AT_A_TIME 8

static void there_and_back(char *buf, int len, int rank)
{
	if (rank)
		MPI_Recv(buf, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Send(buf, len, MPI_BYTE, !rank, 1, MPI_COMM_WORLD);
	if (!rank)
		MPI_Recv(buf, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_some(char *buf, int rank)
{
	MPI_Request requests[AT_A_TIME];

	for (int i = 0; i < AT_A_TIME; i++)
		if (rank)
			MPI_Irecv(buf, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Isend(buf, LONG, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(AT_A_TIME, requests, MPI_STATUSES_IGNORE);
	/* all have arrived: the end of the measurement */
	there_and_back(buf, 1, rank);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 1000, rounds = times / 20 + 1, rank;
	char *buf = calloc(1, LONG);
	double began;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 20; i++)
		there_and_back(buf, 8, rank);
	began = MPI_Wtime();
	for (int i = 0; i < times; i++)
		there_and_back(buf, 8, rank);
	if (!rank)
		printf("latency %.3f\n", (MPI_Wtime() - began) / times / 2 * 1e6);
	send_some(buf, rank);
	began = MPI_Wtime();
	for (int i = 0; i < rounds; i++)
		send_some(buf, rank);
	if (!rank)
		printf("bandwidth %.3f\n",
		       8e-9 * LONG * AT_A_TIME * rounds / (MPI_Wtime() - began));
	MPI_Finalize();
	return 0;
}
