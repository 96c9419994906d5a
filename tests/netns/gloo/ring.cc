/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gloo's ibverbs transport, or its TCP: sums over all ranks by the ring and by halving and doubling,
 * and a broadcast; each element checked. Compiled by the test, with Debian's libgloo-dev.
 *
 *   ring ibverbs|tcp DEVICE RANK RANKS DIRECTORY ELEMENTS TIMES
 *
 * DEVICE is the RDMA device, or the interface. The ranks meet by files in DIRECTORY. Prints "ring
 * ok: R ranks, T sums of N elements, M Gbit/s": of 4 bytes an element, once a sum.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <gloo/transport/tcp/device.h>

static std::shared_ptr<gloo::transport::Device> make_device(const char *transport, const char *name)
{
	if (!strcmp(transport, "ibverbs")) {
		gloo::transport::ibverbs::attr attr = { name, 1, 0 };
		return gloo::transport::ibverbs::CreateDevice(attr);
	}
	gloo::transport::tcp::attr attr;
	attr.iface = name;
	return gloo::transport::tcp::CreateDevice(attr);
}

static void fill(std::vector<int> &v, int rank)
{
	for (size_t i = 0; i < v.size(); i++)
		v[i] = (int)(i % 1000) * (rank + 1) + rank;
}

/* What the sum over all ranks of fill() is. */
static void check_sum(const std::vector<int> &v, int ranks, const char *what)
{
	for (size_t i = 0; i < v.size(); i++)
		if (v[i] != (int)(i % 1000) * (ranks * (ranks + 1) / 2) + ranks * (ranks - 1) / 2) {
			fprintf(stderr, "ring: %s: element %zu is %d\n", what, i, v[i]);
			exit(1);
		}
}

int main(int argc, char **argv)
{
	if (argc != 8) {
		fprintf(stderr, "ring: seven arguments are needed\n");
		return 2;
	}
	const int rank = atoi(argv[3]), ranks = atoi(argv[4]), times = atoi(argv[7]);
	std::vector<int> data((size_t)atol(argv[6]));
	std::vector<int *> pointers = { data.data() };
	gloo::rendezvous::FileStore store(argv[5]);
	/*
	 * Never destroyed: gloo waits for no completion of what it sent last, and aborts if one is
	 * still to come then.
	 */
	auto &context = *new auto(std::make_shared<gloo::rendezvous::Context>(rank, ranks));
	auto &device = *new auto(make_device(argv[1], argv[2]));

	context->connectFullMesh(store, device);
	auto &ring = *new gloo::AllreduceRingChunked<int>(context, pointers, (int)data.size());
	auto &halving =
		*new gloo::AllreduceHalvingDoubling<int>(context, pointers, (int)data.size());
	auto &broadcast =
		*new gloo::BroadcastOneToAll<int>(context, pointers, (int)data.size(), 0);

	fill(data, rank);
	halving.run();
	check_sum(data, ranks, "halving and doubling");
	if (rank)
		fill(data, rank);
	broadcast.run();
	check_sum(data, ranks, "broadcast");
	std::chrono::duration<double> took(0);
	for (int i = 0; i < times; i++) {
		fill(data, rank);
		auto began = std::chrono::steady_clock::now();
		ring.run();
		took += std::chrono::steady_clock::now() - began;
		check_sum(data, ranks, "ring");
	}
	printf("ring ok: %d ranks, %d sums of %zu elements, %.3f Gbit/s\n", ranks, times, data.size(),
	       32e-9 * times * (double)data.size() / took.count());
	return 0;
}
