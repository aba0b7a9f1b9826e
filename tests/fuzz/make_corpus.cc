// Makes the first inputs of the fuzz targets with the encoders: make_corpus DIRECTORY writes them to DIRECTORY/TARGET/NUMBER;
// make_corpus --check DIRECTORY says whether just they are there already, beside others of the name found-*: what a fuzzer found.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "app/session/entry.h"
#include "app/session/limits.h"
#include "app/session/messages.h"
#include "app/session/open.h"
#include "app/session/segment.h"
#include "app/session/tlv.h"
#include "core/wire/connection_frames.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "core/wire/sealed_record.h"
#include "routing/map/record.h"
#include "routing/transport/messages.h"
#include "tests/fuzz/corpus.h"
#include "transports/datagram/frames.h"
#include "transports/rdma/packets.h"

using namespace ccixfer;
using fuzz::put;

namespace {

using Corpus = std::map<std::string, std::vector<std::byte>>;  // by TARGET/NUMBER
Corpus made;

void session_messages() {
  const session::Answer answer{7, {{3, session::Verdict::send}, {1, session::Verdict::pieces}}};
  const std::vector<session::Message> all = {session::cut(session::Open{3, "abc/def"}).front(),
                                             session::Opened{1, 16},
                                             session::Opened{1, 16, true},
                                             session::LaneOpen{1, 2, 3, session::stripes},
                                             session::Credit{9},
                                             answer,
                                             session::Want{5, {{0, 1}, {4, 2}}},
                                             session::Resend{4, 2, 0, 0},
                                             session::FileEnd{9, session::SourceOutcome::ok, 12, true, {1, 2}},
                                             session::FileResults{{{1, ErrorKind::ok, 0}, {2, ErrorKind::no_space, 28}}},
                                             session::Durable{1, 2},
                                             session::Unlisted{false, "a/b", "Permission denied"},
                                             session::End{3},
                                             session::Summary{1, 2, 3, 4},
                                             session::Summary{1, 2, 3, 4, 2},
                                             session::Bye{},
                                             session::Abort{ErrorKind::interrupted, "stopped"},
                                             session::Alive{7, 60'000},
                                             session::Ask{9},
                                             session::Queued{3},
                                             session::HandshakePart{"records"},
                                             session::Itemized{9, {{1, 0}, {3, 0x0fff}}},
                                             session::Compare{5, 2, 1, {{1, 2}}},
                                             session::Same{5, {{2, 1}}},
                                             session::Deletions{3, 2, 1, {{true, false, "a/b"}, {false, true, "c"}}},
                                             session::Holes{9, {{1, 2}, {5, 1}}},
                                             session::TeamSeat{true},
                                             session::ToRead{{{7, 100, 9, -5, 5, false, "a/b"}, {8, 1, 0, 0, 0, true, ""}}},
                                             session::Give{{{0, 1}, {7, 5}}},
                                             session::Elsewhere{9, {{1, 2}}},
                                             session::TeamEnded{ErrorKind::partial, 1, 2, 3, 4},
                                             session::AskPlace{7},
                                             session::SharedPlace{7, 100, {1, 2}, "a.part"},
                                             session::PlaceState{7, false, "no locks"},
                                             session::Placed{7, 5, {{1, 2}}},
                                             session::PlaceEnded{7}};
  for (const session::Message& message : all) {
    const bool of_lane = session::is_lane_message(message);
    put("session_message", session::encode(message, of_lane ? 0 : 1));
  }
  session::Open open{session::option_recursive, "abc"};
  open.rules.emplace();
  open.rules->list.emplace_back(filter::rule_directory, "o*");
  open.rules->list.emplace_back(filter::rule_include, "/a/**/b");
  open.list.emplace();
  open.list->add("a/b/");
  open.list->add("c");
  open.list->close();
  open.deletes = 7;
  open.link_dest = {"older"};
  open.backup = session::BackupWish{"kept", "~"};
  open.compress = 3;
  open.team = session::TeamWish{{1, 2}, 7, 1, 4, 9, "1.0"};
  open.first = {2, std::vector<std::byte>(9, std::byte{1})};
  put("session_message", session::encode(session::cut(open).front(), 1));
  session::Hello hello;
  put("session_hello", session::encode(hello));
  session::Hello first = hello;
  first.early = {session::encode(session::End{5}, 1), session::encode(session::End{6}, 2)};
  put("session_hello", session::encode(first));
  hello.session = 5;
  hello.lane = 3;
  hello.sealed = hello.moves = true;
  put("session_hello", session::encode(hello));
  std::vector<std::byte> with_tlv = session::encode(hello);  // the target makes the check good
  with_tlv.resize(with_tlv.size() - 6);
  for (const unsigned byte : {7u, 0u, 5u, 0x80u, 1u, 0u, 0u, 0u, 1u, 0u, 0u, 0u, 0u})
    with_tlv.push_back(static_cast<std::byte>(byte));
  put("session_hello", with_tlv);
  put("session_hello", as_bytes("unknown session"));
  put("session_hello", as_bytes("no_space: the disk is full"));
  hello.dial = 4;
  hello.proof[0] = 9;
  put("session_hello", session::encode(hello));
  put("session_sealed", session::encode(session::Ask{9}, 0));
  put("session_sealed", session::encode(session::End{3}, 7));
  put("session_sealed", session::encode(session::HandshakePart{"records"}, 7));
}

void entries_and_segments() {
  std::vector<std::byte> buffer(session::segment_bytes_max);
  session::EntryEncoder encoder(buffer);
  session::Entry entry;
  entry.path = "directory";
  entry.type = session::EntryType::directory;
  entry.mode = 0755;
  static_cast<void>(encoder.add(entry));
  entry.path = "directory/file";
  entry.type = session::EntryType::file;
  entry.has_digest = true;
  static_cast<void>(encoder.add(entry));
  entry.path = "directory/link";
  entry.type = session::EntryType::symlink;
  entry.has_digest = false;
  entry.target = "file";
  static_cast<void>(encoder.add(entry));
  entry.path = "directory/linked";
  entry.type = session::EntryType::file;
  entry.target.clear();
  entry.is_linked = true;
  entry.linked_to = "directory/file";
  entry.user = "who";
  entry.group = "them";
  entry.has_extended = true;
  entry.extended = {{"user.a", "1"}, {"user.b", ""}};
  static_cast<void>(encoder.add(entry));
  entry = session::Entry{};
  entry.path = "directory/pipe";
  entry.type = session::EntryType::special;
  entry.special = ports::SpecialKind::fifo;
  static_cast<void>(encoder.add(entry));
  entry = session::Entry{};
  entry.path = "directory";
  entry.type = session::EntryType::leave;
  entry.is_whole = true;
  entry.left_out = {"socket"};
  static_cast<void>(encoder.add(entry));
  std::vector<std::byte> counted = {static_cast<std::byte>(encoder.count()), std::byte{0}};
  counted.insert(counted.end(), buffer.begin(), buffer.begin() + encoder.size_bytes());
  put("session_entries", counted);
  // The first entry with two TLVs that nobody knows, an optional one and a mandatory one.
  counted = {std::byte{1}, std::byte{0}, std::byte{0}, std::byte{1}};
  wire::Writer out(counted);
  out.u16(0);
  out.text16("f");
  out.zeros(38);
  out.u32(14);
  session::TlvWriter tlvs(out);
  tlvs.add(97, as_bytes("xy"));
  tlvs.add(session::tlv_mandatory | 98, {});
  put("session_entries", counted);

  session::SegmentHeader header;
  header.kind = session::SegmentKind::entries;
  header.count = encoder.count();
  header.data_bytes = encoder.size_bytes();
  put("session_segment", Bytes(buffer).first(session::seal(buffer, header)));
  session::put_pack_record(buffer, {3, 4, {1, 2}, {}});
  std::memcpy(buffer.data() + session::pack_record_bytes, "data", 4);
  header.kind = session::SegmentKind::pack;
  header.count = 1;
  header.data_bytes = session::pack_record_bytes + 4;
  put("session_segment", Bytes(buffer).first(session::seal(buffer, header)));
  header.kind = session::SegmentKind::piece;
  header.count = 0;
  header.data_bytes = 16;
  put("session_segment", Bytes(buffer).first(session::seal(buffer, header)));
  // A zstd frame of "abcdefgh", 16 times, behind its length less one.
  constexpr uint8_t compressed[] = {0x7f, 0x00, 0x00, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x80, 0x7d, 0x00, 0x00, 0x40, 0x61,
                                    0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x01, 0x00, 0x75, 0x69, 0xe1, 0x02};
  put("session_compressed", std::as_bytes(std::span(compressed)));
}

// Each record as a packet of its own, and all of them one after the other, as a run.
void rdma_packets() {
  using Out = wire::Writer;
  ports::RemoteRef remote;
  remote.handle.kind = ports::HandleKind::region;
  remote.handle.generation = 1;
  remote.handle.key = 0x3c6ef372fe94f82b;  // what the target gives its first region
  const std::vector<std::function<void(Out&)>> records = {
      [&](Out& out) {
        rdma::encode(out, {1 << 16, 8000, remote, 4096, 7}, true);
      },
      [&](Out& out) {
        rdma::encode(out, {1 << 16 | 1, 8000, remote, 4096, 7}, false);
      },
      [&](Out& out) {
        rdma::encode(out, rdma::Progress{1 << 16 | 1, 4000});
      },
      [](Out& out) {
        wire::encode_write_ack(out, {1 << 16, Status::success, false});
      },
      [](Out& out) {
        wire::encode_write_ack(out, {1 << 16 | 1, Status::success, false});
      },
      [](Out& out) {
        wire::encode_read_end(out, {1 << 16 | 3, Status::success, false});
      },
      [](Out& out) {
        wire::encode(out, wire::MessageAck{1, Status::success});
      },
      [](Out& out) {
        wire::encode(out, wire::Message{0, 1, 0}, 4), out.u32(1);
      },
      [&](Out& out) {
        wire::encode(out, wire::RmaWrite{2 << 16, 8, 0, remote, false}, 8), out.u64(1);
      },
      [&](Out& out) {
        wire::encode(out, wire::RmaRead{1 << 16 | 2, 100, remote});
      },
      [](Out& out) { wire::encode_empty(out, wire::Kind::keepalive); },
      [](Out& out) {
        wire::encode(out, wire::MailboxHint{3, 4});
      },
      [&](Out& out) {
        rdma::encode(out, {3 << 16, 8000, remote, 4097, 7}, true);
      },
      [](Out&) {},
      [](Out& out) {
        wire::encode_bye(out, {Status::disconnected, "bye"});
      }};
  std::vector<std::byte> run;
  for (const auto& encode : records) {
    std::vector<std::byte> packet;
    Out out(packet);
    rdma::encode(out, rdma::PacketHeader{1});
    encode(out);
    std::vector<std::byte> alone = {static_cast<std::byte>(packet.size())};
    alone.insert(alone.end(), packet.begin(), packet.end());
    put("rdma_peer", alone);
    run.insert(run.end(), alone.begin(), alone.end());
    put("rdma_peer", run);
  }
}

template <typename Encode>
void frame(Encode&& encode) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  encode(out);
  put("stream_frames", bytes);
}

void stream_frames() {
  const std::vector<std::byte> data(8, std::byte{1});
  wire::Hello hello;
  hello.offer = {1408, 256, 256};
  hello.data = data;
  frame([&](wire::Writer& out) { wire::encode(out, hello); });
  wire::HelloReply reply;
  reply.reason = "because";
  frame([&](wire::Writer& out) { wire::encode(out, reply); });
  frame([](wire::Writer& out) { wire::encode_reject(out, {Status::refused, "busy"}); });
  frame([](wire::Writer& out) { wire::encode_bye(out, {Status::disconnected, "bye"}); });
  frame([](wire::Writer& out) { wire::encode_empty(out, wire::Kind::keepalive); });
  frame([](wire::Writer& out) { wire::encode(out, wire::Message{3, 2, 4}, 100); });
  frame([](wire::Writer& out) { wire::encode(out, wire::MessageAck{3, Status::receiver_not_ready}); });
  ports::RemoteRef remote;
  remote.handle.kind = ports::HandleKind::mailbox;
  frame([&](wire::Writer& out) { wire::encode(out, wire::RmaWrite{1, 100, 10, remote, false}, 50); });
  frame([&](wire::Writer& out) { wire::encode(out, wire::RmaRead{1, 100, remote}); });
  frame([](wire::Writer& out) { wire::encode(out, wire::RmaReadData{1, 100, 10}, 50); });
  frame([](wire::Writer& out) { wire::encode_write_ack(out, {1, {Status::success, 3}, false}); });
  frame([](wire::Writer& out) { wire::encode(out, wire::MailboxHint{3, 4}); });
  frame([](wire::Writer& out) { wire::encode_read_end(out, {1, Status::rma_handle, false}); });
  frame([&](wire::Writer& out) { wire::encode_handshake(out, data); });
  frame([](wire::Writer& out) { wire::write_sealed_prefix(out.claim(wire::sealed_prefix_bytes), {1, 100}); });
}

// Each frame by itself; and, for the peer, all of them as a run of packets (of which the first thing wrong ends the connection).
void datagram_frames() {
  using Out = wire::Writer;
  const std::vector<std::byte> data(8, std::byte{1});
  ports::RemoteRef remote;
  remote.handle.kind = ports::HandleKind::region;
  remote.handle.generation = 1;
  reliability::Ack ack;
  ack.count = 2;
  ack.list[0] = {9, 12};
  ack.list[1] = {1, 3};
  datagram::MessageAckFrame told;
  told.next = 1;
  told.words = 1;
  told.bits[0] = 6;
  const std::vector<std::function<void(Out&)>> frames = {
      [&](Out& out) { datagram::encode(out, datagram::PingFrame{}); },
      [&](Out& out) {
        datagram::encode(out, datagram::MessageFrame{1, 0, false, data});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::MessageFrame{0, 0, false, data});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::RmaReadFrame{1 << 16 | 1, 100, remote});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::RmaWriteFrame{1 << 16, 8, 0, remote, data});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::RmaWriteFrame{1 << 16 | 2, 8, 0, remote, {}});
        datagram::encode(out, datagram::RmaWriteMoreFrame{1 << 16 | 2, 0, data});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::RmaWriteMoreFrame{uint64_t{1} << 40, 0, data});
        datagram::encode(out, datagram::RmaReadDataFrame{1 << 16, uint64_t{1} << 40, data});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::MessageFrame{2, 0, true, {}});
      },
      [&](Out& out) { datagram::encode(out, told); },
      [&](Out& out) {
        datagram::encode(out, datagram::RmaReadDataFrame{1 << 16, 0, data});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::RmaEndFrame{1 << 16, Status::rma_op, true});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::MailboxHintFrame{0, 3, 4});
      },
      [&](Out& out) { datagram::encode(out, datagram::GreetingFrame{data}); },
      [&](Out& out) {
        datagram::encode(out, datagram::PingFrame{});
        datagram::encode_padding(out, 40);
      },
      [&](Out& out) {
        datagram::encode(out, datagram::MessagePartFrame{1, 0, datagram::part_bytes + 8, 1, data});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::RmaWriteFrame{1 << 16 | 3, 5000, 0, remote, {}, 1144});
        datagram::encode(out, datagram::RmaReadFrame{1 << 16 | 1, 5000, remote, 1144});
      },
      [&](Out& out) { datagram::encode(out, datagram::PathChallengeFrame{7}); },
      [&](Out& out) { datagram::encode(out, datagram::PathAnswerFrame{7}); },
      [&](Out& out) { datagram::encode_ack(out, ack, 100); },
      [&](Out& out) { datagram::encode(out, datagram::AcceptFrame{}); },
      [&](Out& out) {
        datagram::encode(out, datagram::HelloReplyFrame{1, 2, {1408, 4, 4}, 1472});
      },
      [&](Out& out) {
        datagram::encode(out, datagram::EndNoticeFrame{false, {Status::disconnected, "bye"}});
      }};
  std::vector<std::byte> run = {std::byte{0}};
  for (const auto& encode : frames) {
    std::vector<std::byte> bytes;
    Out out(bytes);
    encode(out);
    put("datagram_frames", bytes);
    run.push_back(static_cast<std::byte>(bytes.size()));
    run.insert(run.end(), bytes.begin(), bytes.end());
    put("datagram_peer", run);
  }
  run[0] = std::byte{0x80};  // in its middle the peer is elsewhere
  put("datagram_peer", run);
  std::vector<std::byte> bytes;
  Out out(bytes);
  datagram::begin_packet(out, {datagram::PacketKind::hello, datagram::packet_version, 0, 5, 77, 0});
  datagram::Hello hello;
  hello.data = data;
  datagram::encode(out, hello);
  datagram::end_packet(out);
  put("datagram_frames", bytes);
  std::vector<std::byte> of_tls;
  Out piece(of_tls);
  datagram::begin_packet(piece, {datagram::PacketKind::handshake, datagram::packet_version, 3, 5, 77, 0});
  datagram::encode(piece, datagram::HandshakePiece{88, 1472, 185, 0, data});
  datagram::end_packet(piece);
  put("datagram_frames", of_tls);
  datagram::PacketHeader header{datagram::PacketKind::group, datagram::packet_version, 0, 5, 77, 1};
  const auto packet = [&] {
    std::vector<std::byte> packed;
    Out to(packed);
    datagram::begin_packet(to, header);
    datagram::encode(to, datagram::MessageFrame{1, 0, false, data});
    datagram::end_packet(to);
    put("datagram_frames", packed);
  };
  packet();
  header.is_short = true;
  for (const auto kind : {datagram::PacketKind::data, datagram::PacketKind::sealed}) {
    header.kind = kind;
    packet();
  }
}

