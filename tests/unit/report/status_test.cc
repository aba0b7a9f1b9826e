// The status of a process, as lines and as the JSON of the status page.
#include "app/report/status.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace ccixfer;
using namespace ccixfer::report;
using Json = nlohmann::json;

namespace {

Status receiver() {
  Status status;
  status.version = "1.2.3";
  status.role = "receiver";
  status.time_s = 1790000000;
  status.uptime_s = 12.3456;
  StatusTransfers& transfers = status.transfers.emplace();
  transfers.more = 2;
  StatusTransfer& one = transfers.listed.emplace_back();
  one.transfer = "00ff";
  one.peer = "tcp://192.0.2.1:7";
  one.identity = "cx1-abc";
  one.path = std::string("caf\xe9\x1b[2J", 8);  // no UTF-8, and a command of a terminal
  one.state = StatusTransfer::State::running;
  one.counts.bytes = 25;
  one.bytes_total = 100;
  one.total_known = true;
  one.bytes_per_s = 50;
  one.waiting = {Waits::network, "tcp://192.0.2.9:7"};
  transfers.ended = {
      R"({"transfer":"01","peer":"secret","identity":"secret","path":"secret","status":"ok","reason":"secret","bytes":7})",
      "not JSON", "[1]", R"({"other":1})", ""};
  return status;
}

}  // namespace

TEST_CASE("status__a_receiver__is_one_line_with_every_figure") {
  const std::string text = status_json(receiver());
  CHECK(text.find('\n') == std::string::npos);
  const Json json = Json::parse(text);
  CHECK(json["role"] == "receiver");
  CHECK(json["uptime_s"] == 12.346);
  CHECK(json["network"]["in_per_s"].is_null());  // not known yet
  const Json& one = json["transfers"]["listed"][0];
  CHECK(json["transfers"]["more"] == 2);
  CHECK(one["state"] == "running");
  CHECK_FALSE(one.contains("helped"));
  CHECK(one["bytes_per_s"] == 50);
  CHECK(one["eta_s"] == 1.5);
  CHECK(one["bottleneck"] == "network");
  CHECK(one["hop"] == "tcp://192.0.2.9:7");
  CHECK(one["path"].get<std::string>().find('\x1b') == std::string::npos);
  CHECK_FALSE(json.contains("router"));
  // What is no line of a history is left out.
  REQUIRE(json["transfers"]["ended"].size() == 1);
  CHECK(json["transfers"]["ended"][0]["path"] == "secret");
}

TEST_CASE("status__runs_of_jobs__as_the_event_has_them_and_without_names_who_and_where_not") {
  Status status = receiver();
  CHECK(Json::parse(status_json(status))["jobs"] == Json::parse(R"({"runs":[],"problem":null})"));
  JobRun run;
  run.job = "night\x1b[2Jly<b>";
  run.destination = "secret";
  run.began_s = 1'790'000'000;
  run.status = "file_io";
  run.reason = "secret";
  run.exit = 11;
  run.bytes = 7;
  status.jobs = {{run}, "it is locked"};
  const std::string text = status_json(status);
  CHECK(text.find('\x1b') == std::string::npos);
  const Json json = Json::parse(text)["jobs"];
  CHECK(json["problem"] == "it is locked");
  const Json& one = json["runs"][0];
  CHECK((one["job"] == "night\x1b[2Jly<b>" && one["destination"] == "secret" && one["began"] == 1'790'000'000));
  CHECK((one["ended"].is_null() && one["exit"] == 11 && one["status"] == "file_io" && one["bytes"] == 7));
  CHECK_FALSE(one.contains("event"));
  status.has_names = false;
  const std::string bare = status_json(status);
  CHECK(bare.find("secret") == std::string::npos);
  CHECK(bare.find("night") == std::string::npos);
  CHECK(Json::parse(bare)["jobs"]["runs"][0]["status"] == "file_io");
}

TEST_CASE("status__without_names__nothing_says_who_where_or_what") {
  Status status = receiver();
  status.has_names = false;
  StatusRouter& router = status.router.emplace();
  router.router = "0123456789abcdef";
  router.devices.push_back({"lan", "1:1", "tcp://192.0.2.1:7000", 10});
  router.links.push_back({"fedcba9876543210", "tcp://192.0.2.2:7000", "lan", true});
  StatusConnection& connection = router.listed.emplace_back();
  connection.from = "tcp://192.0.2.3:1";
  connection.to = "tcp://192.0.2.4:1";
  connection.destination = "cci://1:2:192.0.2.5:1";
  router.routers.push_back({"fedcba9876543210", false, {{"", "1:2", "tcp://192.0.2.6:1", 10}}});
  const std::string text = status_json(status);
  INFO(text);
  for (const char* word : {"192.0.2", "secret", "caf", "cx1-", "\"peer\"", "\"path\"", "\"uri\"", "\"reason\""})
    CHECK(text.find(word) == std::string::npos);
  const Json json = Json::parse(text);
  CHECK(json["names"] == false);
  CHECK(json["transfers"]["ended"][0]["bytes"] == 7);
  CHECK(json["transfers"]["listed"][0]["bytes"] == 25);
  CHECK(json["router"]["links"][0]["open"] == true);
  CHECK(json["router"]["devices"][0]["latency_s"].is_null());
}

// Its bytes are in those of the process that leads.
TEST_CASE("status__a_process_that_helps__is_told_from_a_transfer") {
  Status status = receiver();
  status.transfers->listed.front().counts.helped = true;
  CHECK(Json::parse(status_json(status))["transfers"]["listed"][0]["helped"] == true);
}

TEST_CASE("status__time_left__is_known_when_total_and_rate_are") {
  const auto eta = [](bool known, double rate, uint64_t bytes) {
    Status status = receiver();
    StatusTransfer& one = status.transfers->listed.front();
    one.total_known = known;
    one.bytes_per_s = rate;
    one.counts.bytes = bytes;
    return Json::parse(status_json(status))["transfers"]["listed"][0]["eta_s"];
  };
  CHECK(eta(true, 25, 50) == 2.0);
  CHECK(eta(false, 25, 50).is_null());
  CHECK(eta(true, 0, 50).is_null());
  CHECK(eta(true, -1, 50).is_null());
  CHECK(eta(true, 25, 101).is_null());
}
