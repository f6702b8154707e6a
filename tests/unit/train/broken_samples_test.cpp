#include "gallop/train/broken_samples.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::train {
namespace {

TEST(BrokenSamples, CountEachSampleOnceAlsoAfterAResume) {
  BrokenSamples broken, again;
  std::map<std::string, std::string> map;
  broken.write(map);
  EXPECT_TRUE(map.empty());
  again.read(map);  // As of earlier versions.
  EXPECT_EQ(again.count(), 0);
  EXPECT_TRUE(broken.add(17));
  EXPECT_TRUE(broken.add(3));
  EXPECT_FALSE(broken.add(17));
  EXPECT_EQ(broken.count(), 2);
  EXPECT_EQ(broken.text(), "3,17");
  broken.write(map);
  again.add(4);
  again.read(map);
  EXPECT_EQ(again.text(), "3,4,17");
  EXPECT_FALSE(again.add(3));
}

TEST(BrokenSamples, RefuseWhatIsNoListOfIndices) {
  EXPECT_TRUE(BrokenSamples::parse("").empty());
  EXPECT_EQ(BrokenSamples::parse("5,2"), (std::set<int64_t>{2, 5}));
  for (const char* const text : {"a", "1,,2", "-1", "1;2"}) {
    EXPECT_THROW(BrokenSamples::parse(text), DataError) << text;
  }
}

}  // namespace
}  // namespace gallop::train
