#include "gallop/data/piped_shards.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/base/text.h"
#include "gallop/data/parallel.h"
#include "gallop/data/tar_format.h"

namespace gallop::data {

namespace {

constexpr std::string_view kPrefix = "pipe:";
constexpr int kAtOnce = 4;
constexpr std::chrono::milliseconds kBetweenLooks(100);

// "train-0001.tar" of "pipe:curl -s 'https://example.org/data/train-0001.tar'". A split is
// recognized by it.
std::string name_of(const std::string& command) {
  std::string word = command.substr(command.find_last_of(" \t") + 1);
  std::erase_if(word, [](char c) { return c == '\'' || c == '"'; });
  const std::string name = fs::path(word.substr(0, word.find('?'))).filename().string();
  return name.ends_with(".tar") ? name : "shard.tar";
}

std::string last_line(const std::string& output) {
  const std::string text = output.substr(0, output.find_last_not_of(" \r\n") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

void fetch(const std::string& command, const fs::path& file) {
  const TemporaryFolder unfinished(file.parent_path(), "fetch-");
  const fs::path part = unfinished.path() / "shard.tar";
  const std::string script = command.substr(kPrefix.size());
  const ChildRun run =
      run_to_end({.program = "/bin/sh",
                  .arguments = {"-c", "(" + script + "\n) > \"$0\"", part.string()},
                  .input = "",
                  .own_group = true,
                  .with_warden = true});
  const auto fail = [&](const std::string& why) {
    throw DataError(fmt::format("data.path: {}: the command {}", printable(command), why));
  };
  if (!run.is_good()) {
    const std::string said = last_line(run.output);
    fail(run.end.describe() + (said.empty() ? "" : ": " + printable(said)));
  }
  std::error_code error;
  if (fs::file_size(part, error) == 0 || error) fail("wrote nothing");
  try {
    const FileDescriptor archive = open_for_reading(part);
    TarReader reader(archive, part);
    while (reader.next()) {
    }
  } catch (const DataError&) {
    fail("wrote no tar archive, or a part of one");
  }
  fs::rename(part, file);
}

}  // namespace

bool is_piped(const std::string& path) { return path.starts_with(kPrefix); }

std::vector<fs::path> fetch_shards(const std::vector<std::string>& commands,
                                   const fs::path& folder) {
  std::vector<fs::path> files;
  for (const std::string& command : commands) {
    // Names in a command may be relative.
    const fs::path place = folder / xxh3_128(fs::current_path().string() + "\n" + command);
    make_folders(place);
    files.push_back(place / name_of(command));
  }
  std::optional<FileLock> lock;
  const auto are_there = [&] {
    return std::all_of(files.begin(), files.end(),
                       [](const fs::path& file) { return fs::exists(file); });
  };
  while (!are_there() && !lock) {
    lock = FileLock::try_lock(folder / "lock", fmt::format("process {}", getpid()));
    if (!lock) std::this_thread::sleep_for(kBetweenLooks);
  }
  run_parallel(kAtOnce, static_cast<int64_t>(files.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    if (!fs::exists(files[at])) fetch(commands[at], files[at]);
  });
  return files;
}

}  // namespace gallop::data
