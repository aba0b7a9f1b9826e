// RVMA through the endpoint, over every transport and route. The rows themselves are tested in unit/rvma; here, that what the table
// decides is what the initiator sees, however many hops and fragments lie between.
#include <algorithm>
#include <cstring>

#include "tests/contract/rvma_scene.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;
using rvma::CompletionRecord;

TEST_CASE("contract__rvma_bytes_threshold__puts_in_reverse_complete_one_record") {
  EVERY_LAB(lab);
  Scene scene(lab, {.type = rvma::ThresholdType::bytes, .threshold = 1u << 20});
  std::vector<std::byte> buffer(1u << 20);
  CompletionRecord record;
  REQUIRE(scene.mailboxes().post(number, buffer, {.record = &record}) == Status::success);
  constexpr uint64_t piece = (1u << 20) / 8;
  for (uint64_t i = 8; i-- > 0;) {
    REQUIRE(record.buffer == nullptr);
    REQUIRE(scene.put(i * piece, i * piece, piece) == Status::success);
  }
  REQUIRE(record.buffer == buffer.data());
  REQUIRE(record.length_bytes == 1u << 20);
  REQUIRE(record.count == 1u << 20);
  REQUIRE_FALSE(record.has_holes);
  REQUIRE(buffer == scene.source);
  REQUIRE_FALSE(scene.mailboxes().next_completion());
}

