// Peers that speak shm up to a point and then do what they like. Each ends its own stream, with a counter and a reason, and nobody
// else's.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/unit/shm/nets.h"
#include "tests/unit/shm/pass.h"
#include "transports/shm/doorbell.h"

namespace ccixfer::shm {
namespace {

using host::Descriptor;

// A dialler by hand, with the memory at its mercy.
struct Dialler {
  Descriptor socket;
  Segment segment;
};

struct Scene {
  Counters counters;
  std::unique_ptr<ShmNet> server = make({.name = {}, .counters = &counters});
  std::unique_ptr<ShmNet> friendly = make({.name = {}, .listen = false});
  Watch watch{{server.get(), friendly.get()}};
  StreamId good_out = 0, good_in = 0, bad_in = 0;
  Dialler bad;
  Closer closer;

  Scene() {
    good_out = *friendly->dial(server->uri());
    REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::accepted) && watch.find(1, StreamEventType::connected); }));
    good_in = watch.find(0, StreamEventType::accepted)->id;
    watch.events[0].clear();
    bad.socket = dial_name(*parse_uri(server->uri()));
    REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::accepted) != nullptr; }));
    bad_in = watch.find(0, StreamEventType::accepted)->id;
    auto segment = take_segment(bad.socket.get(), closer);
    REQUIRE(segment);
    REQUIRE(*segment);
    bad.segment = std::move(**segment);
    watch.events[0].clear();
  }
  // It failed as told, and the other stream works.
  void check_failed() {
    REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::failed, bad_in) != nullptr; }));
    CHECK(watch.find(0, StreamEventType::failed)->reason == "the peer wrote into the shared memory what cannot be");
    CHECK(counters.get(Counter::shared_rings_rejected) == 1);
    std::string got;
    CHECK(recv_some(*server, bad_in, got) < 0);
    CHECK(send_text(*server, bad_in, "x") < 0);
    server->close(bad_in);
    check_good();
  }
  void check_good() {
    std::string got;
    REQUIRE(send_text(*friendly, good_out, "still here") == 10);
    REQUIRE(watch.run([&] { return recv_some(*server, good_in, got) > 0; }));
    CHECK(got == "still here");
  }
};

TEST_CASE("hostile_shm_peer__scribbles_over_all_of_the_memory__its_stream_ends_and_no_other") {
  Scene scene;
  const uint8_t pattern = GENERATE(uint8_t{0xff}, uint8_t{0x80}, uint8_t{0x5a});
  for (size_t direction = 0; direction < 2; ++direction) {
    const RingMemory ring = scene.bad.segment.ring(direction);
    std::memset(static_cast<void*>(ring.control), pattern, sizeof(RingControl));
    std::memset(ring.data, pattern, ring.capacity_bytes);
  }
  shm::ring(scene.bad.socket.get());
  scene.check_failed();
}

TEST_CASE("hostile_shm_peer__an_index_that_cannot_be__found_where_it_is_used") {
  Scene scene;
  std::string got;
  const bool found_by_recv = GENERATE(false, true);
  if (found_by_recv) {
    scene.bad.segment.ring(0).control->written = uint64_t{1} << 40;
    CHECK(recv_some(*scene.server, scene.bad_in, got) == stream::io_again);
    CHECK(got.empty());
  } else {
    scene.bad.segment.ring(1).control->read = uint64_t{1} << 40;
    const std::string much(300 << 10, 'x');
    CHECK(send_text(*scene.server, scene.bad_in, much) <= 256 << 10);
  }
  scene.check_failed();
}

TEST_CASE("hostile_shm_peer__punches_holes_and_cuts__no_fault_here") {
  Scene scene;
  REQUIRE(send_text(*scene.server, scene.bad_in, "some bytes") == 10);
  std::vector<std::byte> zeros(4096 + 4096);
  const RingMemory ring = scene.bad.segment.ring(0);
  ring.control->written = 100;
  std::string got;
  CHECK(recv_some(*scene.server, scene.bad_in, got, 50) == 50);
  // What punching a hole does to both pages of the head.
  std::memset(static_cast<void*>(ring.control), 0, 2 * sizeof(RingControl));
  shm::ring(scene.bad.socket.get());
  CHECK(recv_some(*scene.server, scene.bad_in, got, 1000) <= 50);
  scene.check_failed();
}

