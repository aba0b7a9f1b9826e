// Registering reaches the networks: each region once with each, parts with the keys of the whole, and nothing stays behind.
#include <catch2/catch.hpp>
#include <utility>

#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::cci;
using ports::Handle;
using ports::TransportSink;

namespace {

// Two endpoints that share a table: their networks' cards need keys.
struct Devices {
  struct Device {
    std::shared_ptr<FakeTransport::Log> log = std::make_shared<FakeTransport::Log>();
    FakeTransport* transport = nullptr;
    std::unique_ptr<Endpoint> endpoint;
  };
  CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<MemoryTable> memory = std::make_shared<MemoryTable>(entropy, counters);
  std::vector<std::byte> bytes = std::vector<std::byte>(1000);
  Device one, two;

  explicit Devices(size_t regions_max = 10) {
    for (Device* device : {&one, &two}) {
      device->log->regions_max = regions_max;
      open(*device);
    }
  }
  void open(Device& device) {
    auto made = std::make_unique<FakeTransport>(device.log);
    device.transport = made.get();
    device.endpoint = std::make_unique<Endpoint>(EndpointOptions{}, std::move(made), memory, counters);
  }
  // A write of 10 bytes of this region, as the device's transport gets it.
  static Status write(Device& device, const Handle& local, uint64_t offset_bytes = 0) {
    const Result<Connection> connection = device.endpoint->connect("fake://2", {});
    REQUIRE(connection);
    device.transport->plan([&](TransportSink& sink) { sink.on_connected(*connection, Status::success, {2000}, ""); });
    device.endpoint->turn(Instant{});
    while (device.endpoint->get_event()) {
    }
    RmaOptions rma;
    rma.local = local;
    rma.local_offset_bytes = offset_bytes;
    rma.remote.handle.kind = ports::HandleKind::region;
    rma.length_bytes = 10;
    return device.endpoint->rma(*connection, rma);
  }
  static Status read_by_peer(Device& device, const Handle& handle) {
    ports::RemoteRef ref;
    ref.handle = handle;
    return device.transport->target().begin_read(1, ref, 10).status;
  }
  static const ports::LocalRegion& named(const Device& device) { return device.log->rmas.back().rma.local; }
};

}  // namespace

TEST_CASE("registration__a_region__once_with_each_network_and_its_key_is_named") {
  Devices at;
  const Handle region = at.memory->register_region(at.bytes, access_write);
  for (Devices::Device* device : {&at.one, &at.two}) {
    REQUIRE(device->log->registered.size() == 1);
    const auto& [memory, access] = device->log->registered.begin()->second;
    CHECK(memory.data() == at.bytes.data());
    CHECK(memory.size() == at.bytes.size());
    CHECK(access.we_write);
    CHECK(access.peers_write);
    CHECK_FALSE(access.peers_read);
  }
  at.two.log->next_key = 70;
  const Handle other = at.memory->register_region(Bytes(at.bytes));
  CHECK_FALSE(at.two.log->registered.at(70).second.we_write);
  CHECK(at.two.log->registered.at(70).second.peers_read);
  REQUIRE(Devices::write(at.two, other, 30) == Status::success);
  CHECK(Devices::named(at.two).key.value == 70);
  CHECK(Devices::named(at.two).region == other);
  CHECK(Devices::named(at.two).offset_bytes == 30);
  REQUIRE(Devices::write(at.one, region) == Status::success);
  CHECK(Devices::named(at.one).key.value == 1);
}

TEST_CASE("registration__deregistered__with_every_network_before_it_returns") {
  Devices at;
  const Handle region = at.memory->register_region(at.bytes, access_read);
  const Handle other = at.memory->register_region(at.bytes, 0);
  CHECK(at.memory->deregister_region(region) == Status::success);
  CHECK(at.one.log->registered.size() == 1);
  CHECK(at.two.log->registered.size() == 1);
  CHECK(at.one.log->registered.contains(2));
  CHECK(at.memory->deregister_region(region) == Status::rma_handle);
  CHECK(at.memory->deregister_region(other) == Status::success);
  CHECK(at.two.log->registered.empty());
}

