#include "gallop/track/labels.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "labels.json";
constexpr int64_t kMostBytes = int64_t{1} << 24;

// Locks the folder itself, which needs no lock file, until the descriptor is closed. Without
// support by the file system there is no locking.
FileDescriptor lock_folder(const fs::path& folder) {
  FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (file && flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return file;
}

}  // namespace

Labels read_labels(const fs::path& folder) {
  const fs::path path = folder / kFile;
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  try {
    const Json json = Json::parse(read_file(path, kMostBytes));
    Labels labels;
    json.at("tags").get_to(labels.tags);
    json.at("note").get_to(labels.note);
    return labels;
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: damaged labels", printable(path.string())));
  }
}

void write_labels(const fs::path& folder, const Labels& labels) {
  const Json json{{"tags", labels.tags}, {"note", labels.note}};
  write_file_atomically(folder / kFile,
                        json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void change_labels(const fs::path& folder, const std::function<void(Labels&)>& change) {
  const FileDescriptor lock = lock_folder(folder);
  Labels labels = read_labels(folder);
  change(labels);
  write_labels(folder, labels);
}

std::pair<std::string, std::string> parse_tag(const std::string& text) {
  constexpr size_t kMostKeyBytes = 250;
  const size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (key.empty() || key.size() > kMostKeyBytes) {
    throw UsageError(
        fmt::format("'{}' is not a tag: use KEY=VALUE or a single word", printable(text)));
  }
  return {key, equals == std::string::npos ? "" : text.substr(equals + 1)};
}

}  // namespace gallop::track
