// Each line of --json as a script reads it: every member, in its order. The shape is a contract.
#include <catch2/catch.hpp>

#include "app/report/bench_event.h"
#include "app/report/events.h"

namespace ccixfer::report {

TEST_CASE("event_lines__of_the_life_of_a_command") {
  CHECK(ready_event(0.25, {"tcp://h:1", "cci://1:2:h:1"}) == R"({"event":"ready","t":0.25,"uris":["tcp://h:1","cci://1:2:h:1"]})");
  CHECK(retry_event(1.23456789, "lost \xFF") == R"({"event":"retry","t":1.234568,"reason":"lost %FF"})");
  CHECK(waiting_event(2, "ab", 3) == R"({"event":"waiting","t":2.0,"transfer":"ab","before":3})");
  CHECK(text_event(0, "note", "words", "a\nb") == R"({"event":"note","t":0.0,"words":"a\nb"})");
}

TEST_CASE("event_lines__session__a_hop_says_what_is_known_of_it") {
  CHECK(
      session_event(0, {"ab", "tcp://h:1", {{"tcp", "tcp://h:1", "1:2", 0.5, 40'000'000'000}, {"verbs", "n", "", 0.25, 0}}, ""}) ==
      R"({"event":"session","t":0.0,"transfer":"ab","peer":"tcp://h:1","path":[)"
      R"({"transport":"tcp","node":"tcp://h:1","subnet":"1:2","round_trip_s":0.5,"rate_bits_per_s":40000000000},)"
      R"({"transport":"verbs","node":"n","round_trip_s":0.25}]})");
}

TEST_CASE("event_lines__session__says_what_the_peer_proved_if_it_did") {
  CHECK(session_event(0, {"ab", "tcp://h:1", {}, "cx1-abc"}) ==
        R"({"event":"session","t":0.0,"transfer":"ab","peer":"tcp://h:1","identity":"cx1-abc","path":[]})");
}

TEST_CASE("event_lines__progress__rounded_and_null_when_not_known") {
  CHECK(progress_event(1, {1, 2, 3, 4.6, 0.26, 0, -1}) ==
        R"({"event":"progress","t":1.0,"files":1,"bytes":2,"bytes_total":3,"bytes_per_s":5.0,"eta_s":0.3})");
  CHECK(progress_event(1, {1, 2, 3, 0, 0, 0, -1}) ==
        R"({"event":"progress","t":1.0,"files":1,"bytes":2,"bytes_total":3,"bytes_per_s":0.0,"eta_s":0.0})");
}

TEST_CASE("event_lines__file__only_what_it_has") {
  CHECK(file_event(0, {"d/f", 3, "ok", "", ""}) == R"({"event":"file","t":0.0,"path":"d/f","bytes":3,"status":"ok"})");
  CHECK(file_event(0, {"\xFF", 3, "failed", "why", "ab"}) ==
        R"({"event":"file","t":0.0,"path":"%FF","escaped":true,"bytes":3,"status":"failed","transfer":"ab","reason":"why"})");
}

TEST_CASE("event_lines__ended_and_done__the_same_counts_in_the_same_order") {
  Ended ended;
  ended.transfer = "ab";
  ended.peer = "tcp://h:1";
  ended.path = "d";
  ended.counts.files = 1, ended.counts.files_unchanged = 2, ended.counts.files_failed = 3;
  ended.counts.bytes = 4, ended.counts.bytes_sent = 5, ended.counts.segments_resent = 6;
  const std::string counts = R"("files":1,"files_unchanged":2,"files_failed":3,"bytes":4,"bytes_sent":5,"segments_resent":6)";
  CHECK(ended_event(1, ended) ==
        R"({"event":"ended","t":1.0,"transfer":"ab","peer":"tcp://h:1","path":"d","status":"ok","exit":0,)" + counts + "}");
  ended.kind = ErrorKind::partial;
  ended.reason = "one failed";
  CHECK(ended_event(1, ended) == R"({"event":"ended","t":1.0,"transfer":"ab","peer":"tcp://h:1","path":"d","status":"partial",)"
                                 R"("exit":23,"reason":"one failed",)" +
                                     counts + "}");
  Done done;
  done.counts.files = 1, done.counts.files_unchanged = 2, done.counts.files_failed = 3;
  done.counts.bytes = 4, done.counts.bytes_sent = 5, done.counts.segments_resent = 6;
  CHECK(done_event(1, done) ==
        R"({"event":"done","t":1.0,"status":"ok","exit":0,)" + counts + R"(,"seconds":0.0,"bytes_per_s":0.0})");
  done.seconds = 1.6000004;
  done.counters = {{"b", 2}, {"a", 1}};
  CHECK(done_event(1, done) == R"({"event":"done","t":1.0,"status":"ok","exit":0,)" + counts +
                                   R"(,"seconds":1.6,"bytes_per_s":2.0,"counters":{"b":2,"a":1}})");
  done.counters.clear();
  done.kind = ErrorKind::partial;
  done.reason = "one failed";
  done.others.deleted = 7;
  CHECK(done_event(1, done) == R"({"event":"done","t":1.0,"status":"partial","exit":23,"reason":"one failed",)" + counts +
                                   R"(,"seconds":1.6,"bytes_per_s":2.0,"deleted":7})");
}

TEST_CASE("event_lines__of_routers_and_devices") {
  CHECK(router_event(0, "r", {"a", "b"}) == R"({"event":"router","t":0.0,"name":"r","devices":["a","b"]})");
  CHECK(reloaded_event(0, 2, "") == R"({"event":"reloaded","t":0.0,"status":"ok","devices":2})");
  CHECK(reloaded_event(0, 2, "bad") == R"({"event":"reloaded","t":0.0,"status":"usage","devices":2,"reason":"bad"})");
  const RouteLine chosen{"1:1", "1:3", {"1:1", "1:2", "1:3"}, {"hops", "cost"}, {2, 30}, true, "the only one"};
  CHECK(route_event(0, chosen) == R"({"event":"route","t":0.0,"from":"1:1","to":"1:3","subnets":["1:1","1:2","1:3"],)"
                                  R"("cost":{"hops":2,"cost":30},"chosen":true,"reason":"the only one"})");
  // Of what is not chosen there is no reason; and a cost without a name is none.
  const RouteLine other{"1:1", "1:3", {}, {"hops"}, {2, 30}, false, "slower"};
  CHECK(route_event(0, other) ==
        R"({"event":"route","t":0.0,"from":"1:1","to":"1:3","subnets":[],"cost":{"hops":2},"chosen":false})");
  CHECK(device_event(0, {"lan", "tcp", "eth0", "10.0.0.1", "up", 1000, "1:2", true, 7}) ==
        R"({"event":"device","t":0.0,"name":"lan","transport":"tcp","interface":"eth0","address":"10.0.0.1","state":"up",)"
        R"("rate_bits_per_s":1000,"subnet":"1:2","default":true,"priority":7})");
  CHECK(device_event(0, {"lan", "tcp", "eth0", "10.0.0.1", "up", 0, "", false, 0}) ==
        R"({"event":"device","t":0.0,"name":"lan","transport":"tcp","interface":"eth0","address":"10.0.0.1","state":"up",)"
        R"("rate_bits_per_s":null,"subnet":null,"default":false,"priority":0})");
  CHECK(transport_event(0, {"udp", true, "a small buffer", "sysctl"}) ==
        R"({"event":"transport","t":0.0,"transport":"udp","usable":true,"missing":"a small buffer","remedy":"sysctl"})");
  Ping ping{"tcp://h:1", 4096, {{"tcp", "n", "", 0.5, 0}}, {0.5, 0.25}, 0, std::nullopt};
  CHECK(ping_event(0, ping) == R"({"event":"ping","t":0.0,"uri":"tcp://h:1","max_send_bytes":4096,)"
                               R"("path":[{"transport":"tcp","node":"n","round_trip_s":0.5}],"round_trips_s":[0.5,0.25]})");
  ping.fragment_bytes = 65536;
  ping.bottleneck = 0;
  CHECK(ping_event(0, ping) ==
        R"({"event":"ping","t":0.0,"uri":"tcp://h:1","max_send_bytes":4096,"fragment_bytes":65536,)"
        R"("path":[{"transport":"tcp","node":"n","round_trip_s":0.5}],"bottleneck":1,"round_trips_s":[0.5,0.25]})");
}

TEST_CASE("event_lines__of_a_bench") {
  CHECK(bench_path_event(0, {"tcp://h:1\n", "spin", "poll", {{"tcp", "n", "1:2", 0.5, 7}, {"tcp", "m", "", 0.25, 0}}}) ==
        R"({"event":"path","t":0.0,"uri":"tcp://h:1%0A","wait":"spin","peer_wait":"poll","path":[)"
        R"({"transport":"tcp","node":"n","subnet":"1:2","round_trip_s":0.5},{"transport":"tcp","node":"m","round_trip_s":0.25}]})");
  BenchRow row;
  row.test = "rma_write";
  row.size_bytes = 8, row.depth = 2, row.connections = 3, row.count = 4, row.seconds = 2;
  const std::string begin = R"({"event":"bench","t":0.0,"test":"rma_write",)";
  const std::string common = R"("depth":2,"connections":3,"count":4,"seconds":2.0)";
  CHECK(bench_event(0, row) == begin + R"("size_bytes":8,)" + common + R"(,"per_s":2.0,"bytes_per_s":16.0})");
  row.size_bytes = 0;
  row.latency_of = "connect_s";
  row.min_s = 1, row.p50_s = 2, row.p90_s = 3, row.p99_s = 4, row.p99_9_s = 5;
  row.again = 6;
  row.reduction = 0;
  row.reduction_paper = 0.5;
  CHECK(bench_event(0, row) == begin + common +
                                   R"(,"connect_s":{"min":1.0,"p50":2.0,"p90":3.0,"p99":4.0,"p99_9":5.0},)"
                                   R"("again":6,"reduction":0.0,"reduction_paper":0.5})");
  row = BenchRow{};
  row.test = "rma_write";
  CHECK(bench_event(0, row) == begin + R"("depth":1,"connections":1,"count":0,"seconds":0.0})");
}

}  // namespace ccixfer::report
