#include "gallop/track/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "gallop/base/clock.h"
#include "gallop/base/device_error.h"
#include "gallop/track/log_line.h"

namespace gallop::track {

namespace {

Log parse_log(std::string_view text) {
  Log log;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    // Without a newline the record is torn, or still being written.
    if (end == std::string_view::npos) break;
    if (auto record = record_of(text.substr(begin, end - begin))) {
      log.add(std::move(*record));
      log.intact_bytes = static_cast<int64_t>(end) + 1;
    } else {
      ++log.damaged_lines;
    }
    begin = end + 1;
  }
  return log;
}

}  // namespace

void Log::add(Record record) {
  if (record.kind == kSession) {
    for (Record& earlier : records) {
      if (earlier.step > record.step) earlier.superseded = true;
    }
  }
  records.push_back(std::move(record));
}

std::vector<Record> Log::current() const {
  std::vector<Record> result;
  std::copy_if(records.begin(), records.end(), std::back_inserter(result),
               [](const Record& record) { return !record.superseded; });
  std::stable_sort(result.begin(), result.end(),
                   [](const Record& a, const Record& b) { return a.step < b.step; });
  return result;
}

Log read_log(const fs::path& path) { return parse_log(read_file(path)); }

void write_log(const fs::path& path, const std::vector<Record>& records, double began) {
  Record session{.session = 1, .time = began, .kind = kSession};
  for (const Record& record : records) {
    if (session.time == 0 || record.time < session.time) session.time = record.time;
  }
  std::string text = line_of(session);
  for (Record record : records) {
    record.session = 1;
    text += line_of(record);
  }
  write_file_atomically(path, text);
}

LogWriter::LogWriter(const fs::path& path, int64_t step,
                     const std::map<std::string, std::string>& texts)
    : path_(path), file_(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_) throw_device_error(path_, "open", errno);
  const Log log = read_log(path_);
  bytes_ = log.intact_bytes;
  if (ftruncate(file_.get(), bytes_) != 0) throw_device_error(path_, "write", errno);
  for (const Record& record : log.records) session_ = std::max(session_, record.session + 1);
  append({.step = step, .kind = kSession, .texts = texts});
}

std::string LogWriter::line(Record record) const {
  record.session = session_;
  record.time = seconds_since_1970();
  return line_of(record);
}

void LogWriter::append(Record record) {
  const std::string line = this->line(std::move(record));
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = write(file_.get(), line.data() + done, line.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      const int reason = errno;
      // Removes a partial line, which would damage the next one. If this fails, its checksum is
      // wrong.
      [[maybe_unused]] const int ignored = ftruncate(file_.get(), bytes_);
      errno = reason;
      throw_device_error(path_, "write", errno);
    }
  }
  bytes_ += static_cast<int64_t>(line.size());
}

void LogWriter::sync() {
  if (fsync(file_.get()) != 0) throw_device_error(path_, "write", errno);
}

}  // namespace gallop::track
