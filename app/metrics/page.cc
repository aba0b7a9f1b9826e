#include "app/metrics/page.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>

namespace ccixfer::metrics {
namespace {

class Writer {
 public:
  explicit Writer(Format format) : format_(format) {}

  // `name` without _total.
  void counter(std::string_view name, std::string_view help) { family(name, "counter", help); }
  template <size_t bounds>
  void histogram(std::string_view name, std::string_view help, const Histogram<bounds>& of) {
    family(name, "histogram", help);
    one_of_histogram({}, of);
  }
  void histograms(std::string_view name, std::string_view help) { family(name, "histogram", help); }
  // `more`: a label with its value, as name="value".
  template <size_t bounds>
  void one_of_histogram(std::string_view more, const Histogram<bounds>& of) {
    uint64_t count = 0;
    for (size_t at = 0; at <= bounds; ++at) {
      count += of.bucket(at);
      const std::string upper = at < bounds ? bound(of.upper()[at]) : "+Inf";
      fmt::format_to(std::back_inserter(text_), "{}_bucket{{{}{}le=\"{}\"}} {}\n", sample_, more, more.empty() ? "" : ",", upper,
                     count);
    }
    const std::string labels = more.empty() ? std::string() : fmt::format("{{{}}}", more);
    fmt::format_to(std::back_inserter(text_), "{0}_sum{1} {2:.3f}\n{0}_count{1} {3}\n", sample_, labels, of.sum(), count);
  }
  void gauge(std::string_view name, std::string_view help) { family(name, "gauge", help); }
  void sample(std::string_view labels, uint64_t value) {
    fmt::format_to(std::back_inserter(text_), "{}{} {}\n", sample_, labels, value);
  }
  void sample(std::string_view labels, double value) {
    fmt::format_to(std::back_inserter(text_), "{}{} {:.3f}\n", sample_, labels, value);
  }
  std::string done() {
    if (format_ == Format::openmetrics) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  void family(std::string_view name, std::string_view kind, std::string_view help) {
    sample_ = name;
    if (kind == "counter") sample_ += "_total";
    // OpenMetrics names the family without the ending of its samples.
    const std::string_view named = format_ == Format::openmetrics ? name : std::string_view(sample_);
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", named, kind, help);
  }
  // A whole number has its point, as OpenMetrics wants of the bounds of buckets.
  static std::string bound(double value) {
    return value == std::floor(value) ? fmt::format("{:.1f}", value) : fmt::format("{}", value);
  }

  const Format format_;
  std::string text_;
  std::string sample_;
};

std::string label(std::string_view name, std::string_view value) { return fmt::format("{{{}=\"{}\"}}", name, value); }

// Of a label: as OpenMetrics 1.0 has it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  return out;
}

void write_activity(Writer& out, const Activity& activity) {
  const uint64_t ended = activity.ended();  // before those that were opened, so that the difference is never negative
  out.gauge("ccixfer_sessions", "Sessions that are open now.");
  out.sample("", activity.opened() - ended);
  out.counter("ccixfer_sessions_opened", "Sessions that were admitted.");
  out.sample("", activity.opened());
  out.counter("ccixfer_sessions_ended", "Sessions that ended, by how: ok, or the name of the error.");
  for (size_t kind = 0; kind < Activity::kinds; ++kind) {
    const auto one = static_cast<ErrorKind>(kind);
    out.sample(label("status", error_row(one).name), activity.ended(one));
  }
  out.histogram("ccixfer_session_duration_seconds", "How long the sessions that have ended were open.", activity.durations());
  out.counter("ccixfer_sessions_refused", "Sessions that were refused before they were opened, by the name of the error.");
  for (size_t kind = 1; kind < Activity::kinds; ++kind) {
    const auto one = static_cast<ErrorKind>(kind);
    out.sample(label("status", error_row(one).name), activity.refused(one));
  }
  out.counter("ccixfer_files", "Files of transfers that came to their end, by what became of them.");
  out.sample(label("outcome", "delivered"), activity.files());
  out.sample(label("outcome", "unchanged"), activity.files_unchanged());
  out.sample(label("outcome", "failed"), activity.files_failed());
  out.counter("ccixfer_delivered_bytes", "Content of the delivered files.");
  out.sample("", activity.bytes());
}

void write_refusals(Writer& out, const Refusals& refusals) {
  out.counter("ccixfer_metrics_refused", "Who asked here and was not answered, by reason.");
  for (size_t i = 0; i < static_cast<size_t>(Refused::count_); ++i) {
    const auto why = static_cast<Refused>(i);
    out.sample(label("reason", to_string(why)), refusals.of(why));
  }
}

void write_disk(Writer& out, const host::DiskTimes& disk) {
  using host::DiskCall;
  constexpr std::array<std::pair<DiskCall, std::string_view>, host::DiskTimes::calls> calls{
      {{DiskCall::read, "call=\"read\""}, {DiskCall::write, "call=\"write\""}, {DiskCall::sync, "call=\"sync\""}}};
  out.histograms("ccixfer_disk_call_duration_seconds", "How long calls to the file system took that read, wrote or synced data.");
  for (const auto& [call, label] : calls) out.one_of_histogram(label, disk.seconds(call));
  out.counter("ccixfer_disk_read_bytes", "What was read from files.");
  out.sample("", disk.bytes(DiskCall::read));
  out.counter("ccixfer_disk_written_bytes", "What was written to files.");
  out.sample("", disk.bytes(DiskCall::write));
}

void write_traffic(Writer& out, const RouterTraffic& traffic) {
  out.counter("ccixfer_router_received_bytes", "Payload that was passed on, by the device on which it came.");
  for (const DeviceTraffic& device : traffic.devices) out.sample(label("device", escaped(device.device)), device.received_bytes);
  out.counter("ccixfer_router_sent_bytes", "Payload that was passed on, by the device on which it went.");
  for (const DeviceTraffic& device : traffic.devices) out.sample(label("device", escaped(device.device)), device.sent_bytes);
  out.counter("ccixfer_router_fragment_bytes", "Content of fragments that were passed on, by how many routers they had crossed.");
  for (size_t crossed = 0; crossed < traffic.fragment_bytes.size(); ++crossed)
    out.sample(label("crossed", std::to_string(crossed)), traffic.fragment_bytes[crossed]);
  out.counter("ccixfer_router_refused", "Connections that did not come about here, by reason.");
  for (const auto& [reason, count] : traffic.refused) out.sample(label("reason", reason), count);
}

}  // namespace

Format format_of(std::string_view accept) {
  return accept.find("application/openmetrics-text") != std::string_view::npos ? Format::openmetrics : Format::prometheus;
}

std::string_view content_type(Format format) {
  return format == Format::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                       : "text/plain; version=0.0.4; charset=utf-8";
}

std::string page(const Subject& subject, Format format, double cpu_s, uint64_t memory_max_bytes) {
  Writer out(format);
  out.gauge("ccixfer_build_info", "The program and what it does here.");
  out.sample(fmt::format("{{role=\"{}\",version=\"{}\"}}", subject.role, subject.version), uint64_t{1});
  out.gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.");
  out.sample("", subject.started_s);
  out.counter("process_cpu_seconds", "Processor time that was used.");
  out.sample("", cpu_s);
  out.gauge("ccixfer_resident_memory_max_bytes", "The most memory that was resident.");
  out.sample("", memory_max_bytes);
  if (subject.activity != nullptr) write_activity(out, *subject.activity);
  if (subject.disk != nullptr) write_disk(out, *subject.disk);
  if (subject.traffic) write_traffic(out, subject.traffic());
  if (subject.refusals != nullptr) write_refusals(out, *subject.refusals);
  for (size_t i = 0; i < static_cast<size_t>(Counter::count_); ++i) {
    const auto counter = static_cast<Counter>(i);
    const std::string_view name = to_string(counter);
    // The two whose name would not end in their unit.
    const std::string family = counter == Counter::bytes_in    ? "ccixfer_network_received_bytes"
                               : counter == Counter::bytes_out ? "ccixfer_network_sent_bytes"
                                                               : fmt::format("ccixfer_{}", name);
    out.counter(family, fmt::format("The counter {} of --stats.", name));
    out.sample("", subject.counters->get(counter));
  }
  return out.done();
}

}  // namespace ccixfer::metrics
