/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases of a program that has both ends of a connection in one process: the address at which they
 * listen, the lines that they print, and the loop over them. The program owns the sockets.
 */
#ifndef NETNS_CASES_H
#define NETNS_CASES_H

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The address that cases listen at, of either family. A case draws its port. */
extern union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
} at;
extern socklen_t at_bytes;

/* Ends the case with a line that names the failed condition. */
#define CHECK(condition)                                                                     \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			printf("# %s:%d: %s, errno %d (%s)\n", __FILE__, __LINE__,           \
			       #condition, errno, strerror(errno));                          \
			return false;                                                        \
		}                                                                            \
	} while (0)
#define CHECK_ERRNO(call, number) CHECK((call) == -1 && errno == (number))

struct named_case {
	const char *name;
	bool (*run)(void);
};
#define CASE(name) { #name, name }

/* Sets `at` from a numeric address. Returns whether it is one. */
bool cases_address(const char *address);
/*
 * Runs the cases whose names match the pattern, at most 60 s each, and prints a result line for
 * each: its name and the label. close_ends closes a case's remaining sockets. Returns the exit
 * status of the program.
 */
int cases_run(const struct named_case *cases, size_t n, const char *pattern, const char *label,
	      void (*close_ends)(void));

#endif
