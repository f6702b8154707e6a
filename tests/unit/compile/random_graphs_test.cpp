#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/difference.h"
#include "gallop/compile/loop_node.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "unit/compile/random_functions.h"
#include "unit/compile/random_operators.h"
#include "unit/compile/tensor_bits.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;

constexpr int64_t kCalls = 4;

int64_t number_in_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoll(text);
}

// Exact passes: they only choose which operators are called, and in which order.
const Names kExact = {"functionalize", "cse", "merge-casts", "dce", "rematerialize", "schedule"};

Names all_but(const Names& kept) {
  Names names;
  for (const Pass& pass : all_passes()) {
    if (std::find(kept.begin(), kept.end(), pass.name) == kept.end()) names.emplace_back(pass.name);
  }
  return names;
}

// All exact passes, none, each alone, and all but each.
std::vector<Names> choices_of_passes() {
  const Names inexact = all_but(kExact);
  std::vector<Names> choices = {inexact, all_but({})};
  for (const std::string& name : kExact) {
    choices.push_back(all_but({name}));
    choices.push_back(inexact);
    choices.back().push_back(name);
  }
  return choices;
}

at::Tensor random_state() { return at::globalContext().defaultGenerator(at::kCPU).get_state(); }

void seed(int64_t number) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(static_cast<uint64_t>(number));
}

/// The results of a call.
struct Outcome {
  Tensors results, inputs, state;             // Copies.
  std::vector<std::vector<int64_t>> strides;  // Strides of the results, unless they are empty.
  std::vector<std::pair<size_t, int64_t>> sharing;
  at::Tensor random;

  Outcome(const Tensors& made, const Tensors& given, const Tensors& lasting)
      : results(copies_of(made)),
        inputs(copies_of(given)),
        state(copies_of(lasting)),
        random(random_state()) {
    Tensors all = made;
    for (const auto* list : {&given, &lasting}) all.insert(all.end(), list->begin(), list->end());
    sharing = sharing_of(all);
    for (const at::Tensor& result : made) {
      strides.push_back(result.numel() == 0 ? std::vector<int64_t>() : result.strides().vec());
    }
  }
};

template <typename Call>
std::vector<Outcome> outcomes_of(const Program& program, const Tensors& state, const Call& call,
                                 bool wide = false) {
  std::vector<Outcome> outcomes;
  for (int64_t number = 0; number < kCalls; ++number) {
    const Tensors inputs = arguments_of(program, number, wide);
    seed(number);
    const Tensors results = call(inputs);
    outcomes.emplace_back(results, inputs, state);
  }
  return outcomes;
}

// None if the program cannot run.
std::optional<std::vector<Outcome>> plain_outcomes(const Program& program) {
  try {
    const RandomFunction function(program);
    return outcomes_of(program, function.state(), function);
  } catch (const std::exception&) {  // Unfit, or LibTorch's or oneDNN's own.
  }
  return std::nullopt;
}

std::string difference(const char* what, const Tensors& got, const Tensors& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string found = difference_of_bits(got[i], wanted[i]);
    if (!found.empty()) return fmt::format("{} {} {}", what, i, found);
  }
  return {};
}

std::string difference(const Outcome& got, const Outcome& wanted) {
  if (got.results.size() != wanted.results.size()) return "another number of results";
  std::string found = difference("result", got.results, wanted.results);
  if (found.empty()) found = difference("argument", got.inputs, wanted.inputs);
  if (found.empty()) found = difference("state", got.state, wanted.state);
  if (found.empty() && got.strides != wanted.strides) found = "other strides of results";
  if (found.empty() && got.sharing != wanted.sharing) found = "other tensors share memory";
  if (found.empty()) found = difference("random numbers", {got.random}, {wanted.random});
  return found;
}

// What `judge` finds wrong with a call of the program compiled, or else why it is not; empty where
// nothing is.
std::string failure_by(const std::function<std::string(size_t call, const Outcome& got)>& judge,
                       const Program& program, const Names& passes_off) {
  const RandomFunction function(program);
  CompiledFunction compiled([&](const Tensors& inputs, int64_t) { return function(inputs); },
                            function.state(), {.passes_off = passes_off});
  try {
    const auto got = outcomes_of(program, function.state(),
                                 [&](const Tensors& inputs) { return compiled(inputs); });
    for (size_t call = 0; call < got.size(); ++call) {
      const std::string found = judge(call, got[call]);
      if (!found.empty()) return fmt::format("call {}: {}", call, found);
    }
  } catch (const std::exception& error) {
    return std::string(error.what()).substr(0, 300);
  }
  return compiled.report().reasons.empty() ? std::string() : compiled.report().reasons.front();
}

std::string failure_of(const Program& program, const std::vector<Outcome>& wanted,
                       const Names& passes_off) {
  return failure_by([&](size_t call, const Outcome& got) { return difference(got, wanted[call]); },
                    program, passes_off);
}

std::string failure_of(const Program& program, const Names& passes_off) {
  const auto wanted = plain_outcomes(program);
  return wanted ? failure_of(program, *wanted, passes_off) : std::string();
}

