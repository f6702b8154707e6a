#include <fstream>
#include <set>
#include <string>

#include "unit/ui/api_of_test.h"

namespace gallop::ui::api {
namespace {

void write(const fs::path& folder, const char* file, const std::string& text) {
  make_folders(folder);
  std::ofstream(folder / file) << text;
}

constexpr const char* kJournal =
    "{\"search\":\"question\"}\n"
    "{\"experiment\":\"profile []\",\"seconds\":2,\"result\":[]}\n"
    "{\"experiment\":\"compare [] with [a=1]\",\"seconds\":3,"
    "\"result\":{\"speedup\":{\"value\":1.25}}}\n"
    "{\"experiment\":\"compare [] with [a=2]\",\"seconds\":3,"
    "\"result\":{\"speedup\":{\"value\":1},\"failure\":\"no memory\"}}\n"
    "{\"experiment\":\"train [] with seed 1\",\"seconds\":3,"
    "\"result\":{\"evaluations\":[{\"metric\":0.5},{\"metric\":0.875}]}}\n"
    "{\"experiment\":\"find-lr []\",\"seconds\":1,\"result\":0.003}\n";
constexpr const char* kReport =
    R"({"goal":"throughput","recipe":"a.yaml","gain":1.25,"seconds":12,"budget_seconds":60,)"
    R"("trials":[{"change":"a=1","verdict":"kept"},{"change":"a=2","verdict":"failed"}]})";

TEST_F(Api, ShowsSearches) {
  folder.add("mlp-1", "{}", {0.5});
  EXPECT_EQ(get("searches").at("searches"), Json::array());
  const fs::path search = searches.path() / "a";
  write(search, "journal.jsonl", std::string(kJournal) + "{\"experiment\":\"half a li");
  write(search, "report.json", kReport);
  write(search, "report.svg", "<svg/>");
  write(searches.path() / "broken", "journal.jsonl", "");
  write(searches.path() / "broken", "report.json", "{");
  write(searches.path() / "other", "notes.txt", "");
  const Json listed = get("searches").at("searches");
  ASSERT_EQ(listed.size(), 2);
  EXPECT_EQ(listed[0].at("state"), "finished");
  EXPECT_EQ(listed[0].at("kept"), 1);
  EXPECT_EQ(listed[0].at("trials"), 2);
  EXPECT_NE(listed[1].at("trouble").get<std::string>().find("report.json is damaged"),
            std::string::npos);
  const Json one = get("search?name=a");
  EXPECT_EQ(one.at("report"), Json::parse(kReport));
  ASSERT_EQ(one.at("experiments").size(), 5);
  std::vector<std::string> outcomes;
  for (const Json& experiment : one.at("experiments")) {
    outcomes.push_back(experiment.at("outcome"));
  }
  EXPECT_EQ(outcomes, (Names{"", "1.25x", "failed: no memory", "0.875", "0.003"}));
  EXPECT_EQ(text("search/plot.svg?name=a"), "<svg/>");
  EXPECT_EQ(error("search?name=b", 404), "there is no search 'b'; did you mean 'a'?");
  for (const char* name : {"../a", "a/", ".", "/etc", "other"}) {
    EXPECT_TRUE(error(std::string("search?name=") + name, 404).starts_with("there is no search"));
  }
}

TEST_F(Api, FollowsASearchThatHasNotEnded) {
  folder.add("mlp-1", "{}", {0.5});
  const fs::path search = searches.path() / "a";
  write(search, "journal.jsonl", kJournal);
  EXPECT_EQ(get("search?name=a").at("state"), "stopped");
  EXPECT_TRUE(get("search?name=a").at("report").is_null());
  EXPECT_EQ(error("search/plot.svg?name=a", 404), "the search has not ended; there is no plot yet");
  write(search, "progress.json", kReport);
  EXPECT_EQ(get("search?name=a").at("trials"), 2);
  {
    const auto lock = FileLock::try_lock(search / "lock", "a test");
    EXPECT_EQ(get("search?name=a").at("state"), "running");
  }
  EXPECT_EQ(get("search?name=a").at("state"), "stopped");
  write(search, "report.json", kReport);
  // A larger budget continues a search that has ended.
  EXPECT_EQ(get("search?name=a").at("state"), "stopped");
  fs::remove(search / "progress.json");
  EXPECT_EQ(get("search?name=a").at("state"), "finished");
}

TEST_F(Api, NotifiesOfChangesOfSearches) {
  Searches all(searches.path());
  const std::set<std::string> none, one = {"a"};
  write(searches.path() / "b", "journal.jsonl", kJournal);
  EXPECT_EQ(all.take_changes(), std::set<std::string>{"b"});
  write(searches.path() / "a", "journal.jsonl", kJournal);
  EXPECT_EQ(all.take_changes(), one);
  EXPECT_EQ(all.take_changes(), none);
  write(searches.path() / "a", "progress.json", kReport);
  EXPECT_EQ(all.take_changes(), one);
  auto lock = FileLock::try_lock(searches.path() / "a" / "lock", "a test");
  EXPECT_EQ(all.take_changes(), one);
  lock.reset();
  EXPECT_EQ(all.take_changes(), one);
  fs::remove_all(searches.path() / "a");
  EXPECT_EQ(all.take_changes(), one);
  EXPECT_TRUE(Searches("/nowhere").names().empty());
}

}  // namespace
}  // namespace gallop::ui::api
