#include "app/receipt/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "app/session/entry.h"
#include "core/base/utf8.h"

namespace ccixfer::receipt {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t seconds_max = int64_t{1} << 56;  // of times that are compared: beyond the ends of any file system

tl::unexpected<Error> no_receipt() { return fail(ErrorKind::usage, "it is no line of a receipt"); }

std::string line(const Json& json) { return json.dump(-1, ' ', true) + "\n"; }

// Bytes that are no UTF-8 travel as base64 under another name.
void put_text(Json& json, const char* name, std::string_view text) {
  if (is_utf8(text)) {
    json[name] = text;
  } else {
    json[std::string(name) + "64"] = trust::base64(text);
  }
}

std::optional<std::string> get_text(const Json& json, const char* name) {
  const auto plain = json.find(name);
  if (plain != json.end()) {
    if (!plain->is_string()) return std::nullopt;
    return plain->get<std::string>();
  }
  const auto coded = json.find(std::string(name) + "64");
  if (coded == json.end() || !coded->is_string()) return std::nullopt;
  const auto bytes = trust::from_base64(coded->get_ref<const std::string&>());
  if (!bytes || is_utf8(*bytes)) return std::nullopt;  // one text for the same bytes
  return *bytes;
}

std::optional<uint64_t> get_count(const Json& json, const char* name) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_number_unsigned()) return std::nullopt;
  return at->get<uint64_t>();
}

std::optional<int64_t> get_seconds(const Json& json, const char* name) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_number_integer()) return std::nullopt;
  if (at->is_number_unsigned() && at->get<uint64_t>() > static_cast<uint64_t>(seconds_max)) return std::nullopt;
  const auto seconds = at->get<int64_t>();
  return seconds < -seconds_max ? std::nullopt : std::optional<int64_t>(seconds);
}

std::optional<uint32_t> get_mode(const Json& json) {
  const auto at = json.find("mode");
  if (at == json.end() || !at->is_string()) return std::nullopt;
  const auto& text = at->get_ref<const std::string&>();
  uint32_t mode = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (problem != std::errc() || end != text.data() + text.size() || mode > 07777) return std::nullopt;
  return mode;
}

const char* name_of(EntryType type) {
  return type == EntryType::file ? "file" : type == EntryType::directory ? "directory" : "link";
}

Result<Line> parse_header(const Json& json) {
  const auto version = get_count(json, "receipt");
  if (!version) return no_receipt();
  if (*version != format_version)
    return fail(ErrorKind::protocol,
                fmt::format("it is a receipt of format {}, and this version knows format {}", *version, format_version));
  Header header;
  const auto side = get_text(json, "side"), transfer = get_text(json, "transfer"), peer = get_text(json, "peer"),
             path = get_text(json, "path"), directory = get_text(json, "directory"), status = get_text(json, "status");
  const auto time_s = get_seconds(json, "time");
  const auto archive = json.find("archive");
  if (!side || !transfer || !peer || !path || !directory || !status || !time_s || archive == json.end() || !archive->is_boolean())
    return no_receipt();
  if (*side != "source" && *side != "destination") return no_receipt();
  header.side = *side == "source" ? Side::source : Side::destination;
  header.transfer = *transfer;
  header.peer = *peer;
  header.path = *path;
  header.directory = *directory;
  header.status = *status;
  header.time_s = *time_s;
  header.archive = archive->get<bool>();
  if (header.directory.find('\0') != std::string::npos) return no_receipt();
  return header;
}

Result<Line> parse_file(const Json& json, Entry entry) {
  const auto size_bytes = get_count(json, "size");
  const auto seconds = get_seconds(json, "mtime");
  const auto nanoseconds = get_count(json, "mtime_ns");
  const auto mode = get_mode(json);
  if (!size_bytes || !seconds || !nanoseconds || *nanoseconds >= ports::file_time_nanoseconds || !mode) return no_receipt();
  entry.size_bytes = *size_bytes;
  entry.mtime = {*seconds, static_cast<uint32_t>(*nanoseconds)};
  entry.mode = *mode;
  const auto digest = json.find("sha256");
  if (digest == json.end()) return no_receipt();
  if (digest->is_null()) return entry;
  if (!digest->is_string()) return no_receipt();
  entry.sha256 = trust::sha256_from_hex(digest->get_ref<const std::string&>());
  if (!entry.sha256) return no_receipt();
  return entry;
}

