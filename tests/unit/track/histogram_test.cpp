#include "gallop/track/histogram.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::track {
namespace {

TEST(Histograms, RoundTripAndAreSupersededWithTheRun) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-histograms-");
  EXPECT_TRUE(read_histograms(folder.path()).empty());
  Histogram histogram;
  histogram.name = "layers.0.weight";
  histogram.least = -1.5;
  histogram.most = 2;
  histogram.not_finite = 3;
  for (int64_t i = 0; i < 120; ++i) histogram.counts.push_back(i * i);
  {
    LogWriter writer(histograms_of(folder.path()), 0, {});
    for (const int64_t step : {10, 20, 30}) {
      histogram.step = step;
      writer.append(record_of(histogram));
    }
  }
  LogWriter again(histograms_of(folder.path()), 20, {});
  const auto found = read_histograms(folder.path());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].step, 20);
  EXPECT_EQ(found[1].name, histogram.name);
  EXPECT_EQ(found[1].least, histogram.least);
  EXPECT_EQ(found[1].most, histogram.most);
  EXPECT_EQ(found[1].not_finite, 3);
  EXPECT_EQ(found[1].counts, histogram.counts);
}

TEST(Histograms, AreNotReadFromOtherRecords) {
  EXPECT_THROW(histogram_of(Record{.kind = "step"}), DataError);
  Record record = record_of({.name = "a"});
  record.values.erase("least");
  EXPECT_THROW(histogram_of(record), DataError);
}

}  // namespace
}  // namespace gallop::track