TEST_CASE("contract__rvma_threshold_of_a_post__overrides_the_window_and_refuses_too_long") {
  EVERY_LAB(lab);
  Scene scene(lab, {.threshold = 1});
  std::vector<std::byte> buffer(300'000, std::byte{0xee});
  REQUIRE(scene.mailboxes().post(number, buffer, {.threshold = 2}) == Status::success);
  REQUIRE(scene.put(0, 0, 300'001) == Status::mailbox_too_long);
  REQUIRE(scene.put(0, 1, 300'000) == Status::mailbox_too_long);
  REQUIRE(std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == std::byte{0xee}; }));
  REQUIRE(scene.put(0, 0, 150'000) == Status::success);
  REQUIRE_FALSE(scene.mailboxes().next_completion());
  REQUIRE(scene.put(150'000, 150'000, 150'000) == Status::success);
  REQUIRE(scene.mailboxes().next_completion()->count == 2);
  REQUIRE(scene.same(buffer.data(), 0, buffer.size()));
}

TEST_CASE("contract__rvma_managed_mailbox__puts_follow_one_another") {
  EVERY_LAB(lab);
  Scene scene(lab, {.type = rvma::ThresholdType::bytes, .threshold = 600'000, .placement = rvma::Placement::managed});
  std::vector<std::byte> buffer(600'000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  uint64_t at = 0;
  for (const uint64_t length : {1u, 199'999u, 77u, 399'923u}) {  // long ones are several fragments on a routed connection
    REQUIRE(scene.put(at, 12345, length) == Status::success);
    at += length;
  }
  const auto done = scene.mailboxes().next_completion();
  REQUIRE(done);
  REQUIRE(done->length_bytes == 600'000);
  REQUIRE_FALSE(done->has_holes);
  REQUIRE(scene.same(buffer.data(), 0, buffer.size()));
}

TEST_CASE("contract__rvma_catch_all__what_nobody_opened_is_caught") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::byte> buffer(200'000);
  const Handle unknown{ports::HandleKind::mailbox, 0, 0, 0, 4242, 1, 0};
  scene.remote = unknown;
  REQUIRE(scene.put(0, 0, 100) == Status::mailbox_unknown);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  scene.mailboxes().set_catch_all(number);
  REQUIRE(scene.put(7, 0, 200'000) == Status::success);
  const auto done = scene.mailboxes().next_completion();
  REQUIRE(done);
  REQUIRE(done->mailbox == number);
  REQUIRE(done->address == 4242);
  REQUIRE(scene.same(buffer.data(), 7, buffer.size()));
}

TEST_CASE("contract__rvma_close_with_nacks_off__no_answer_and_the_initiator_times_out") {
  EVERY_LAB(lab);
  Scene scene(lab, {.negative_acks = false});
  std::vector<std::byte> buffer(300'000, std::byte{0xee});
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  scene.from.endpoint->set_send_timeout(scene.connection, 300ms);
  REQUIRE(scene.put(0, 0, 1000) == Status::success);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(scene.mailboxes().close(number) == Status::success);
  const std::vector<std::byte> before = buffer;
  const uint64_t longer = scene.start(true, 0, 0, 300'000);
  const uint64_t shorter = scene.start(true, 0, 0, 10);
  const uint64_t reading = scene.start(false, 0, 0, 10);
  REQUIRE(wait_send(lab, scene.from, longer) == Status::timed_out);
  REQUIRE(wait_send(lab, scene.from, shorter) == Status::timed_out);
  REQUIRE(wait_send(lab, scene.from, reading) == Status::timed_out);
  REQUIRE(buffer == before);
  // Without a timeout it never ends while the connection lives; the connection is as good as before.
  scene.from.endpoint->set_send_timeout(scene.connection, forever);
  const uint64_t endless = scene.start(true, 0, 0, 10);
  lab.pass(100ms);
  REQUIRE(scene.mailboxes().open(1, {}) == Status::success);
  REQUIRE(scene.mailboxes().post(1, buffer, 1) == Status::success);
  scene.remote = scene.mailboxes().handle(1);
  REQUIRE(scene.put(0, 0, 1000) == Status::success);
  REQUIRE_FALSE(scene.from.has(EventType::send));
  scene.from.endpoint->disconnect(scene.connection);
  REQUIRE(wait_send(lab, scene.from, endless) == Status::disconnected);
}

TEST_CASE("contract__rvma_close_with_nacks_on__says_closed_and_a_reopened_one_has_its_key") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  REQUIRE(scene.mailboxes().close(number) == Status::success);
  REQUIRE(scene.put(0, 0, 1000) == Status::mailbox_closed);
  REQUIRE(scene.mailboxes().open(number, {.key = key + 1}) == Status::success);
  std::vector<std::byte> buffer(1000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(scene.put(0, 0, 1000) == Status::mailbox_key);
  scene.remote = scene.mailboxes().handle(number);
  REQUIRE(scene.put(0, 0, 1000) == Status::success);
}

TEST_CASE("contract__rvma_get__reads_the_last_completed_epoch_and_counts_nothing") {
  EVERY_LAB(lab);
  Scene scene(lab, {.retired_max = 1});
  std::vector<std::byte> first(300'000), second(300'000);
  REQUIRE(scene.get(0, 1) == Status::mailbox_empty);
  REQUIRE(scene.mailboxes().post(number, first, 1) == Status::success);
  REQUIRE(scene.mailboxes().post(number, second, 1) == Status::success);
  REQUIRE(scene.put(1000, 0, 250'000) == Status::success);
  REQUIRE(scene.get(0, 250'000) == Status::success);
  REQUIRE(scene.same(scene.landing.data(), 1000, 250'000));
  REQUIRE(scene.get(249'999, 2) == Status::mailbox_too_long);
  REQUIRE(scene.mailboxes().epoch(number) == 1u);
  REQUIRE(scene.put(5000, 0, 10) == Status::success);
  REQUIRE(scene.get(0, 10) == Status::success);
  REQUIRE(scene.same(scene.landing.data(), 5000, 10));
  REQUIRE(scene.mailboxes().release(number, second.data()) == Status::success);
  REQUIRE(scene.get(0, 10) == Status::mailbox_empty);
}

TEST_CASE("contract__rvma_rewind__older_operations_are_refused_and_the_new_handle_works") {
  EVERY_LAB(lab);
  Scene scene(lab, {.retired_max = 4});
  std::vector<std::vector<std::byte>> buffers(4, std::vector<std::byte>(100'000));
  for (auto& buffer : buffers) REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(scene.put(i, 0, 100'000, i) == Status::success);
  std::vector<rvma::CompletedBuffer> undone;
  REQUIRE(scene.mailboxes().rewind(number, 1, undone) == Status::success);
  REQUIRE(undone.size() == 2);
  REQUIRE(scene.same(undone[0].memory.data(), 1, 100'000));
  REQUIRE(scene.put(3, 0, 100'000, 1) == Status::mailbox_stale);
  scene.remote = scene.mailboxes().handle(number);
  REQUIRE(scene.get(0, 100'000) == Status::success);  // epoch 0
  REQUIRE(scene.same(scene.landing.data(), 0, 100'000));
  while (scene.mailboxes().next_completion()) {
  }
  REQUIRE(scene.put(3, 0, 100'000, 1) == Status::success);
  const auto done = scene.mailboxes().next_completion();
  REQUIRE(done);
  REQUIRE(done->epoch == 1);
  REQUIRE(scene.same(buffers[3].data(), 3, 100'000));
}

TEST_CASE("contract__rvma_empty_bucket__held_until_a_buffer_is_posted") {
  EVERY_LAB(lab);
  Scene scene(lab, {.when_empty = rvma::WhenEmpty::hold, .held_bytes_max = 1u << 20});
  REQUIRE(scene.put(9, 0, 300'000) == Status::success);
  std::vector<std::byte> buffer(300'000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(scene.mailboxes().next_completion()->length_bytes == 300'000);
  REQUIRE(scene.same(buffer.data(), 9, 300'000));
}

// Over routes a put is several fragments: those that came before there was a buffer, and those after, must fare alike.
TEST_CASE("contract__rvma_buffer_posted_during_a_refusal__the_put_is_refused_whole") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::byte> buffer(1u << 20, std::byte{0xee});
  const uint64_t refused = scene.start(true, 0, 0, 1u << 20);
  REQUIRE(lab.run([&] { return scene.to.counters->get(Counter::mailbox_rejected) > 0; }));
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(wait_send(lab, scene.from, refused) == Status::mailbox_empty);
  REQUIRE(std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == std::byte{0xee}; }));
  REQUIRE_FALSE(scene.mailboxes().next_completion());
  REQUIRE(scene.put(77, 0, 900'000) == Status::success);
  const auto done = scene.mailboxes().next_completion();
  REQUIRE(done);
  REQUIRE(done->count == 1);
  REQUIRE(scene.same(buffer.data(), 77, 900'000));
}

TEST_CASE("contract__rvma_many_initiators__share_a_mailbox_without_a_handshake") {
  EVERY_LAB(lab);
  Scene scene(lab, {.threshold = 3});
  std::vector<std::byte> buffer(300);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(scene.put(0, 0, 100) == Status::success);
  for (uint64_t i = 1; i <= 2; ++i) {
    Node& other = lab.add();
    Node& aside = lab.add();  // routed labs put nodes on two subnets in turn
    Node& initiator = lab.routed() ? other : aside;
    const Connection connection = connect(lab, initiator, scene.to).at_dialler;
    cci::RmaOptions options;
    options.local = initiator.memory->register_region(Bytes(scene.source));
    options.local_offset_bytes = 100 * i;
    options.remote.handle = scene.remote;
    options.remote.offset_bytes = 100 * i;
    options.length_bytes = 100;
    options.context = 1;
    REQUIRE(initiator.endpoint->rma(connection, options) == Status::success);
    REQUIRE(wait_send(lab, initiator, 1) == Status::success);
  }
  REQUIRE(scene.mailboxes().next_completion()->count == 3);
  REQUIRE(scene.same(buffer.data(), 0, 300));
}

TEST_CASE("contract__rvma_put_with_a_completion_message__after_the_data_never_after_refusal") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::byte> buffer(400'000);
  CompletionRecord record;
  REQUIRE(scene.mailboxes().post(number, buffer, {.record = &record}) == Status::success);
  const auto note = pattern(40, 3);
  cci::RmaOptions put;
  put.local = scene.local;
  put.remote.handle = scene.remote;
  put.completion_message = Bytes(note);
  put.length_bytes = 400'001;
  put.context = 1;
  REQUIRE(scene.from.endpoint->rma(scene.connection, put) == Status::success);
  REQUIRE(wait_send(lab, scene.from, 1) == Status::mailbox_too_long);
  put.length_bytes = 400'000;
  put.context = 2;
  REQUIRE(scene.from.endpoint->rma(scene.connection, put) == Status::success);
  bool early = false;
  REQUIRE(lab.run([&] {
    early = early || (scene.to.has(EventType::receive) && record.buffer == nullptr);
    return scene.to.has(EventType::receive);
  }));
  REQUIRE_FALSE(early);
  REQUIRE(scene.same(buffer.data(), 0, buffer.size()));
  REQUIRE(wait_send(lab, scene.from, 2) == Status::success);
  lab.pass(50ms);
  REQUIRE(scene.to.count(EventType::receive) == 1);
}

TEST_CASE("contract__rvma_fenced_put__not_before_the_puts_ahead_of_it") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  std::vector<std::byte> large(1u << 20), small(100);
  CompletionRecord first, second;
  REQUIRE(scene.mailboxes().post(number, large, {.record = &first}) == Status::success);
  REQUIRE(scene.mailboxes().open(7, {}) == Status::success);
  REQUIRE(scene.mailboxes().post(7, small, {.record = &second}) == Status::success);
  cci::RmaOptions put;
  put.local = scene.local;
  put.remote.handle = scene.remote;
  put.length_bytes = large.size();
  put.context = 1;
  REQUIRE(scene.from.endpoint->rma(scene.connection, put) == Status::success);
  put.remote.handle = scene.mailboxes().handle(7);
  put.length_bytes = small.size();
  put.fence = true;
  put.context = 2;
  REQUIRE(scene.from.endpoint->rma(scene.connection, put) == Status::success);
  bool early = false;
  REQUIRE(lab.run([&] {
    early = early || (second.buffer != nullptr && first.buffer == nullptr);
    return second.buffer != nullptr;
  }));
  REQUIRE_FALSE(early);
  REQUIRE(first.buffer == large.data());
  REQUIRE(wait_send(lab, scene.from, 1) == Status::success);
  REQUIRE(wait_send(lab, scene.from, 2) == Status::success);
}

TEST_CASE("contract__rvma_quota__of_a_source_and_not_of_the_others") {
  EVERY_LAB(lab);
  Scene scene(lab, {.type = rvma::ThresholdType::bytes, .threshold = 1400, .bytes_per_source_max = 1000});
  std::vector<std::byte> buffer(2000);
  REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  REQUIRE(scene.put(0, 0, 700) == Status::success);
  REQUIRE(scene.put(0, 700, 700) == Status::no_buffers);
  REQUIRE_FALSE(scene.mailboxes().next_completion());
  Node* initiator = &lab.add();
  if (lab.routed()) static_cast<void>(lab.add());
  const Connection connection = connect(lab, *initiator, scene.to).at_dialler;
  cci::RmaOptions put;
  put.local = initiator->memory->register_region(Bytes(scene.source));
  put.local_offset_bytes = 700;
  put.remote.handle = scene.remote;
  put.remote.offset_bytes = 700;
  put.length_bytes = 700;
  put.context = 1;
  REQUIRE(initiator->endpoint->rma(connection, put) == Status::success);
  REQUIRE(wait_send(lab, *initiator, 1) == Status::success);
  REQUIRE(scene.mailboxes().next_completion()->count == 1400);
  REQUIRE(scene.same(buffer.data(), 0, 1400));
}

// Its put is neither placed whole nor ever will be: the owner takes the partial buffer, and the others go on.
TEST_CASE("contract__rvma_initiator_dies_within_a_put__partial_is_handed_over_next_is_clean") {
  EVERY_LAB(lab);
  Scene scene(lab, {});
  constexpr size_t size = 24u << 20;
  const auto source = pattern(size, 17);
  std::vector<std::byte> first(size, std::byte{0xee}), second(1000);
  REQUIRE(scene.mailboxes().post(number, first, 1) == Status::success);
  REQUIRE(scene.mailboxes().post(number, second, 2) == Status::success);
  cci::RmaOptions put;
  put.local = scene.from.memory->register_region(Bytes(source));
  put.remote.handle = scene.remote;
  put.remote.put.source = 4711;
  put.remote.put.operation = 1;
  put.length_bytes = size;
  put.context = 1;
  REQUIRE(scene.from.endpoint->rma(scene.connection, put) == Status::success);
  constexpr size_t begun_bytes = 128u << 10;  // two fragments of a lab's router, whatever one of its datagrams holds
  const auto begun = [&] { return std::memcmp(first.data(), source.data(), begun_bytes) == 0; };
  REQUIRE(lab.run(begun, 60s));
  scene.from.endpoint.reset();
  REQUIRE(lab.run([&] { return scene.to.has(EventType::disconnected); }, 120s));
  REQUIRE_FALSE(scene.mailboxes().next_completion());
  // A hop's pieces are whole in themselves, so what came stays bound to the buffer; without a hop the put is one piece.
  // A piece that a card is placing right now ends first.
  size_t aborted = 0;
  const auto all_aborted = [&] { return (aborted += scene.mailboxes().abort_source(number, 4711)) == (lab.routed() ? 1 : 0); };
  REQUIRE(lab.run(all_aborted));
  REQUIRE(scene.mailboxes().abort_source(number, 4711) == 0);
  REQUIRE(scene.mailboxes().increment_epoch(number) == Status::success);
  const auto partial = scene.mailboxes().next_completion();
  REQUIRE(partial);
  REQUIRE(partial->buffer == first.data());
  REQUIRE(partial->count == 0);  // no operation was whole
  REQUIRE((partial->bytes > 0) == lab.routed());
  REQUIRE(partial->bytes < size);
  Node& initiator = lab.add();
  const Connection connection = connect(lab, initiator, scene.to).at_dialler;
  put.local = initiator.memory->register_region(Bytes(source));
  put.remote.put.source = 0;
  put.remote.put.operation = 0;
  put.length_bytes = 1000;
  REQUIRE(initiator.endpoint->rma(connection, put) == Status::success);
  REQUIRE(wait_send(lab, initiator, 1) == Status::success);
  const auto done = scene.mailboxes().next_completion();
  REQUIRE(done);
  REQUIRE(done->epoch == 1);
  REQUIRE(std::equal(second.begin(), second.end(), source.begin()));
}

// The master property: two initiators put the pieces of many epochs in any order, each telling its epoch, and
// come again when it is not there yet; what is published is what one initiator without a network between would have published.
TEST_CASE("contract__rvma_master_property__epochs_lengths_contents_as_in_a_lossless_model") {
  EVERY_LAB(lab);
  constexpr uint64_t epochs = 6, pieces = 8, size = 200'000;
  Scene scene(lab, {.threshold = pieces});
  Node* second = &lab.add();
  if (lab.routed()) static_cast<void>(lab.add());
  struct Initiator {
    Node* node;
    Connection connection;
    Handle local;
  };
  const auto source = pattern(epochs * size, 23);
  std::vector<Initiator> initiators = {{&scene.from, scene.connection, {}},
                                       {second, connect(lab, *second, scene.to).at_dialler, {}}};
  for (Initiator& initiator : initiators) initiator.local = initiator.node->memory->register_region(Bytes(source));

  SeededEntropy chance(lab_name.size() + 5);
  std::vector<uint64_t> cuts;  // where the pieces of an epoch begin; 1 byte to many fragments
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<uint64_t> inner = {0, 1};
    while (inner.size() < pieces) {
      const uint64_t at = 2 + chance.next_u64() % (size - 2);
      if (std::find(inner.begin(), inner.end(), at) == inner.end()) inner.push_back(at);
    }
    std::sort(inner.begin(), inner.end());
    cuts.insert(cuts.end(), inner.begin(), inner.end());
  }
  std::vector<uint64_t> waiting(epochs * pieces);  // puts that are to go out, first last
  for (uint64_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
  for (uint64_t i = waiting.size(); i > 1; --i) std::swap(waiting[i - 1], waiting[chance.next_u64() % i]);

  std::vector<std::vector<std::byte>> buffers(2, std::vector<std::byte>(size));
  for (auto& buffer : buffers) REQUIRE(scene.mailboxes().post(number, buffer, 1) == Status::success);
  uint64_t in_flight = 0, succeeded = 0, published = 0;
  bool wrong = false;
  REQUIRE(lab.run(
      [&] {
        for (Initiator& initiator : initiators) {
          while (const auto event = initiator.node->take(EventType::send)) {
            --in_flight;
            if (event->status == Status::success) {
              ++succeeded;
            } else if (event->status == Status::mailbox_empty) {
              waiting.insert(waiting.begin(), event->context);
            } else {
              wrong = true;
            }
          }
        }
        while (const auto done = scene.mailboxes().next_completion()) {
          const std::byte* expected = source.data() + published * size;
          wrong = wrong || done->epoch != published || done->length_bytes != size || done->has_holes ||
                  !std::equal(done->buffer, done->buffer + size, expected);
          std::fill_n(done->buffer, size, std::byte{0});
          ++published;
          wrong = wrong || scene.mailboxes().post(number, {done->buffer, size}, 1) != Status::success;
        }
        while (!waiting.empty() && in_flight < 6) {
          const uint64_t which = waiting.back();
          waiting.pop_back();
          const uint64_t epoch = which / pieces;
          const uint64_t at = cuts[which];
          const uint64_t piece_end = which % pieces + 1 == pieces ? size : cuts[which + 1];
          Initiator& initiator = initiators[chance.next_u64() % 2];
          cci::RmaOptions put;
          put.local = initiator.local;
          put.local_offset_bytes = epoch * size + at;
          put.remote.handle = scene.remote;
          put.remote.offset_bytes = at;
          put.remote.put.epoch = epoch;
          put.length_bytes = piece_end - at;
          put.context = which;
          wrong = wrong || initiator.node->endpoint->rma(initiator.connection, put) != Status::success;
          ++in_flight;
        }
        return wrong || published == epochs;
      },
      120s));
  REQUIRE_FALSE(wrong);
  REQUIRE(lab.run([&] {
    for (Initiator& initiator : initiators) {
      while (const auto event = initiator.node->take(EventType::send)) succeeded += event->status == Status::success ? 1u : 0u;
    }
    return succeeded == epochs * pieces;
  }));
  REQUIRE_FALSE(scene.mailboxes().next_completion());
}

}  // namespace
}  // namespace ccixfer::contract