Result<Line> parse_entry(const Json& json) {
  Entry entry;
  const auto type = get_text(json, "type"), path = get_text(json, "path");
  if (!type || !path || path->empty() || !session::is_safe_relative_path(*path)) return no_receipt();
  entry.path = *path;
  if (*type == "file") return parse_file(json, std::move(entry));
  if (*type == "directory") {
    entry.type = EntryType::directory;
    const auto mode = get_mode(json);
    if (!mode) return no_receipt();
    entry.mode = *mode;
    return entry;
  }
  if (*type != "link") return no_receipt();
  entry.type = EntryType::link;
  const auto target = get_text(json, "target");
  if (!target || target->empty()) return no_receipt();
  entry.target = *target;
  return entry;
}

Result<Line> parse_end(const Json& json) {
  End end;
  const auto files = get_count(json, "files"), directories = get_count(json, "directories"), links = get_count(json, "links"),
             bytes = get_count(json, "bytes");
  if (!files || !directories || !links || !bytes) return no_receipt();
  end.files = *files;
  end.directories = *directories;
  end.links = *links;
  end.bytes = *bytes;
  return end;
}

Result<Line> parse_signed(const Json& signature) {
  if (signature.is_null()) return Signed{};
  if (!signature.is_object()) return no_receipt();
  Signed last;
  const auto id = get_text(signature, "id"), key = get_text(signature, "key"), value = get_text(signature, "value");
  if (!id || id->empty() || !key || !value) return no_receipt();
  const auto key_der = trust::from_base64(*key), value_bytes = trust::from_base64(*value);
  if (!key_der || !value_bytes) return no_receipt();
  last.id = *id;
  last.signature = {*key_der, *value_bytes};
  return last;
}

}  // namespace

std::string order_key(std::string_view path) {
  std::string key(path);
  std::replace(key.begin(), key.end(), '/', '\0');  // no name has one
  return key;
}

bool comes_before(std::string_view a, std::string_view b) {
  const size_t length = std::min(a.size(), b.size());
  const auto [at, other] = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin());
  if (at == a.begin() + static_cast<std::ptrdiff_t>(length)) return a.size() < b.size();
  if (*at == '/' || *other == '/') return *at == '/';
  return static_cast<unsigned char>(*at) < static_cast<unsigned char>(*other);
}

std::string encode(const Header& header) {
  Json json;
  json["receipt"] = format_version;
  json["side"] = header.side == Side::source ? "source" : "destination";
  put_text(json, "transfer", header.transfer);
  put_text(json, "peer", header.peer);
  put_text(json, "path", header.path);
  put_text(json, "directory", header.directory);
  json["archive"] = header.archive;
  json["time"] = header.time_s;
  put_text(json, "status", header.status);
  return line(json);
}

std::string encode(const Entry& entry) {
  Json json;
  json["type"] = name_of(entry.type);
  put_text(json, "path", entry.path);
  if (entry.type == EntryType::file) {
    json["size"] = entry.size_bytes;
    json["mtime"] = entry.mtime.seconds;
    json["mtime_ns"] = entry.mtime.nanoseconds;
  }
  if (entry.type != EntryType::link) json["mode"] = fmt::format("{:04o}", entry.mode);
  if (entry.type == EntryType::link) put_text(json, "target", entry.target);
  if (entry.type == EntryType::file) json["sha256"] = entry.sha256 ? Json(trust::to_hex(*entry.sha256)) : Json(nullptr);
  return line(json);
}

std::string encode(const End& end) {
  Json json;
  json["end"] = true;
  json["files"] = end.files;
  json["directories"] = end.directories;
  json["links"] = end.links;
  json["bytes"] = end.bytes;
  return line(json);
}

std::string encode(const Signed& last) {
  Json json;
  json["signature"] = nullptr;
  if (!last.id.empty()) {
    Json signature;
    signature["id"] = last.id;
    signature["key"] = trust::base64(last.signature.public_key);
    signature["value"] = trust::base64(last.signature.value);
    json["signature"] = std::move(signature);
  }
  return line(json);
}

Result<Line> parse(std::string_view text) {
  if (text.size() > line_bytes_max) return no_receipt();
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return no_receipt();
  if (json.contains("receipt")) return parse_header(json);
  if (json.contains("type")) return parse_entry(json);
  if (json.contains("end")) return parse_end(json);
  if (json.contains("signature")) return parse_signed(json["signature"]);
  return no_receipt();
}

std::string sha256sum_line(const trust::Sha256Digest& digest, std::string_view path) {
  if (path == "-") path = "./-";  // else sha256sum reads its standard input
  std::string name;
  bool is_escaped = false;
  for (const char c : path) {
    const char letter = c == '\\' ? '\\' : c == '\n' ? 'n' : c == '\r' ? 'r' : '\0';
    if (letter == '\0') {
      name += c;
      continue;
    }
    is_escaped = true;
    name += '\\';
    name += letter;
  }
  return fmt::format("{}{}  {}\n", is_escaped ? "\\" : "", trust::to_hex(digest), name);
}

}  // namespace ccixfer::receipt
