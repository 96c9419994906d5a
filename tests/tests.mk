# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The programs of the tests, included by the Makefile. Each test_*.c is a program. Code that the
# programs of a directory share is in that directory, and code that all share in common/.

.PHONY: tests unit-tests measure-tests sim-tests cm-tests rdmacm-tests bpf-tests port-tests portsim-tests brokersim-tests \
	verbs-pages rdmacm-pages netns-tools vm-tools bench-tools fuzzers

programs = $(patsubst %.c,$(BUILD)/%,$(wildcard $(1)))
shared   = $(call objs,$(filter-out $(wildcard tests/$(1)/test_*.c),$(wildcard tests/$(1)/*.c)))
TEST_COMMON := $(call objs,$(wildcard tests/common/*.c))
TEST_CFLAGS := -Itests/common -DXROCE_GOLDEN_DIR='"$(CURDIR)/tests/golden"'
$(BUILD)/obj/tests/%.o: ALL_CFLAGS += $(TEST_CFLAGS)

$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(TEST_COMMON) $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lcmocka $(LIBS) $(PRINT_LIBS) -lm -o $@

# Of the command what measures, its pure files.
$(BUILD)/tests/measure/%: $(BUILD)/obj/tests/measure/%.o \
		$(call objs,user/tools/json.c user/tools/output.c user/tools/terminal.c user/os/clock.c) \
		$(BUILD)/libbench.a $(BUILD)/libcm.a $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lcmocka $(LIBS) $(PRINT_LIBS) -lm -o $@

# Files of the command by their names, which no two of its folders share; their objects.
tools = $(foreach name,$(1),$(wildcard user/tools/$(name) user/tools/*/$(name)))
tool_objs = $(call objs,$(call tools,$(1)))

# What the command prints with.
PRINTING := $(addprefix $(BUILD)/tests/unit/,test_table test_screen test_top test_records \
	test_hostile_maps test_lab_cases test_lab_each test_lab_keep test_lab_run)
$(PRINTING): PRINT_LIBS := $(TOOL_PKG_LIBS)
$(BUILD)/tests/measure/%: PRINT_LIBS := $(TOOL_PKG_LIBS)
$(BUILD)/tests/unit/test_table: $(call tool_objs,json.c table.c)
# Files of the command that need nothing else, but for the clock.
$(BUILD)/tests/unit/test_screen: $(call tool_objs,screen.c terminal.c) $(call objs,user/os/clock.c)
$(BUILD)/tests/unit/test_top: $(call tool_objs,json.c screen.c terminal.c table.c top_fields.c \
	top_model.c top_ui.c) $(call objs,user/os/clock.c)
$(addprefix $(BUILD)/tests/unit/,test_pcapng test_capture_file): $(call tool_objs,pcapng.c)
$(BUILD)/tests/unit/test_records: $(call tool_objs,counters.c json.c records.c)
$(BUILD)/tests/unit/test_adopter: $(call tool_objs,daemonize.c) \
	$(call objs,$(addprefix user/os/,clock.c complain.c inherited.c kernel.c \
		options.c privilege.c))
$(BUILD)/tests/unit/test_thread_start: $(call objs,user/os/thread.c)
explain_rules := explain_peer.c explain_qp.c explain_rules.c counters.c
$(addprefix $(BUILD)/tests/unit/,test_explain test_explain_recorded): \
	$(call tool_objs,$(explain_rules))
$(BUILD)/tests/unit/test_export_text: $(call tool_objs,text.c)
# The exporter without what finds ports and asks the kernel (tests/unit/recorded_maps.h).
$(BUILD)/tests/unit/test_export_metrics: $(call tool_objs,collect.c metrics.c shares.c \
	text.c watched.c counters.c observe_maps.c snapshot.c)
# The same of the commands that read maps.
$(BUILD)/tests/unit/test_hostile_maps: $(call tool_objs,$(explain_rules) explain.c \
	explain_gather.c cli.c json.c observe_options.c objects.c observe_maps.c snapshot.c output.c \
	terminal.c \
	processes.c table.c) $(call objs,user/os/kernel.c)
$(BUILD)/tests/unit/test_cli: $(call tool_objs,cli.c output.c)
lab_cases := lab_action.c lab_cases.c lab_options.c lab_record.c lab_toml.c cli.c output.c terminal.c
$(BUILD)/tests/unit/test_lab_cases: $(call tool_objs,$(lab_cases)) $(call objs,user/os/clock.c \
	$(wildcard user/fault/*.c))
$(BUILD)/tests/unit/test_lab_each: $(call tool_objs,$(lab_cases) lab_capture.c lab_each.c lab_report.c \
	lab_results.c json.c table.c pcapng.c) $(call objs,user/os/clock.c $(wildcard user/fault/*.c))
$(BUILD)/tests/unit/test_lab_keep: $(call tool_objs,$(lab_cases) lab_endpoint.c lab_keep.c lab_live.c lab_report.c \
	json.c) $(call objs,user/os/clock.c $(wildcard user/fault/*.c))
$(BUILD)/tests/unit/test_lab_run: $(call tool_objs,$(lab_cases) lab_endpoint.c lab_report.c lab_run.c json.c) \
	$(call objs,user/os/clock.c $(wildcard user/fault/*.c))
$(BUILD)/tests/unit/test_lab: $(call tool_objs,lab_wire.c) $(call objs,$(wildcard user/fault/*.c))
$(BUILD)/tests/unit/test_export_shares: $(call tool_objs,shares.c listen.c cli.c output.c)

$(BUILD)/tests/sim/%: $(BUILD)/obj/tests/sim/%.o $(call shared,sim) $(TEST_COMMON) \
		$(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lcmocka $(LIBS) -lm -o $@

$(BUILD)/tests/sim/test_faults: $(call objs,$(wildcard user/fault/*.c))

# The connection manager, without a network as well.
$(BUILD)/tests/cm/%: $(BUILD)/obj/tests/cm/%.o $(call shared,cm) $(TEST_COMMON) \
		$(BUILD)/libcm.a $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lcmocka $(LIBS) -lm -o $@

# The modules of librdmacm that are pure, linked from its objects.
$(BUILD)/tests/rdmacm/%: $(BUILD)/obj/tests/rdmacm/%.o $(TEST_COMMON) $(BUILD)/librdmacm.a \
		$(BUILD)/libcm.a $(BUILD)/libport.a $(BUILD)/libengine.a $(LIB)
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lcmocka $(LIB) $(LIBS) -o $@

$(call objs,$(wildcard tests/bpf/*.c)): | $(SKELS)
$(BUILD)/tests/bpf/%: $(BUILD)/obj/tests/bpf/%.o $(call shared,bpf) $(TEST_COMMON) \
		$(BUILD)/libcm.a $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lcmocka $(LIBS) -o $@

# Manual pages as specification (tests/verbs/man.sh, tests/rdmacm/man.sh): programs that are linked
# with the installed libraries and run on ours. They look up their own functions by name.
PAGES := $(patsubst %,$(BUILD)/%,$(basename $(wildcard tests/verbs/man_*.c tests/rdmacm/man_*.c)))
PAGE_OBJS := $(call objs,$(addprefix tests/verbs/,man.c pair.c tm.c wr.c rights.c held.c limits.c newer.c \
	cancelled.c walk_model.c walk_objects.c walk_requests.c))
CM_PAGE_OBJS := $(call objs,tests/rdmacm/man.c $(addprefix tests/verbs/,pair.c held.c cancelled.c))
$(PAGES) $(PAGE_OBJS) $(CM_PAGE_OBJS): ALL_CFLAGS += -fvisibility=default
$(BUILD)/tests/verbs/man_%: $(BUILD)/obj/tests/verbs/man_%.o $(PAGE_OBJS)
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -rdynamic -libverbs $(SANITIZE) -o $@
$(BUILD)/tests/rdmacm/man_%: $(BUILD)/obj/tests/rdmacm/man_%.o $(CM_PAGE_OBJS)
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lrdmacm -libverbs $(SANITIZE) -o $@

# What the rooms between transport and verbs do to a real kernel, in namespaces of the tests' own.
$(BUILD)/tests/port/test_host_conns: $(BUILD)/libcm.a
$(BUILD)/tests/port/%: $(BUILD)/obj/tests/port/%.o $(BUILD)/libport.a $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -lcmocka $(LIBS) -o $@

# Ports without a kernel (tests/portsim/machine.h). The code under test and the XDP program are
# compiled once more, so that each atomic operation is a call (tests/portsim/atomics.c), and linked
# with functions of the simulator in place of user/os/kernel.c and of POSIX's threads and locks.
PORTSIM_CODE := $(ENGINE_SRC) $(addprefix user/io/,rx_ring.c umem.c xsk.c) \
	$(addprefix user/os/,complain.c netdev_gids.c options.c privilege.c process.c signals.c thread.c) \
	$(wildcard user/run/*.c user/port/*.c)
ifneq ($(filter __clang__,$(CC_SAYS)),)
PORTSIM_CALLS := -fsanitize=thread -mllvm -tsan-instrument-func-entry-exit=0 \
	-mllvm -tsan-distinguish-volatile=1
else
PORTSIM_CALLS := -fsanitize=thread -Wno-tsan --param tsan-instrument-func-entry-exit=0 \
	--param tsan-distinguish-volatile=1
endif
# A checked longjmp() would not leave a stack for another, a checked read() would not be ours.
PORTSIM_FLAGS = $(filter-out -D_FORTIFY_SOURCE=% -flto%,$(ALL_CFLAGS)) -U_FORTIFY_SOURCE \
	-Itests/portsim -DGUARD_PLAIN
portsim_objs = $(patsubst %,$(BUILD)/obj/portsim/%.o,$(basename $(1)))
PORTSIM_PROGRAM := tests/portsim/program.c
PORTSIM_OWN := $(filter-out $(PORTSIM_PROGRAM) $(wildcard tests/portsim/test_*.c), \
	$(wildcard tests/portsim/*.c))
PORTSIM_WRAPS := $(shell grep -ohE '__wrap_[a-zA-Z0-9_]+' tests/portsim/posix.c | sort -u | \
	sed 's/__wrap_/-Wl,--wrap=/')

$(BUILD)/obj/portsim/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$< (portsim))$(CC) $(PORTSIM_FLAGS) -c $< -o $@
$(BUILD)/obj/portsim/%.o: %.S $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,AS,$< (portsim))$(CC) $(PORTSIM_FLAGS) -c $< -o $@
$(call portsim_objs,$(PORTSIM_CODE) $(PORTSIM_PROGRAM)): ALL_CFLAGS += $(PORTSIM_CALLS)
# bpf/ is compiled for another machine elsewhere
$(call portsim_objs,$(PORTSIM_PROGRAM)): ALL_CFLAGS += -Wno-missing-prototypes
$(BUILD)/libportsim.a: $(call portsim_objs,$(PORTSIM_CODE))
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $^
$(BUILD)/tests/portsim/%: $(BUILD)/obj/portsim/tests/portsim/%.o \
		$(call portsim_objs,$(PORTSIM_OWN) $(PORTSIM_PROGRAM)) $(BUILD)/libportsim.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) $(PORTSIM_WRAPS) -lcmocka -lisal -o $@

# Brokers and clients as actors (tests/brokersim/sim.h): their code as it is shipped, linked with
# system calls that are steps.
BROKERSIM_CODE := $(addprefix user/,$(addprefix broker/,bindings.c broker.c client.c client_cm.c \
	client_group.c client_number.c client_observer.c client_port.c client_report.c client_rights.c \
	client_trace.c groups.c held.c message.c numbers.c dead_peers.c \
	quota.c client_pool.c unread.c sole.c visitors.c) os/netdev_gids.c os/loop.c client/ask.c \
	port/follow.c port/port_qp.c os/fd_id.c)
BROKERSIM_WRAPS := $(shell grep -ohE '__wrap_[a-zA-Z0-9_]+' tests/brokersim/calls.c | sort -u | \
	sed 's/__wrap_/-Wl,--wrap=/')
$(BUILD)/tests/brokersim/%: $(BUILD)/obj/tests/brokersim/%.o $(call shared,brokersim) \
		$(call objs,$(BROKERSIM_CODE)) $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) $(BROKERSIM_WRAPS) -lcmocka $(LIBS) -o $@

# Our programs that run on the verbs library in tests/netns: linked with the installed libibverbs,
# run on ours.
NETNS_CM := $(call objs,tests/netns/lib/cm.c)
NETNS_SHARED := $(filter-out $(NETNS_CM),$(call objs,$(wildcard tests/netns/lib/*.c)))
# Programs that connect by librdmacm.
CM_TOOLS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/netns/cm_*.c))
$(CM_TOOLS): $(NETNS_CM)
$(CM_TOOLS): TOOL_LIBS := -lrdmacm
$(BUILD)/tests/netns/%: $(BUILD)/obj/tests/netns/%.o $(NETNS_SHARED)
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) -libverbs $(TOOL_LIBS) $(SANITIZE) -o $@
$(BUILD)/tests/netns/cm_addr: TOOL_LIBS := -lrdmacm
$(addprefix $(BUILD)/tests/netns/,attacher pin_reader): TOOL_LIBS := $(PKG_LIBS)
# These build and read packets, by the transport's codec.
PACKET_TOOLS := $(addprefix $(BUILD)/tests/netns/,attack mad_cable mad_flood mad_peer rogue \
	tagged segments supers)
$(PACKET_TOOLS): $(BUILD)/libengine.a
$(PACKET_TOOLS): TOOL_LIBS := $(PKG_LIBS)
$(addprefix $(BUILD)/tests/netns/,mads mad_peer): $(BUILD)/libcm.a
$(BUILD)/tests/netns/connections: TOOL_LIBS := -lrdmacm

$(BUILD)/tests/netns/rsockets: TOOL_LIBS := -lrdmacm

# Programs of several files.
$(BUILD)/tests/netns/threads: $(call objs,$(wildcard tests/netns/threads/*.c))
$(BUILD)/tests/netns/rsockets: $(call objs,$(wildcard tests/netns/rsockets/*.c))
$(BUILD)/tests/netns/epolls: $(call objs,$(wildcard tests/netns/epolls/*.c))
$(BUILD)/tests/netns/words: $(call objs,$(wildcard tests/netns/words/*.c))

# This one opens libibverbs by itself.
$(BUILD)/tests/netns/nccl: $(BUILD)/obj/tests/netns/nccl.o
	@mkdir -p $(@D)
	$(LINK) $< $(SANITIZE) -o $@

# Memory that goes bad: a program, and the same for Python to load.
$(BUILD)/tests/netns/memory: $(BUILD)/obj/tests/common/spoil.o
$(BUILD)/tests/netns/memory.so: $(call objs,tests/netns/memory.c tests/common/spoil.c) \
		$(NETNS_SHARED)
	@mkdir -p $(@D)
	$(LINK) -shared $(INPUTS) -libverbs $(SANITIZE) -o $@
netns-tools: $(BUILD)/tests/netns/memory.so

# Both ends of connections with virtual machines, and the judge of the captured packets (tests/vm).
$(BUILD)/tests/vm/%: $(BUILD)/obj/tests/vm/%.o $(call objs,$(wildcard tests/vm/lib/*.c)) \
		$(call objs,$(addprefix tests/netns/lib/,ctl.c device.c wire.c)) $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) -Wl,--as-needed $(INPUTS) -libverbs $(LIBS) -o $@

# Measuring programs: `make bench` runs them; never part of the tests.
$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) $(LIBS) -o $@

# The engine without what QPs, CQs and SRQs show of themselves: what that costs is the difference.
UNSEEN := $(patsubst %,$(BUILD)/unseen/%.o,$(basename $(ENGINE_SRC)))
$(UNSEEN): ALL_CFLAGS += $(AS_ONE) -DXROCE_NO_QP_STAT
$(BUILD)/unseen/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -c $< -o $@
$(BUILD)/unseen/%.o: %.S $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,AS,$<)$(CC) $(ALL_CFLAGS) -c $< -o $@
$(BUILD)/unseen/engine.o: $(UNSEEN)
	$(call say,LINK,$@)$(CC) $(ALL_CFLAGS) $(AS_ONE) $(if $(AS_ONE),-flinker-output=nolto-rel) \
		-r -nostdlib $^ -o $@
$(BUILD)/tests/bench/engine_unseen: $(BUILD)/obj/tests/bench/engine.o $(BUILD)/unseen/engine.o
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) $(LIBS) -o $@
bench-tools: $(BUILD)/tests/bench/engine_unseen

# ---- fuzzing: libFuzzer; scripts/fuzz.sh runs each for a bounded time. Everything is compiled once
# more, by clang, with its instrumentation. ----

FUZZ_SANITIZE := -fsanitize=fuzzer,address,undefined
FUZZ_FLAGS := -std=gnu11 -g -O1 -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined -Iinclude -Itests/sim $(TEST_CFLAGS) -MMD -MP
fuzz_objs = $(patsubst %,$(BUILD)/fuzz-obj/%.o,$(basename $(1)))

$(BUILD)/fuzz-obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$< (fuzzing))$(CLANG) $(FUZZ_FLAGS) -c $< -o $@
$(BUILD)/fuzz-obj/%.o: %.S $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,AS,$< (fuzzing))$(CLANG) $(FUZZ_FLAGS) -c $< -o $@

codec := $(addprefix user/engine/,packet.c icrc.c guard.c)
$(BUILD)/tests/fuzz/fuzz_packet: $(call fuzz_objs,tests/common/golden.c $(codec))
$(BUILD)/tests/fuzz/fuzz_segments: $(call fuzz_objs,user/engine/gso.c $(codec))
$(BUILD)/tests/fuzz/fuzz_ask: $(call fuzz_objs,$(addprefix user/broker/,bindings.c message.c \
	groups.c numbers.c quota.c))
$(BUILD)/tests/fuzz/fuzz_record: $(call fuzz_objs,tests/common/golden.c $(call tools,counters.c \
	json.c records.c) user/engine/gso.c $(codec))
$(BUILD)/tests/fuzz/fuzz_wire: $(call fuzz_objs,user/rsocket/rsocket_protocol.c \
	user/tools/bench/wire.c)
$(BUILD)/tests/fuzz/fuzz_rsocket: $(call fuzz_objs,$(addprefix user/rsocket/,rsocket_protocol.c))
$(BUILD)/tests/fuzz/fuzz_json: $(call fuzz_objs,$(call tools,bench_compare.c json.c output.c) \
	user/os/clock.c)
$(addprefix $(BUILD)/tests/fuzz/,fuzz_json fuzz_record): FUZZ_LIBS := -ljson-c -lm
$(BUILD)/tests/fuzz/fuzz_lab: $(call fuzz_objs,$(wildcard user/fault/*.c) $(call tools,lab_wire.c) $(ENGINE_SRC))
$(BUILD)/tests/fuzz/fuzz_cases: $(call fuzz_objs,$(wildcard user/fault/*.c) $(call tools,$(lab_cases)) \
	user/os/clock.c $(ENGINE_SRC))
$(BUILD)/tests/fuzz/fuzz_cases: FUZZ_LIBS := $(TOOL_PKG_LIBS)
$(BUILD)/tests/fuzz/fuzz_http: $(call fuzz_objs,$(call tools,http.c text.c) user/os/clock.c)
$(BUILD)/tests/fuzz/fuzz_http: FUZZ_LIBS := -lmicrohttpd
$(BUILD)/tests/fuzz/fuzz_host: $(call fuzz_objs,tests/common/golden.c user/engine/gso.c \
	$(addprefix user/host/,client.c map.c program.c) $(CM_SRC) $(codec))
$(BUILD)/tests/fuzz/fuzz_flow: $(call fuzz_objs,tests/common/golden.c $(ENGINE_SRC))
# Headers of BPF programs, which load words from any address.
$(addprefix $(BUILD)/fuzz-obj/tests/fuzz/,fuzz_xdp.o fuzz_egress.o fuzz_host.o): \
	FUZZ_FLAGS += -fno-sanitize=alignment
$(addprefix $(BUILD)/fuzz-obj/,user/host/program.o tests/fuzz/fuzz_flow.o): \
	FUZZ_FLAGS := -Iuser/host/include $(FUZZ_FLAGS) -fno-sanitize=alignment
$(addprefix $(BUILD)/tests/fuzz/,fuzz_xdp fuzz_egress): $(call fuzz_objs,tests/common/golden.c \
	user/engine/gso.c $(CM_SRC) $(codec))
$(BUILD)/tests/fuzz/fuzz_cm: $(call fuzz_objs,tests/common/golden.c $(CM_SRC))
$(BUILD)/tests/fuzz/fuzz_engine: $(call fuzz_objs,$(addprefix tests/,common/golden.c sim/world.c \
	sim/world_link.c sim/world_deliver.c sim/pair.c) $(ENGINE_SRC))
$(BUILD)/tests/fuzz/%: $(BUILD)/fuzz-obj/tests/fuzz/%.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CLANG) $(FUZZ_SANITIZE) $(INPUTS) -lcmocka -lisal $(FUZZ_LIBS) -o $@

fuzzers: $(call programs,tests/fuzz/fuzz_*.c)

# ---- all of them ----

# Without programs whose libraries are missing (musl.sh).
unit-tests: $(filter-out $(if $(TOOL_PKG_LIBS),,$(PRINTING)),$(call programs,tests/unit/test_*.c))
measure-tests: $(call programs,tests/measure/test_*.c)
sim-tests: $(call programs,tests/sim/test_*.c)
cm-tests: $(call programs,tests/cm/test_*.c)
rdmacm-tests: $(call programs,tests/rdmacm/test_*.c)
verbs-pages: $(filter $(BUILD)/tests/verbs/%,$(PAGES))
rdmacm-pages: $(filter $(BUILD)/tests/rdmacm/%,$(PAGES))
bpf-tests: $(call programs,tests/bpf/test_*.c)
port-tests: $(call programs,tests/port/test_*.c)
portsim-tests: $(call programs,tests/portsim/test_*.c)
brokersim-tests: $(call programs,tests/brokersim/test_*.c)
netns-tools: $(call programs,tests/netns/*.c)
vm-tools: $(call programs,tests/vm/*.c)
bench-tools: $(call programs,tests/bench/*.c) \
	$(addprefix $(BUILD)/tests/netns/,idle_qps threads connections)
tests: unit-tests measure-tests sim-tests cm-tests rdmacm-tests bpf-tests port-tests portsim-tests brokersim-tests \
	verbs-pages rdmacm-pages netns-tools vm-tools