template <typename Encode>
void routing_message(Encode&& encode) {
  std::vector<std::byte> bytes;
  encode(bytes);
  put("routing_messages", bytes);
}

void routing_things() {
  using Out = std::vector<std::byte>;
  routing::ConnectRequest request;
  request.destination = "cci://1:2:10.0.0.1:4000";
  request.source = {1, 1};
  request.max_send_bytes = 1408;
  request.fragment_bytes = 1u << 20;
  request.data.resize(20);
  routing_message([&](Out& out) { routing::encode(request, out); });
  routing::ConnectReply reply;
  reply.status = Status::success;
  reply.reason = "why";
  reply.hops.push_back({"tcp", "tcp://10.0.0.1:4000", 1, 2, std::chrono::milliseconds(1), 10'000'000'000});
  routing_message([&](Out& out) { routing::encode(reply, out); });
  routing_message([](Out& out) { routing::encode_message_header(5, out); });
  routing_message([](Out& out) { routing::encode(routing::MessageAck{4, Status::success}, out); });
  routing_message([](Out& out) { routing::encode(routing::MailboxHint{3, 4}, out); });
  routing_message([](Out& out) { routing::encode(routing::FragmentAck{4, {Status::success, 3}}, out); });
  for (const auto kind :
       {routing::MessageKind::write_request, routing::MessageKind::read_request, routing::MessageKind::read_reply}) {
    routing::FragmentMessage fragment;
    fragment.kind = kind;
    fragment.cookie = 9;
    fragment.length_bytes = 4096;
    fragment.exposed.kind = ports::HandleKind::region;
    fragment.remote.handle.kind = ports::HandleKind::mailbox;
    routing_message([&](Out& out) { routing::encode(fragment, out); });
  }
  routing_message([](Out& out) { routing::encode(routing::FragmentReleased{3, true}, out); });
  routing_message([](Out& out) { routing::encode(routing::Bye{Status::timed_out, "gone"}, out); });
  routing_message([](Out& out) { routing::encode_plain(routing::MessageKind::end_to_end_keepalive, out); });
  routing_message([](Out& out) { routing::encode_plain(routing::MessageKind::connect_ack, out); });
  routing_message([](Out& out) { routing::encode_plain(routing::MessageKind::draining, out); });
  routing_message([](Out& out) { routing::encode(routing::ConnectPending{"tcp://10.0.0.1:4000", true}, out); });
  routing_message([](Out& out) { routing::encode(routing::RouterHello{7, {1, 2}, "tcp://10.0.0.1:4000"}, out); });

  routing::RouterRecord record;
  record.router = 7;
  record.instance = 8;
  routing::DeviceRecord device;
  device.subnet = {1, 2};
  device.rate_bits_per_s = 10'000'000'000;
  device.wan_to = {3, 4};
  device.uri = "tcp://10.0.0.1:4000";
  device.reaches = {5};
  record.devices = {device, device};
  record.devices[1].subnet = {1, 3};
  std::vector<std::byte> bytes;
  if (routing::encode_record(record, bytes)) {
    put("router_record", bytes);
    routing_message([&](Out& out) { routing::encode_record_message(routing::MessageKind::record, bytes, out); });
  }
}

void write_to(const std::filesystem::path& root) {
  for (const auto& [name, bytes] : made) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream out(root / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

bool check(const std::filesystem::path& root) {
  Corpus kept;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().filename().string().starts_with("found-")) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const Bytes bytes = as_bytes(text);
    kept[std::filesystem::relative(entry.path(), root).generic_string()].assign(bytes.begin(), bytes.end());
  }
  for (const auto& [name, bytes] : made) {
    if (const auto found = kept.find(name); found == kept.end() || found->second != bytes) fmt::print("differs: {}\n", name);
  }
  for (const auto& [name, bytes] : kept) {
    if (!made.contains(name)) fmt::print("not made: {}\n", name);
  }
  return kept == made;
}

}  // namespace

void fuzz::put(const std::string& target, Bytes bytes) {
  static std::map<std::string, int> numbers;
  made[fmt::format("{}/{:02}", target, numbers[target]++)].assign(bytes.begin(), bytes.end());
}

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  session_messages();
  entries_and_segments();
  stream_frames();
  datagram_frames();
  rdma_packets();
  routing_things();
  fuzz::make_peers();
  fuzz::make_texts();
  fuzz::make_trust();
  if (std::string_view(argv[1]) == "--check") return argc == 3 && check(argv[2]) ? 0 : 1;
  write_to(argv[1]);
  return 0;
}
