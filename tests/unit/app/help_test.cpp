#include <gtest/gtest.h>

#include "gallop/app/terminal.h"

namespace gallop::app {
namespace {

TEST(WrappedHelp, KeepsTheColumnOfDescriptions) {
  EXPECT_EQ(
      wrapped_help("Evaluate trained models on the data of their recipe or other data\n"
                   "  --part TEXT               validation or test, or any other split of data\n"
                   "  --report-to-a-long-name FOLDER\n"
                   "                            the folder of the report, which may be new\n\n",
                   60),
      "Evaluate trained models on the data of their recipe or other\n"
      "data\n"
      "  --part TEXT               validation or test, or any other\n"
      "                            split of data\n"
      "  --report-to-a-long-name FOLDER\n"
      "                            the folder of the report, which\n"
      "                            may be new\n\n");
}

TEST(WrappedAt, HasThirtyCharactersOnNarrowTerminals) {
  EXPECT_EQ(wrapped_at(37, "the epsilon in the denominator of updates", 40),
            "the epsilon in the denominator\n" + std::string(37, ' ') + "of updates\n");
  EXPECT_EQ(wrapped_at(2, "", 40), "\n");
}

}  // namespace
}  // namespace gallop::app
