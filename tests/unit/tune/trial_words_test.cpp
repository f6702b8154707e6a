#include "gallop/tune/trial_words.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/variable.h"

namespace gallop::tune {
namespace {

using Words = std::vector<std::string>;

// Of `command: [WORD]` at lr = 0.5, fast = true, wide = false.
Words words_of(const std::string& word, Variables variables = Variables::kFilled) {
  const Space space({{"lr", Interval{.low = 0, .high = 1, .step = 0}},
                     {"fast", Choices{{"false", "true"}}},
                     {"wide", Choices{{"false", "true"}}}},
                    {});
  return command_words({.recipe = "", .command = {word}}, space, {0.5, 1, 0}, "runs/0007",
                       variables);
}

TEST(TrialWords, StandForAllParameters) {
  EXPECT_EQ(words_of("${args}"), (Words{"--lr=0.5", "--fast=true", "--wide=false"}));
  EXPECT_EQ(words_of("${args_no_hyphens}"), (Words{"lr=0.5", "fast=true", "wide=false"}));
  EXPECT_EQ(words_of("${args_no_boolean_flags}"), (Words{"--lr=0.5", "--fast"}));
  EXPECT_EQ(words_of("${args_json}"), (Words{R"({"lr":0.5,"fast":true,"wide":false})"}));
  EXPECT_EQ(words_of("${args_json_file}"), (Words{"runs/0007.json"}));
  EXPECT_TRUE(wants_arguments_file({.recipe = "", .command = {"a", "${args_json_file}"}}));
  EXPECT_FALSE(wants_arguments_file({.recipe = "", .command = {"${args}"}}));
}

TEST(TrialWords, HavePythonsBooleansInSweepsOfWandb) {
  const Space space(
      {{"fast", Choices{{"false", "true"}}}, {"text", Choices{{R"("true")", R"("b")"}}}}, {});
  const RunSpec spec{.recipe = "", .command = {"${args}", "{fast}"}, .python_words = true};
  const RunSpec kept = parse_run_spec(to_json(spec));
  const auto at = [&](double fast) {
    return command_words(kept, space, {fast, 0}, "", Variables::kFilled);
  };
  EXPECT_EQ(at(1), (Words{"--fast=True", "--text=true", "True"}));
  EXPECT_EQ(at(0), (Words{"--fast=False", "--text=true", "False"}));
  const RunSpec flags{
      .recipe = "", .command = {"${args_no_boolean_flags}", "${args_json}"}, .python_words = true};
  EXPECT_EQ(command_words(flags, space, {1, 1}, "", Variables::kFilled),
            (Words{"--fast", "--text=b", R"({"fast":true,"text":"b"})"}));
}

TEST(TrialWords, StandForOneParameterOrVariable) {
  {
    const Variable word("GALLOP_TEST_WORD", "here");
    EXPECT_EQ(words_of("{{{lr}}} ${envvar:GALLOP_TEST_WORD}/{fast}"), (Words{"{0.5} here/true"}));
  }
  const Variable none("GALLOP_TEST_WORD", std::nullopt);
  EXPECT_THROW(words_of("${envvar:GALLOP_TEST_WORD}"), UsageError);
  EXPECT_EQ(words_of("${envvar:GALLOP_TEST_WORD}", Variables::kNamed),
            (Words{"${envvar:GALLOP_TEST_WORD}"}));
  EXPECT_THROW(words_of("{rate}"), UsageError);
}

}  // namespace
}  // namespace gallop::tune