TEST_CASE("registration__a_network_takes_no_more__no_region_and_nothing_left_with_others") {
  Devices at;
  at.two.log->regions_max = 1;
  const Handle first = at.memory->register_region(at.bytes, 0);
  REQUIRE(first.kind == ports::HandleKind::region);
  CHECK(at.memory->register_region(at.bytes, 0).kind == ports::HandleKind::none);
  CHECK(at.one.log->registered.size() == 1);
  CHECK(at.memory->deregister_region(first) == Status::success);
  CHECK(at.memory->register_region(at.bytes, 0).kind == ports::HandleKind::region);  // there is room again
}

TEST_CASE("registration__a_part__has_the_keys_of_the_whole") {
  Devices at;
  const Handle whole = at.memory->register_region(at.bytes, access_read_parts);
  CHECK(at.one.log->registered.at(1).second.peers_read);
  CHECK(Devices::read_by_peer(at.one, whole) == Status::rma_op);
  const Handle part = at.memory->register_part(whole, 100, 50, access_read);
  const Handle inner = at.memory->register_part(part, 10, 20, 0);
  CHECK(part.length == 50);
  CHECK(at.one.log->registered.size() == 1);
  CHECK(Devices::read_by_peer(at.one, part) == Status::success);
  CHECK(Devices::read_by_peer(at.one, inner) == Status::rma_op);
  REQUIRE(Devices::write(at.two, inner, 5) == Status::success);
  CHECK(Devices::named(at.two).key.value == 1);
  CHECK(at.two.log->rmas.back().rma.source.data() == at.bytes.data() + 115);
  CHECK(at.memory->deregister_region(part) == Status::success);
  CHECK(at.one.log->registered.size() == 1);
  CHECK(Devices::write(at.one, inner) == Status::success);  // it is of the whole, not of that part
}

TEST_CASE("registration__memory_for_puts__is_written_by_no_read_of_ours_and_by_no_peer_that_names_it") {
  Devices at;
  const Handle whole = at.memory->register_region(at.bytes, access_read_parts | access_puts);
  const ports::MemoryAccess access = at.one.log->registered.at(1).second;
  CHECK_FALSE(access.we_write);
  CHECK(access.peers_read);
  CHECK(access.peers_write);
  const Handle part = at.memory->register_part(whole, 100, 50, 0);
  MutableBytes out;
  CHECK(at.memory->resolve_local(part, 0, 10, true, out) == Status::rma_op);
  CHECK(at.memory->resolve_local(part, 0, 10, false, out) == Status::success);
  ports::RemoteRef named;
  named.handle = whole;
  CHECK(at.memory->begin_write(1, named, 10).status == Status::rma_op);
}

TEST_CASE("registration__a_part_outside_of_the_whole__is_none") {
  Devices at;
  const Handle whole = at.memory->register_region(at.bytes, access_read_parts);
  for (const auto& [offset, length] : {std::pair<uint64_t, uint64_t>{0, 0}, {1000, 1}, {990, 11}, {UINT64_MAX, 2}})
    CHECK(at.memory->register_part(whole, offset, length, 0).kind == ports::HandleKind::none);
  CHECK(at.memory->register_part(whole, 990, 10, 0).kind == ports::HandleKind::region);
  CHECK(at.memory->register_part({}, 0, 1, 0).kind == ports::HandleKind::none);
}

TEST_CASE("registration__a_part_for_peers_of_memory_that_is_not__has_keys_of_its_own") {
  Devices at;
  const Handle whole = at.memory->register_region(at.bytes, 0);
  const Handle part = at.memory->register_part(whole, 100, 50, access_read);
  REQUIRE(at.one.log->registered.size() == 2);
  CHECK(at.one.log->registered.at(2).first.data() == at.bytes.data() + 100);
  CHECK(at.one.log->registered.at(2).second.peers_read);
  REQUIRE(Devices::write(at.one, part) == Status::success);
  CHECK(Devices::named(at.one).key.value == 2);
  SECTION("which go with it") {
    CHECK(at.memory->deregister_region(part) == Status::success);
    CHECK(at.one.log->registered.size() == 1);
  }
  SECTION("or with the whole") {
    CHECK(at.memory->deregister_region(whole) == Status::success);
    CHECK(at.one.log->registered.empty());
    CHECK(at.memory->deregister_region(part) == Status::success);
  }
  SECTION("or not at all where there is no room") {
    at.two.log->regions_max = 2;
    CHECK(at.memory->register_part(whole, 0, 50, access_read).kind == ports::HandleKind::none);
    CHECK(at.one.log->registered.size() == 2);
  }
}

