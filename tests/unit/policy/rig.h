// Ids, peers and tables for the tests of app/trust.
#pragma once
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "app/config/peers.h"
#include "core/trust/handshake.h"
#include "tests/unit/host/temp_dir.h"

namespace ccixfer::policy::test {

using ccixfer::testing::TempDir;

inline trust::PeerId id_of(uint8_t number) { return trust::PeerId{{number}}; }
inline std::string text_of(uint8_t number) { return trust::to_string(id_of(number)); }

inline trust::ProvedPeer by_key(uint8_t number) { return {id_of(number), false, {}}; }
inline trust::ProvedPeer by_certificate(uint8_t number, std::vector<std::string> names) {
  return {id_of(number), true, std::move(names)};
}

inline program::PeerConfig table(const std::string& name, uint8_t number, std::vector<std::string> addresses = {}) {
  program::PeerConfig peer;
  peer.name = name;
  peer.id = id_of(number);
  peer.addresses = std::move(addresses);
  return peer;
}
inline program::PeerConfig named(const std::string& name, const std::string& certified_name,
                                 std::vector<std::string> addresses = {}) {
  program::PeerConfig peer;
  peer.name = name;
  peer.certified_name = certified_name;
  peer.addresses = std::move(addresses);
  return peer;
}

inline void write(const std::string& file, const std::string& content, mode_t mode = 0600) {
  std::ofstream(file, std::ios::binary) << content;
  REQUIRE(chmod(file.c_str(), mode) == 0);
}
inline std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline mode_t mode_of(const std::string& file) {
  struct stat stat {};
  return ::stat(file.c_str(), &stat) == 0 ? stat.st_mode & 07777 : 0;
}

inline bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  INFO(part);
  const bool yes = text.find(part) != std::string::npos;
  CHECK(yes);
  return yes;
}
template <typename T>
std::string refusal(const Result<T>& result, ErrorKind kind) {
  REQUIRE(!result);
  INFO(result.error().message);
  CHECK(result.error().kind == kind);
  CHECK(result.error().message.find('\n') == std::string::npos);
  return result.error().message;
}

}  // namespace ccixfer::policy::test