std::string report_of(const Program& program, int64_t number, const Names& passes_off) {
  const Program smallest =
      shrunk(program, [&](const Program& p) { return !failure_of(p, passes_off).empty(); });
  return fmt::format("GALLOP_TEST_SEED={} GALLOP_TEST_COUNT=1, without the passes [{}]: {}\n{}",
                     number, fmt::join(passes_off, " "), failure_of(smallest, passes_off),
                     text_of(smallest));
}

TEST(RandomGraphs, AreBitIdenticalToTheFunctions) {
  const int64_t first = number_in_environment("GALLOP_TEST_SEED", 1);
  const int64_t count = number_in_environment("GALLOP_TEST_COUNT", 200);
  int64_t ran = 0, failed = 0;
  for (int64_t number = first; number < first + count && failed < 5; ++number) {
    const Program program = random_program(static_cast<uint64_t>(number), Flavor::kAny);
    const auto wanted = plain_outcomes(program);
    if (!wanted) continue;
    ran += 1;
    for (const Names& passes_off : choices_of_passes()) {
      if (failure_of(program, *wanted, passes_off).empty()) continue;
      ADD_FAILURE() << report_of(program, number, passes_off);
      failed += 1;
      break;
    }
  }
  EXPECT_GE(ran, count * 9 / 10) << "too few programs can run";
}

// The most that two tensors differ by, and the largest number in `wanted`; infinite where one of
// them has numbers that are not finite.
std::pair<double, double> error_and_size(const at::Tensor& got, const at::Tensor& wanted) {
  if (wanted.numel() == 0) return {0, 0};
  const at::Tensor a = got.to(at::kDouble), b = wanted.to(at::kDouble);
  const double error = (a - b).abs().max().item<double>();
  const double size = b.abs().max().item<double>();
  return std::isfinite(error) && std::isfinite(size)
             ? std::pair(error, size)
             : std::pair<double, double>(INFINITY, INFINITY);
}

double ulp_of(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16: return 0x1p-8;
    case at::kFloat: return 0x1p-23;
    default: return 0x1p-52;
  }
}

// Whether tensors of a compiled call are about as near to what they should be as those of the plain
// one: 4 times its error and 2 units in the last place of the largest number.
std::string excess_of(const char* what, const Tensors& got, const Tensors& plain,
                      const Tensors& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i].scalar_type() != plain[i].scalar_type() || got[i].sizes() != plain[i].sizes()) {
      return fmt::format("{} {} has another format or size", what, i);
    }
    const auto [allowed, size] = error_and_size(plain[i], wanted[i]);
    if (!std::isfinite(allowed)) continue;
    const double bound = 4 * allowed + 2 * ulp_of(plain[i].scalar_type()) * size;
    const double error = error_and_size(got[i], wanted[i]).first;
    if (!(error <= bound)) {
      return fmt::format("{} {} has an error of {:.3g}, and {:.3g} as it is", what, i, error,
                         allowed);
    }
  }
  return {};
}

std::string excess_of(const Program& program, const Names& passes_off) {
  const auto plain = plain_outcomes(program);
  if (!plain) return {};
  std::vector<Outcome> wanted;
  try {
    const RandomFunction function(program, /*wide=*/true);
    wanted = outcomes_of(program, function.state(), function, /*wide=*/true);
  } catch (const std::exception&) {  // Two data types meet that are now the same.
    return {};
  }
  const auto judge = [&](size_t call, const Outcome& got) {
    const Outcome &as_is = (*plain)[call], &exact = wanted[call];
    const std::string found = excess_of("result", got.results, as_is.results, exact.results);
    return found.empty() ? excess_of("state", got.state, as_is.state, exact.state) : found;
  };
  return failure_by(judge, program, passes_off);
}

// Generated code is compiled for every program, so there are fewer: one for so many of the others.
void expect_near(Flavor flavor, int64_t share) {
  const int64_t first = number_in_environment("GALLOP_TEST_SEED", 1);
  const int64_t count =
      std::max<int64_t>(number_in_environment("GALLOP_TEST_COUNT", 240) / share, 1);
  int64_t failed = 0;
  for (int64_t number = first; number < first + count && failed < 5; ++number) {
    const Program program = random_program(static_cast<uint64_t>(number), flavor);
    if (excess_of(program, {}).empty()) continue;
    const auto fails = [](const Program& p) { return !excess_of(p, {}).empty(); };
    const Program smallest = shrunk(program, fails);
    ADD_FAILURE() << "GALLOP_TEST_SEED=" << number << ": " << excess_of(smallest, {}) << "\n"
                  << text_of(smallest);
    failed += 1;
  }
}

// Kernels and generated loops round otherwise.
TEST(RandomGraphs, AreAsAccurateAsTheFunctionsWithKernelsAndLoops) {
  expect_near(Flavor::kSmooth, 20);
}

TEST(RandomGraphs, AreAsAccurateAsTheFunctionsWithReductionsInLoops) {
  expect_near(Flavor::kReducing, 40);
}