TEST_CASE("registration__the_whole_deregistered__its_parts_are_over") {
  Devices at;
  const Handle whole = at.memory->register_region(at.bytes, access_read_parts);
  const Handle part = at.memory->register_part(whole, 100, 50, access_read);
  ports::RemoteRef ref;
  ref.handle = part;
  ports::RmaTarget& target = at.one.transport->target();
  const ports::Ticket ticket = target.begin_read(1, ref, 10).ticket;
  CHECK_FALSE(target.read_span(ticket, 0).empty());
  CHECK(at.memory->deregister_region(whole) == Status::success);
  CHECK(target.read_span(ticket, 0).empty());
  CHECK(Devices::read_by_peer(at.one, part) == Status::rma_handle);
  CHECK(Devices::write(at.one, part) == Status::rma_handle);
  CHECK(at.memory->register_part(part, 0, 10, 0).kind == ports::HandleKind::none);
  static_cast<void>(at.memory->register_region(at.bytes, access_read));  // in the place of the whole
  CHECK(Devices::read_by_peer(at.one, part) == Status::rma_handle);
}

TEST_CASE("registration__a_part_is_lent__the_whole_and_its_keys_stay_until_it_is_back") {
  Devices at;
  const Handle whole = at.memory->register_region(at.bytes, access_read_parts);
  const Handle part = at.memory->register_part(whole, 100, 50, access_read);
  ports::RemoteRef ref;
  ref.handle = part;
  ports::RmaTarget& target = at.one.transport->target();
  const ports::Ticket ticket = target.begin_read(1, ref, 10).ticket;
  REQUIRE(target.lend(ticket));
  CHECK(at.memory->deregister_region(whole) == Status::busy);
  CHECK(at.memory->in_use(whole));
  CHECK(at.one.log->registered.size() == 1);
  CHECK(target.wanted_back(ticket));
  target.end_read(ticket);
  CHECK_FALSE(at.memory->in_use(whole));
  CHECK(at.one.log->registered.empty());
}

TEST_CASE("registration__a_network_that_comes_later__has_all_that_is_registered") {
  Devices at;
  const Handle whole = at.memory->register_region(at.bytes, access_read_parts);
  const Handle part = at.memory->register_part(whole, 100, 50, access_read);
  const Handle second = at.memory->register_region(at.bytes, access_read);
  Devices::Device late;
  late.log->regions_max = 1;
  at.open(late);
  CHECK(late.log->registered.size() == 1);
  REQUIRE(Devices::write(late, part) == Status::success);
  CHECK(Devices::named(late).key.value == 1);
  // It took no more: what it did not take is not used over it, by nobody, while the others go on.
  CHECK(Devices::write(late, second) == Status::no_memory);
  CHECK(Devices::read_by_peer(late, second) == Status::no_memory);
  CHECK(Devices::read_by_peer(late, part) == Status::success);
  CHECK(Devices::write(at.one, second) == Status::success);
  CHECK(at.memory->deregister_region(second) == Status::success);
}

TEST_CASE("registration__an_endpoint_has_gone__its_network_is_asked_no_more") {
  Devices at;
  const Handle region = at.memory->register_region(at.bytes, 0);
  at.one.endpoint.reset();
  CHECK(at.memory->deregister_region(region) == Status::success);
  CHECK(at.one.log->registered.size() == 1);  // the transport forgot it itself
  CHECK(at.two.log->registered.empty());
  CHECK(at.memory->register_region(at.bytes, 0).kind == ports::HandleKind::region);
}

TEST_CASE("registration__networks_without_keys__are_named_none") {
  Devices at(0);
  const Handle region = at.memory->register_region(at.bytes, access_read);
  REQUIRE(Devices::write(at.one, region, 7) == Status::success);
  CHECK_FALSE(Devices::named(at.one).key);
  CHECK(Devices::named(at.one).offset_bytes == 7);
  CHECK(Devices::read_by_peer(at.one, region) == Status::success);
}
