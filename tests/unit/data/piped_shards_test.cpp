#include "gallop/data/piped_shards.h"

#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/shard_paths.h"
#include "unit/base/error_of.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Writes an archive, and adds its name to a file of those that were fetched.
std::string command_for(const TestFolder& folder, const std::string& name) {
  const std::string log = (folder.path() / "log").string();
  const fs::path archive = folder.add(name, make_tar({{name + ".txt", "content of " + name}}));
  return "pipe:echo " + name + " >> " + log + "; cat " + archive.string();
}

class PipedShards : public testing::Test {
 protected:
  std::vector<fs::path> fetch(const std::vector<std::string>& names) {
    std::vector<std::string> commands;
    for (const std::string& name : names) commands.push_back(command_for(folder_, name));
    return fetch_shards(commands, cache_);
  }

  TestFolder folder_;
  fs::path cache_ = folder_.path() / "cache";
};

TEST_F(PipedShards, AreFetchedOnce) {
  const auto files = fetch({"a-train-0.tar", "a-train-1.tar"});
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].filename(), "a-train-1.tar");
  for (const fs::path& file : files) {
    EXPECT_EQ(content_of(file), content_of(folder_.path() / file.filename()));
  }
  EXPECT_EQ(fetch({"a-train-1.tar", "a-train-0.tar"})[1], files[0]);
  EXPECT_EQ(content_of(folder_.path() / "log").size(), 2 * std::string("a-train-0.tar\n").size());
}

TEST_F(PipedShards, AreFetchedByOneOfSeveralProcesses) {
  std::vector<std::string> names;
  std::vector<std::string> commands;
  for (int i = 0; i < 10; ++i) {
    names.push_back("x-" + std::to_string(i) + ".tar");
    commands.push_back(command_for(folder_, names.back()));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(fetch_shards(commands, cache_).size(), names.size()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(content_of(folder_.path() / "log").size(), names.size() * (names[0].size() + 1));
}

TEST_F(PipedShards, KeepWhatWasFetchedBeforeAnError) {
  const std::string good = command_for(folder_, "good.tar");
  const std::string bad = "pipe:echo first; echo no such host >&2; exit 6";
  EXPECT_EQ(error_of([&] {
              fetch_shards({good, bad}, cache_);
            }),
            "data.path: " + bad + ": the command ended with exit code 6: no such host");
  EXPECT_EQ(error_of([&] {
              fetch_shards({good, "pipe:true"}, cache_);
            }),
            "data.path: pipe:true: the command wrote nothing");
  const std::string html = "pipe:echo '<html>not found</html>'";
  EXPECT_EQ(error_of([&] {
              fetch_shards({good, html}, cache_);
            }),
            "data.path: " + html + ": the command wrote no tar archive, or a part of one");
  const std::string part = "pipe:head -c 700 " + (folder_.path() / "good.tar").string();
  EXPECT_EQ(error_of([&] {
              fetch_shards({good, part}, cache_);
            }),
            "data.path: " + part + ": the command wrote no tar archive, or a part of one");
  EXPECT_EQ(fetch_shards({good}, cache_).size(), 1U);
  EXPECT_EQ(content_of(folder_.path() / "log"), "good.tar\n");
}

TEST_F(PipedShards, HaveTheNameOfTheLastWord) {
  const fs::path archive = folder_.add("x.tar", make_tar({{"a.txt", "a"}}));
  const auto name = [&](const std::string& end) {
    const std::string command = "pipe:cat " + archive.string() + end;
    return fetch_shards({command}, cache_).front().filename().string();
  };
  EXPECT_EQ(name("; : 'https://example.org/b/val-1.tar'"), "val-1.tar");
  EXPECT_EQ(name("; : https://example.org/b/val-1.tar?version=3"), "val-1.tar");
  EXPECT_EQ(name(" | cat -"), "shard.tar");
}

}  // namespace
}  // namespace gallop::data