// Whether a loop of the compiled program has a reduction and something else.
bool reduces_in_a_loop(const Program& program, KernelCompiler& compiler) {
  const RandomFunction function(program);
  Recording recording = record(function, arguments_of(program, 0));
  if (!recording.refusal.empty()) return false;
  PassContext context{.compiler = compiler};
  run_passes(recording.graph, {}, context);
  const auto reduces = [](const std::string& part) {
    return part.starts_with("aten::sum") || part.starts_with("aten::mean") ||
           part.starts_with("aten::am") || part.ends_with("softmax");
  };
  return std::any_of(
      recording.graph.nodes.begin(), recording.graph.nodes.end(), [&](const Node& node) {
        return is_loop(node) && node.loop->parts.size() > 1 &&
               std::any_of(node.loop->parts.begin(), node.loop->parts.end(), reduces);
      });
}

TEST(RandomGraphs, OftenHaveReductionsInLoops) {
  KernelCompiler compiler;
  int64_t found = 0;
  for (uint64_t number = 1; number <= 10; ++number) {
    const Program program = random_program(number, Flavor::kReducing);
    found += reduces_in_a_loop(program, compiler) ? 1 : 0;
  }
  EXPECT_GE(found, 3);
}

// Programs that once failed.
struct Found {
  const char* name;
  const char* program;
};

void PrintTo(const Found& found, std::ostream* out) { *out << found.name; }

class FoundGraphs : public testing::TestWithParam<Found> {};

TEST_P(FoundGraphs, AreBitIdenticalToTheFunctions) {
  const Program program = parse(GetParam().program);
  const auto wanted = plain_outcomes(program);
  ASSERT_TRUE(wanted);
  for (const Names& passes_off : choices_of_passes()) {
    EXPECT_EQ(failure_of(program, *wanted, passes_off), "")
        << fmt::to_string(fmt::join(passes_off, " "));
  }
}

INSTANTIATE_TEST_SUITE_P(, FoundGraphs,
                         testing::Values(Found{"UnusedRandomNumbersInMadeMemory",
                                               "v0 = buffer(2, 1, 3)\n"
                                               "v1 = dropout(v0, 25, 11)\n"
                                               "return()\n"},
                                         Found{"ViewsOfMemoryThatIsFilledLater",
                                               "v0 = input(3, 1, 4, 1, 6)\n"
                                               "v1 = halves(v0, 57, 58)\n"
                                               "return(v1)\n"},
                                         Found{"ElementsByTheirPlaces",
                                               "v0 = parameter(2, 0, 6, 6, 4)\n"
                                               "v1 = randperm(53, 22)\n"
                                               "v2 = index(v0, v1, 1, 16)\n"
                                               "return(v2)\n"},
                                         Found{"ChangesOfSizesWithinAProduct",
                                               "v0 = buffer(3, 1, 6)\n"
                                               "v1 = linear(v0, v0, 44, 18)\n"
                                               "v2 = outer(v1, v1, 49, 20)\n"
                                               "return(v2)\n"},
                                         Found{"ACopyThatIsAResultAsWell",
                                               "v0 = input(0, 2, 6, 4, 6)\n"
                                               "v1 = sum(v0, 43, 5)\n"
                                               "v2 = copy_to(v1, 9, 8)\n"
                                               "v3 = copy_to(v1, 9, 8)\n"
                                               "return(v1, v2, v3)\n"},
                                         Found{"EqualResults",
                                               "v0 = input(0, 0, 3)\n"
                                               "v1 = exp(v0, 0, 0)\n"
                                               "v2 = exp(v0, 0, 0)\n"
                                               "v3 = neg(v1, 0, 0)\n"
                                               "v4 = neg(v2, 0, 0)\n"
                                               "return(v1, v2, v3, v4)\n"},
                                         Found{"ZerosOfBothSigns",
                                               "v0 = input(0, 0, 3)\n"
                                               "v1 = mul_number(v0, 0, 4)\n"
                                               "v2 = mul_number(v0, 4, 1)\n"
                                               "v3 = reciprocal(v1, 0, 0)\n"
                                               "v4 = reciprocal(v2, 0, 0)\n"
                                               "return(v3, v4)\n"},
                                         Found{"PlacesThatHaveChanged",
                                               "v0 = input(0, 0, 6, 3)\n"
                                               "v1 = buffer(3, 0, 4)\n"
                                               "v2 = range(4, 0)\n"
                                               "v3 = copy_(v1, v2, 0, 0)\n"
                                               "v4 = index_plain(v0, v1, 0, 0)\n"
                                               "return(v4)\n"},
                                         Found{"PartsOfNumbersOfAnArgument",
                                               "v0 = input(0, 0, 6)\n"
                                               "v1 = as_bits(v0, 1, 0)\n"
                                               "v2 = clone(v1, 0, 0)\n"
                                               "return(v1, v2)\n"}),
                         [](const auto& found) { return found.param.name; });

}  // namespace
}  // namespace gallop::compile
