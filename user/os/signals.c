/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_get_cq_event(), ibv_get_async_event() and rdma_get_cm_event() are system calls in rdma-core:
 * a signal whose handler was installed with SA_RESTART (signal(3) does that) does not end them,
 * another one does, with EINTR. Here they wait in poll(2), which every handler ends.
 */
#include "signals.h"

#include <signal.h>
#include <stddef.h>

/*
 * Which signal it was cannot be known any more. While all handlers of the process agree, it need
 * not be; if one is without SA_RESTART, the wait ends, since a program that installs one counts on
 * it.
 */
bool signals_restart(void)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction action;

		if (sigaction(sig, NULL, &action) || action.sa_handler == SIG_DFL ||
		    action.sa_handler == SIG_IGN)
			continue;
		if (!(action.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}
