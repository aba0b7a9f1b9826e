// First inputs of the targets that play a peer: honest runs, which mutations then spoil.
#include <initializer_list>
#include <span>
#include <vector>

#include "core/wire/connection_frames.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "routing/map/record.h"
#include "routing/transport/messages.h"
#include "tests/fuzz/corpus.h"

namespace ccixfer::fuzz {
namespace {

// The steps of target_stream_peer.cc: 0 and a frame, 4 and what the application does, 5 time.
class Steps {
 public:
  explicit Steps(uint8_t begin) { byte(begin); }
  Steps& byte(uint8_t value) {
    bytes_.push_back(static_cast<std::byte>(value));
    return *this;
  }
  Steps& act(uint8_t what) { return byte(4).byte(what); }
  Steps& pass() { return byte(5 | 10 << 3); }  // about a second
  Steps& read() { return byte(6); }
  template <typename Encode>
  Steps& say(Encode&& encode) {
    std::vector<std::byte> said;
    encode(said);
    byte(0).byte(static_cast<uint8_t>(said.size()));
    bytes_.insert(bytes_.end(), said.begin(), said.end());
    return *this;
  }
  template <typename Encode>
  Steps& frame(Encode&& encode, size_t payload = 0) {
    return say([&](std::vector<std::byte>& said) {
      wire::Writer out(said);
      encode(out);
      said.resize(said.size() + payload, std::byte{3});
    });
  }
  void keep(const std::string& target) const { put(target, bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Both ends prove who they are: strangers who say something, and a peer that has the keys.
void secured_stream_peers(const wire::Hello& hello, const ports::RemoteRef& region) {
  using Out = wire::Writer;
  constexpr uint8_t we_dial = 1, open = 8, secured = 16, proved = 32;
  const auto plain_hello = [&](Out& out) { wire::encode(out, hello); };
  const auto no_tls = [](Out& out) { wire::encode_handshake(out, as_bytes("GET / HTTP/1.1")); };
  Steps(secured).frame(plain_hello).read().keep("stream_peer");
  Steps(secured).frame(no_tls).pass().keep("stream_peer");
  Steps(secured | we_dial).frame(no_tls).read().keep("stream_peer");
  Steps(secured | proved).frame(plain_hello).act(6 | 8).read().keep("stream_peer");
  Steps(secured | proved | we_dial).frame(no_tls).keep("stream_peer");
  for (const uint8_t begin : {uint8_t{secured | open}, uint8_t{secured | open | we_dial}}) {
    Steps(begin)
        .frame(
            [](Out& out) {
              wire::encode(out, wire::Message{0, 0, 0}, 10);
            },
            10)
        .act(0)
        .frame([](Out& out) {
          wire::encode(out, wire::MessageAck{1, Status::success});
        })
        .frame(
            [&](Out& out) {
              wire::encode(out, wire::RmaWrite{0, 20, 0, region, false}, 10);
            },
            10)
        .frame(
            [&](Out& out) {
              wire::encode(out, wire::RmaWrite{0, 20, 10, region, false}, 10);
            },
            10)
        .frame([](Out& out) {
          wire::encode_bye(out, {Status::disconnected, "bye"});
        })
        .keep("stream_peer");
    Steps(begin).byte(3).byte(4).byte(18).byte(0).byte(12).byte(0).pass().read().keep("stream_peer");
  }
}

void stream_peers() {
  using Out = wire::Writer;
  const auto empty = [](wire::Kind kind) { return [kind](Out& out) { wire::encode_empty(out, kind); }; };
  wire::Hello hello;
  hello.offer = {1500, 8, 8};
  wire::HelloReply reply;
  reply.offer = {1500, 8, 8};
  ports::RemoteRef region;
  region.handle.kind = ports::HandleKind::region;
  region.offset_bytes = 100;
  constexpr uint8_t we_dial = 1, unreliable = 4, open = 8;
  Steps(0).frame([&](Out& out) { wire::encode(out, hello); }).act(6).frame(empty(wire::Kind::connect_ack)).keep("stream_peer");
  Steps(0).frame([&](Out& out) { wire::encode(out, hello); }).act(6 | 8).read().byte(7 | 31 << 3).keep("stream_peer");
  Steps(we_dial)
      .frame([&](Out& out) { wire::encode(out, reply); })
      .frame(empty(wire::Kind::connect_accept))
      .act(5)
      .keep("stream_peer");
  Steps(we_dial)
      .frame([&](Out& out) { wire::encode(out, reply); })
      .frame([](Out& out) {
        wire::encode_reject(out, {Status::refused, "busy"});
      })
      .keep("stream_peer");
  for (const uint8_t begin : {open, uint8_t{open | we_dial}, uint8_t{open | unreliable}}) {
    Steps(begin)
        .frame(
            [](Out& out) {
              wire::encode(out, wire::Message{0, 0, 0}, 10);
            },
            10)
        .act(0)
        .frame([](Out& out) {
          wire::encode(out, wire::MessageAck{1, Status::success});
        })
        .act(0)
        .frame([](Out& out) {
          wire::encode(out, wire::MessageAck{1, Status::receiver_not_ready});
        })
        .pass()
        .read()
        .frame(empty(wire::Kind::keepalive))
        .frame([](Out& out) {
          wire::encode_bye(out, {Status::disconnected, "bye"});
        })
        .keep("stream_peer");
    Steps(begin)
        .frame(
            [&](Out& out) {
              wire::encode(out, wire::RmaWrite{0, 20, 0, region, false}, 10);
            },
            10)
        .frame(
            [&](Out& out) {
              wire::encode(out, wire::RmaWrite{0, 20, 10, region, false}, 10);
            },
            10)
        .frame([&](Out& out) {
          wire::encode(out, wire::RmaRead{0, 100, region});
        })
        .read()
        .frame(
            [&](Out& out) {
              wire::encode(out, wire::RmaWrite{1 << 16 | 1, 20, 0, region, false}, 10);
            },
            10)
        .frame([&](Out& out) {
          wire::encode(out, wire::RmaWrite{1 << 16 | 1, 20, 10, region, true}, 0);
        })
        .keep("stream_peer");
    Steps(begin)
        .act(1)
        .act(2)
        .act(0x80 | 1)
        .read()
        .frame([](Out& out) {
          wire::encode_write_ack(out, {0, Status::success, false});
        })
        .frame(
            [](Out& out) {
              wire::encode(out, wire::RmaReadData{1, 1, 0}, 1);
            },
            1)
        .frame([](Out& out) {
          wire::encode_write_ack(out, {2, Status::rma_handle, true});
        })
        .act(0x40 | 0)
        .act(5)
        .keep("stream_peer");
  }
  secured_stream_peers(hello, region);
}

void routing_peers() {
  using Out = std::vector<std::byte>;
  using routing::MessageKind;
  const auto plain = [](MessageKind kind) { return [kind](Out& out) { routing::encode_plain(kind, out); }; };
  const auto fragment = [](MessageKind kind, uint64_t cookie) {
    return [kind, cookie](Out& out) {
      routing::FragmentMessage message;
      message.kind = kind;
      message.cookie = cookie;
      message.length_bytes = 4096;
      message.exposed.kind = message.remote.handle.kind = ports::HandleKind::region;
      routing::encode(message, out);
    };
  };
  const auto message = [](uint64_t id) {
    return [id](Out& out) {
      routing::encode_message_header(id, out);
      out.resize(out.size() + 5);
    };
  };
  const auto message_ack = [](uint64_t next) {
    return [next](Out& out) { routing::encode(routing::MessageAck{next, Status::success}, out); };
  };
  const auto fragment_ack = [](uint64_t cookie) {
    return [cookie](Out& out) { routing::encode(routing::FragmentAck{cookie, Status::success}, out); };
  };
  constexpr uint8_t meets_count = 6, honest = 8;
  for (uint8_t meets = 0; meets < meets_count; ++meets) {
    Steps(meets)
        .say([](Out& out) {
          routing::ConnectRequest request;
          request.destination = "cci://1:2:10.0.0.2:7000";
          request.source = {1, 1};
          request.max_send_bytes = 1392;
          request.fragment_bytes = 65536;
          routing::encode(request, out);
        })
        .say([](Out& out) {
          routing::encode(routing::ConnectPending{"sim://10.0.0.9:7000", true}, out);
        })
        .say([](Out& out) {
          routing::encode(routing::ConnectReply{Status::success, "", 1392, 16384, {}, 0}, out);
        })
        .say(plain(MessageKind::connect_ack))
        .act(0)
        .say(message_ack(1))
        .say([](Out& out) {
          routing::encode(routing::Bye{Status::disconnected, "bye"}, out);
        })
        .keep("routing_peer");
    if (meets >= 4) continue;
    Steps(meets | honest)
        .say(message(0))
        .say(message(1))
        .act(0)
        .say(message_ack(1))
        .say(plain(MessageKind::keepalive))
        .say(plain(MessageKind::end_to_end_keepalive))
        .say(plain(MessageKind::draining))
        .act(3)
        .keep("routing_peer");
    Steps(meets | honest)
        .say(fragment(MessageKind::write_request, 1))
        .byte(7)
        .say(fragment(MessageKind::read_request, 2))
        .byte(7)
        .say([](Out& out) {
          routing::encode(routing::FragmentReleased{2, true}, out);
        })
        .act(1)
        .act(2)
        .say(fragment(MessageKind::read_reply, 2))
        .say([](Out& out) {
          routing::encode(routing::FragmentReleased{1, false}, out);
        })
        .say(fragment_ack(1))
        .act(6)
        .act(5)
        .keep("routing_peer");
  }
  routing::RouterRecord record;
  record.router = 99;
  record.instance = 1;
  routing::DeviceRecord device;
  device.subnet = {1, 1};
  device.rate_bits_per_s = 10'000'000'000;
  device.uri = "sim://10.0.0.66:7000";
  record.devices = {device};
  const auto flood = [&](Out& out) {
    std::vector<std::byte> bytes;
    static_cast<void>(routing::encode_record(record, bytes));
    routing::encode_record_message(MessageKind::record, bytes, out);
  };
  Steps(4 | honest)
      .say(flood)
      .say(plain(MessageKind::keepalive))
      .say(plain(MessageKind::keepalive_ack))
      .pass()
      .keep("routing_peer");
  Steps(5).say(plain(MessageKind::map_request)).byte(7).say(plain(MessageKind::map_request)).keep("routing_peer");
}

// Steps of target_shm_peer.cc. An honest peer; indices that go too far, backwards, and to the end of their range; holes.
void shm_peers() {
  const auto input = [](std::initializer_list<uint8_t> steps) {
    const std::vector<uint8_t> bytes(steps);
    put("shm_peer", std::as_bytes(std::span(bytes)));
  };
  constexpr uint8_t set = 0, add = 1, wide = 8, fill = 2, ring = 3, receive = 4, transmit = 5, turn = 6, hang_up = 7 | 31 << 3;
  constexpr uint8_t written_0 = 0, read_1 = 3, reader_waits_1 = 5, writer_waits_0 = 6;
  input({fill, 'a', add, written_0, 100, 0, ring, receive, 2, receive, 9, transmit, 4, add, read_1, 132, 0, turn, hang_up});
  input({add, written_0, 0, 16, ring, receive, 255, add, written_0, 1, 16, ring, receive, 1});
  input({add, written_0, 50, 0, receive, 1, set, written_0, 1, 0, ring, receive, 9});
  input({add, written_0, 1, 16, receive, 255});
  input({transmit, 200, transmit, 200, set, read_1, 0, 16, turn, transmit, 255, set, read_1, 0, 1, turn, transmit, 3, turn});
  input({set | wide, written_0, 255, 255, 255, 255, 255, 255, 255, 255, ring, receive, 9});
  input({set, reader_waits_1, 1, 1, transmit, 1, set, writer_waits_0, 9, 9, add, written_0, 9, 0, ring, receive, 1, hang_up});
  input({transmit, 9, set, written_0, 0, 0, set, read_1, 0, 0, fill, 0, ring, turn, hang_up, receive, 9, transmit, 9});
}

}  // namespace

void make_peers() {
  shm_peers();
  stream_peers();
  routing_peers();
}

}  // namespace ccixfer::fuzz
