#include "app/report/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/base/units.h"

namespace ccixfer::report {

struct LogFile::Impl {
  std::string path;
  std::shared_ptr<spdlog::logger> logger;
  std::atomic<bool> has_lost = false, is_loss_said = false;
};

LogFile::LogFile() : impl_(std::make_unique<Impl>()) {}
LogFile::~LogFile() = default;

Result<std::unique_ptr<LogFile>> LogFile::open(const std::string& path) {
  const auto cannot = [&](const char* why) {
    return fail(ErrorKind::usage,
                fmt::format("cannot open the log file: {}: {}: give --log-file a writable place", printable(path), why));
  };
  // spdlog makes the directories that are missing: a mistyped path would make a tree.
  // And a FIFO without a reader would hold up the start for ever.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (fd < 0 && errno == ENXIO) return cannot("it is a FIFO that nobody reads, or a socket");
  if (fd < 0) return cannot(std::strerror(errno));
  ::close(fd);
  std::unique_ptr<LogFile> file(new LogFile);
  file->impl_->path = path;
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    file->impl_->logger = std::make_shared<spdlog::logger>("ccixfer", std::move(sink));
    file->impl_->logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %P %l %v");
    file->impl_->logger->set_level(spdlog::level::debug);
    file->impl_->logger->flush_on(spdlog::level::info);
    // In place of words for each line: a full disk must not fill the terminal.
    file->impl_->logger->set_error_handler([impl = file->impl_.get()](const std::string&) { impl->has_lost = true; });
  } catch (const std::exception& problem) {
    return cannot(problem.what());
  }
  return file;
}

std::optional<std::string> LogFile::write(LogLevel level, std::string_view line) {
  spdlog::level::level_enum to = spdlog::level::err;
  if (level == LogLevel::debug) to = spdlog::level::debug;
  if (level == LogLevel::info) to = spdlog::level::info;
  if (level == LogLevel::warning) to = spdlog::level::warn;
  impl_->logger->log(to, spdlog::string_view_t(line.data(), line.size()));
  if (!impl_->has_lost || impl_->is_loss_said.exchange(true)) return std::nullopt;
  return fmt::format("WARNING: cannot write the log file: {}: lines of it are lost: give it room", printable(impl_->path));
}

}  // namespace ccixfer::report
