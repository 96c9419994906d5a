/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Passes the reports of a client that may not call bpf(2) (ASK_REPORTS_BY_SOCKET) to its observers,
 * by the program that puts them into the observers' rings; with UDP sockets those of every client,
 * by that program in this process. A report for which the rings have no room is lost and counted.
 */
#ifndef BROKER_CLIENT_REPORT_H
#define BROKER_CLIENT_REPORT_H

#include "broker_object.h"

/*
 * Makes the client's socket. *fd: the descriptor of xroce_trace_tx, unused with UDP sockets; after
 * success the client's end of the socket, which the caller owns. Returns 0 or -errno.
 */
int client_report_begin(struct client *c, int *fd);
/* Passes on the reports that the client has sent. Does nothing without a socket. */
void client_report_pass_all(struct client *c);
/* Closes the socket. A second call has no effect. */
void client_report_end(struct client *c);

#endif