TEST_CASE("hostile_shm_peer__rings_without_end__is_served_and_costs_no_memory") {
  Scene scene;
  const std::array<char, 4096> bytes{};
  for (int i = 0; i < 500; ++i) {
    static_cast<void>(send(scene.bad.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    scene.watch.poll(0);
  }
  scene.check_good();
  REQUIRE(scene.bad.segment.ring(0).control->written == 0);
  std::string got;
  CHECK(recv_some(*scene.server, scene.bad_in, got) == stream::io_again);
}

TEST_CASE("hostile_shm_peer__never_reads_the_bell__the_other_end_does_not_wait") {
  Scene scene;
  RingMemory ring = scene.bad.segment.ring(1);
  for (int i = 0; i < 2000; ++i) {  // more than its socket holds
    ring.control->reader_waits = 1;
    REQUIRE(send_text(*scene.server, scene.bad_in, "x") == 1);
  }
  scene.check_good();
}

TEST_CASE("hostile_shm_peer__goes_in_the_middle__the_end_is_told") {
  Scene scene;
  scene.bad.socket.reset();
  std::string got;
  REQUIRE(scene.watch.run([&] { return recv_some(*scene.server, scene.bad_in, got) == stream::io_closed; }));
  scene.check_good();
}

// ---- Listeners that are not what they seem.

// What a listener by hand says first, and whether it passes a descriptor.
std::string dialled_words(std::string_view words, const std::vector<int>& descriptors) {
  const std::string name = "ccixfer-unit-hostile-" + std::to_string(getpid());
  const auto listener = listen_at(name, 1);
  REQUIRE(listener);
  const std::unique_ptr<ShmNet> client = make({.name = {}, .listen = false});
  Watch watch({client.get()});
  const StreamId id = *client->dial(format_uri(name));
  const Descriptor peer(accept(listener->get(), nullptr, nullptr));
  REQUIRE(peer);
  if (!words.empty()) REQUIRE(pass(peer.get(), words, descriptors));
  if (words.empty()) REQUIRE(shutdown(peer.get(), SHUT_RDWR) == 0);
  REQUIRE(watch.run([&] { return !watch.events[0].empty(); }));
  const StreamEvent& event = watch.events[0].front();
  CHECK(event.id == id);
  CHECK(event.type == StreamEventType::failed);
  CHECK(event.status == Status::refused);
  return event.reason.substr(event.reason.find(": ") + 2);
}

TEST_CASE("hostile_shm_listener__what_it_says_and_passes__is_judged") {
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto segment = Segment::create(8192);
  REQUIRE(segment);
  const auto words = [](uint32_t version, uint32_t ring_bytes) {
    std::string text = "ccixshm\n";
    text.append(reinterpret_cast<const char*>(&version), sizeof version);
    text.append(reinterpret_cast<const char*>(&ring_bytes), sizeof ring_bytes);
    return text;
  };
  CHECK(dialled_words("", {}) == "the listener closed the connection");
  CHECK(dialled_words("GET / HTTP/1.1\r\n", {}) == "the peer does not speak shm");
  CHECK(dialled_words(words(1, 8192), {}) == "the peer does not speak shm");
  CHECK(dialled_words(words(1, 8192), {null.get()}) == "the peer does not speak shm");
  CHECK(dialled_words(words(1, 8192).substr(1), {segment->descriptor()}) == "the peer does not speak shm");
  CHECK(dialled_words(words(1, 8192), {segment->descriptor(), null.get()}) == "the peer does not speak shm");
  CHECK(dialled_words(words(1, 8192), std::vector<int>(30, null.get())) == "the peer does not speak shm");
  CHECK(dialled_words(words(2, 8192), {segment->descriptor()}) == "the peer speaks version 2 of shm, and this end 1");
  CHECK(dialled_words(words(1, 16384), {segment->descriptor()}) ==
        "the peer passed memory of another size in place of shared memory");
}

}  // namespace
}  // namespace ccixfer::shm
