#include "gallop/optimize/journal.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/optimize/experiment_json.h"
#include "gallop/optimize/search.h"
#include "unit/optimize/fake_experiments.h"

namespace gallop::optimize {
namespace {

struct Place {
  TemporaryFolder folder{fs::temp_directory_path(), "gallop-test-"};
  fs::path file = folder.path() / "journal.jsonl";
};

std::string report_of(Experiments& experiments) {
  const SearchConfig config{.recipe = "a.yaml", .budget_seconds = 1e6};
  return report_json(search(experiments, config, [](const Report&) {}));
}

// Experiments take other times when they are made again.
Json without_seconds(const std::string& report) {
  Json json = Json::parse(report);
  json.erase("seconds");
  json.erase("tables");
  for (Json& trial : json.at("trials")) trial.erase("seconds");
  return json;
}

// A search that is interrupted after any of its experiments ends with the same report.
TEST(Journal, ContinuesASearch) {
  FakeExperiments whole;
  Place place;
  Journal all(whole, place.file, "question");
  report_of(all);
  FakeExperiments none;
  Journal replayed(none, place.file, "question");
  const std::string report = report_of(replayed);
  EXPECT_TRUE(none.log.empty());
  const std::string text = read_file(place.file);
  size_t lines = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1)) {
    if (++lines % 6 != 1) continue;
    // Half of the next line was written, too.
    const size_t torn = std::min(text.size(), end + 1 + 20);
    std::ofstream(place.file) << text.substr(0, torn);
    FakeExperiments rest;
    Journal journal(rest, place.file, "question");
    EXPECT_EQ(journal.known(), lines - 1);
    EXPECT_EQ(rest.seconds(), 0);
    EXPECT_TRUE(without_seconds(report_of(journal)) == without_seconds(report)) << lines;
  }
  EXPECT_GT(lines, 20);
}

TEST(Journal, IsOfOneSearch) {
  FakeExperiments experiments;
  Place place;
  Journal(experiments, place.file, "question");
  Journal(experiments, place.file, "question");
  EXPECT_THROW(Journal(experiments, place.file, "another"), UsageError);
}

TEST(Journal, RejectsDamage) {
  FakeExperiments experiments;
  Place place;
  std::ofstream(place.file) << "{\"search\":\"question\"}\n{\"experiment\":3}\n";
  EXPECT_THROW(Journal(experiments, place.file, "question"), DataError);
}

TEST(Journal, KeepsWhatIsNotFinite) {
  FakeExperiments experiments;
  Place place;
  Journal first(experiments, place.file, "question");
  Comparison before = first.compare({}, {"train.compile=true"});
  Journal second(experiments, place.file, "question");
  const Comparison after = second.compare({}, {"train.compile=true"});
  EXPECT_EQ(after.speedup.value, before.speedup.value);
  EXPECT_EQ(after.loss_change->low, before.loss_change->low);
  EXPECT_FALSE(after.energy_gain);
  EXPECT_EQ(experiments.log.size(), 1);
}

}  // namespace
}  // namespace gallop::optimize
