#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <gtest/gtest.h>

#include "gallop/app/help_formatter.h"
#include "gallop/app/terminal.h"

namespace gallop::app {
namespace {

TEST(WrappedHelp, KeepsTheColumnOfDescriptions) {
  EXPECT_EQ(
      wrapped_help("Evaluate trained models on the data of their recipe or other data\n"
                   "  --split TEXT              validation or test, or any other split of data\n"
                   "  --report-to-a-long-name FOLDER\n"
                   "                            the folder of the report, which may be new\n\n",
                   60),
      "Evaluate trained models on the data of their recipe or other\n"
      "data\n"
      "  --split TEXT              validation or test, or any other\n"
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

TEST(AllowedValues, ReadsValidators) {
  EXPECT_EQ(allowed_values("INT in [1 - 1024]"), "1 to 1024");
  EXPECT_EQ(allowed_values("FLOAT in [-0.5 - 1e+06]"), "-0.5 to 1e+06");
  EXPECT_EQ(allowed_values("{fp32,bf16,fp16}"), "fp32, bf16 or fp16");
  EXPECT_EQ(allowed_values("NONNEGATIVE"), "at least 0");
  EXPECT_EQ(allowed_values("POSITIVE"), "more than 0");
  EXPECT_EQ(allowed_values("GPU"), "");
}

TEST(HelpFormatter, ShowsTypesAndAllowedValues) {
  int workers = 1;
  std::string format, mode;
  bool quiet = false, json = false;
  CLI::App parser("Train", "gallop train");
  parser.formatter(std::make_shared<HelpFormatter>());
  parser.get_formatter()->column_width(kHelpColumn);
  parser.add_option("--workers", workers, "parallel trials")->check(CLI::Range(1, 1024));
  parser.add_option("--format", format, "of the weights")->check(CLI::IsMember({"a", "b"}));
  auto* const modes = parser.add_option("--mode", mode, "slow or fast");
  modes->check(CLI::IsMember({"slow", "fast"}));
  auto* const quiets = parser.add_flag("--quiet", quiet, "print less");
  parser.add_flag("--json", json, "print JSON")->needs(modes)->excludes(quiets);
  const std::string help = parser.help();
  const auto has = [&help](const std::string& line) {
    return help.find(line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("  --workers INT             parallel trials (1 to 1024)")) << help;
  EXPECT_TRUE(has("  --format TEXT             of the weights (a or b)")) << help;
  EXPECT_TRUE(has("  --mode TEXT               slow or fast")) << help;
  EXPECT_TRUE(has("  --quiet                   print less (not with --json)")) << help;
  EXPECT_TRUE(has("  --json                    print JSON (only with --mode; not with --quiet)"))
      << help;
}

}  // namespace
}  // namespace gallop::app
