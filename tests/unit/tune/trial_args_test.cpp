#include "gallop/tune/trial_args.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/variable.h"

namespace gallop::tune {
namespace {

using Args = std::vector<std::string>;

// The arguments of `command: [WORD]` at lr = 0.5, fast = true, wide = false.
Args args_of(const std::string& word) {
  const Space space({{"lr", Interval{.low = 0, .high = 1, .step = 0}},
                     {"fast", Choices{{"false", "true"}}},
                     {"wide", Choices{{"false", "true"}}}},
                    {});
  return command_args({.recipe = "", .command = {word}}, space, {0.5, 1, 0}, "runs/0007");
}

TEST(TrialArgs, ExpandAllParameters) {
  EXPECT_EQ(args_of("${args}"), (Args{"--lr=0.5", "--fast=true", "--wide=false"}));
  EXPECT_EQ(args_of("${args_no_hyphens}"), (Args{"lr=0.5", "fast=true", "wide=false"}));
  EXPECT_EQ(args_of("${args_no_boolean_flags}"), (Args{"--lr=0.5", "--fast"}));
  EXPECT_EQ(args_of("${args_json}"), (Args{R"({"lr":0.5,"fast":true,"wide":false})"}));
  EXPECT_EQ(args_of("${args_json_file}"), (Args{"runs/0007.json"}));
  EXPECT_EQ(args_of("${args_no_equals}"),
            (Args{"--lr", "0.5", "--fast", "true", "--wide", "false"}));
  EXPECT_EQ(args_of("${args_append_hydra}"), (Args{"+lr=0.5", "+fast=true", "+wide=false"}));
  EXPECT_EQ(args_of("${args_override_hydra}"), (Args{"++lr=0.5", "++fast=true", "++wide=false"}));
  EXPECT_TRUE(wants_arguments_file({.recipe = "", .command = {"a", "${args_json_file}"}}));
  EXPECT_FALSE(wants_arguments_file({.recipe = "", .command = {"${args}"}}));
}

TEST(TrialArgs, UsePythonBooleansInWandbSweeps) {
  const Space space(
      {{"fast", Choices{{"false", "true"}}}, {"text", Choices{{R"("true")", R"("b")"}}}}, {});
  const RunSpec spec{.recipe = "", .command = {"${args}", "{fast}"}, .python_words = true};
  const RunSpec kept = parse_run_spec(to_json(spec));
  const auto at = [&](double fast) { return command_args(kept, space, {fast, 0}, ""); };
  EXPECT_EQ(at(1), (Args{"--fast=True", "--text=true", "True"}));
  EXPECT_EQ(at(0), (Args{"--fast=False", "--text=true", "False"}));
  const RunSpec flags{
      .recipe = "", .command = {"${args_no_boolean_flags}", "${args_json}"}, .python_words = true};
  EXPECT_EQ(command_args(flags, space, {1, 1}, ""),
            (Args{"--fast", "--text=b", R"({"fast": true, "text": "b"})"}));
}

// What create_sweep_command_args() of W&B 0.31 makes of such values.
TEST(TrialArgs, UsePythonNotation) {
  const Space space({{"a", Choices{{"true"}}},
                     {"b", Choices{{"false"}}},
                     {"c", Choices{{"1"}}},
                     {"d", Choices{{"null"}}},
                     {"e", Choices{{R"(["x", 1.0, null, "it's"])"}}},
                     {"f", Choices{{R"("true")"}}},
                     {"g", Choices{{"1e-05"}}},
                     {"h", Choices{{R"({"k": "a\nb"})"}}}},
                    {});
  const auto words = [&](const std::string& word) {
    const RunSpec spec{.recipe = "", .command = {word}, .python_words = true};
    return command_args(spec, space, {0, 0, 0, 0, 0, 0, 0, 0}, "");
  };
  EXPECT_EQ(words("${args}"),
            (Args{"--a=True", "--b=False", "--c=1", "--d=None", R"(--e=['x', 1.0, None, "it's"])",
                  "--f=true", "--g=1e-05", R"(--h={'k': 'a\nb'})"}));
  EXPECT_EQ(words("${args_json}"),
            (Args{R"({"a": true, "b": false, "c": 1, "d": null, "e": ["x", 1.0, null, "it's"], )"
                  R"("f": "true", "g": 1e-05, "h": {"k": "a\nb"}})"}));
  EXPECT_EQ(words("${args_no_equals}")[7], "None");
  EXPECT_EQ(words("${args_append_hydra}")[3], "+d=None");
  EXPECT_EQ(words("${args_no_boolean_flags}"),
            (Args{"--a", "--c=1", "--d=None", R"(--e=['x', 1.0, None, "it's"])", "--f=true",
                  "--g=1e-05", R"(--h={'k': 'a\nb'})"}));
}

TEST(TrialArgs, PassNestedWandbParametersInOneMap) {
  const Interval rate{.low = 0, .high = 1};
  const Space space({{"model.width", Interval{.low = 1, .high = 9, .step = 1, .integer = true}},
                     {"optimizer.lr", rate},
                     {"optimizer.more.beta", rate},
                     {"seed", Choices{{"7"}}}},
                    {});
  const RunSpec spec{.recipe = "",
                     .command = {"${args}", "${args_json}"},
                     .python_words = true,
                     .nested = {"optimizer", "optimizer.more"}};
  EXPECT_EQ(
      command_args(parse_run_spec(to_json(spec)), space, {3, 0.5, 0.25, 0}, ""),
      (Args{"--model.width=3", "--optimizer={'lr': 0.5, 'more': {'beta': 0.25}}", "--seed=7",
            R"({"model.width": 3, "optimizer": {"lr": 0.5, "more": {"beta": 0.25}}, "seed": 7})"}));
}

TEST(TrialArgs, KeepBracesOfWandb) {
  const Space space({{"lr", Interval{.low = 0, .high = 1}}}, {});
  const auto word = [&](const std::string& text) {
    const RunSpec spec{.recipe = "", .command = {text}, .python_words = true};
    return command_args(spec, space, {0.5}, "").at(0);
  };
  for (const char* text : {"{", "}", "{}", "{{", "{{a}}", R"(--x={"a": {"b": 1}})", "{rate}",
                           "${oc.env:HOME}/x", "--y=${args}", "a{b"}) {
    EXPECT_EQ(word(text), text);
  }
  EXPECT_EQ(word("run-{lr}"), "run-0.5");
}

TEST(TrialArgs, RejectUnknownMacros) {
  EXPECT_EQ(wrong_macro("${args}"), "");
  EXPECT_EQ(wrong_macro("${envvar:HOME}"), "");
  EXPECT_EQ(wrong_macro("--x=${other}"), "");
  EXPECT_EQ(wrong_macro("${args_hydra}"),
            "unknown macro '${args_hydra}'; known are ${env}, ${interpreter}, ${program}, "
            "${args_json}, ${args_json_file}, ${args}, ${args_no_hyphens}, "
            "${args_no_boolean_flags}, ${args_no_equals}, ${args_append_hydra}, "
            "${args_override_hydra} and ${envvar:NAME}");
}

TEST(TrialArgs, ExpandSingleParametersAndVariables) {
  {
    const Variable word("GALLOP_TEST_WORD", "here");
    EXPECT_EQ(args_of("{{{lr}}} ${envvar:GALLOP_TEST_WORD}/{fast}"), (Args{"{0.5} here/true"}));
  }
  const Variable none("GALLOP_TEST_WORD", std::nullopt);
  EXPECT_THROW(args_of("${envvar:GALLOP_TEST_WORD}"), UsageError);
  EXPECT_THROW(args_of("{rate}"), UsageError);
}

TEST(TrialArgs, LeaveVariablesToTheShell) {
  const Space space({{"lr", Interval{.low = 0, .high = 1}}, {"to", Choices{{R"("${envvar:A}")"}}}},
                    {});
  const auto line = [&](const std::string& word) {
    return command_line({.recipe = "", .command = {"a b", word}}, space, {0.5, 0}, "");
  };
  EXPECT_EQ(line("${envvar:HOME}"), R"('a b' "${HOME}")");
  EXPECT_EQ(line("it's {lr} ${envvar:A_1}/x${envvar:_B}"),
            R"('a b' 'it'\''s 0.5 '"${A_1}"/x"${_B}")");
  EXPECT_EQ(line("--to={to}"), R"('a b' '--to=${envvar:A}')");
  // Not a parameter of a shell.
  EXPECT_EQ(line("${envvar:a-b}${envvar:1}"), R"x('a b' "$(printenv a-b)""$(printenv 1)")x");
  EXPECT_EQ(line(""), "'a b' ''");
}

// As the agent of W&B 0.31 passes samples of its sweeps 0.3.
TEST(TrialArgs, KeepFloatsOfWandb) {
  const Space space({{"a", Choices{{"1.0"}}},
                     {"b", Interval{.low = 0, .high = 4}},
                     {"c", Interval{.low = 0, .high = 4, .step = 1}},
                     {"d", Interval{.low = 0, .high = 4, .step = 1, .integer = true}},
                     {"o.e", Choices{{"[2.0, 1e16]"}}}},
                    {});
  const RunSpec spec{.recipe = "",
                     .command = {"${args}", "${args_json}", "{b} {d}"},
                     .python_words = true,
                     .nested = {"o"}};
  EXPECT_EQ(command_args(spec, space, {0, 2, 3, 4, 0}, ""),
            (Args{"--a=1.0", "--b=2.0", "--c=3.0", "--d=4", "--o={'e': [2.0, 1e+16]}",
                  R"({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4, "o": {"e": [2.0, 1e+16]}})", "2.0 4"}));
}

}  // namespace
}  // namespace gallop::tune
