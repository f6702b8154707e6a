// Measures the results and the cost of Gallop's samplers; `run` compares them with Optuna.
//
//   bench_tune quality PROBLEM TRIALS WORKERS SEED... -- SAMPLER [OPTION=VALUE...]
//     a line for each seed: {"seed": 1, "seconds": S, "regrets": [after each trial]}
//   bench_tune fronts PROBLEM TRIALS EVERY SEED... -- SAMPLER [OPTION=VALUE...]
//     a line for each seed: {"seed": 1, "missing": [hypervolume after each EVERY trials]}
//   bench_tune speed PROBLEM FINISHED ASKS -- SAMPLER [OPTION=VALUE...]
//     {"ask_ms": [of each], "cpu_ms": [of each], "bytes_per_trial": B}, after FINISHED finished
//     trials; of a problem with one or several objectives
//   bench_tune values
//     the value of each {"problem": NAME, "point": {PARAMETER: VALUE}} on standard input
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fronts.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "problems.h"
#include "simulation.h"

namespace {

using namespace gallop;
using namespace gallop::tune;
using Json = nlohmann::ordered_json;
using Args = std::vector<std::string>;

const Problem& problem_of(const std::string& name) {
  static const std::vector<Problem> kProblems = problems();
  for (const Problem& problem : kProblems) {
    if (problem.name == name) return problem;
  }
  throw UsageError("no problem '" + name + "'");
}

StudySettings settings_of(const Space& space, uint64_t seed) {
  return {.name = "benchmark", .seed = seed, .space = space, .objectives = {{.metric = "loss"}}};
}

/// The arguments after "--".
class SamplerArgs {
 public:
  explicit SamplerArgs(Args args) : args_(std::move(args)), registry_(built_in_samplers()) {
    if (args_.empty()) throw UsageError("no sampler is named");
  }

  std::unique_ptr<Sampler> build(const StudySettings& settings) const {
    if (registry_.find(args_[0]) == nullptr) throw UsageError("no sampler '" + args_[0] + "'");
    config::Component component(registry_, args_[0]);
    config::Node options;
    for (size_t i = 1; i < args_.size(); ++i) {
      const size_t sign = args_[i].find('=');
      options.at_or_add(args_[i].substr(0, sign), {}) =
          config::Node::make_scalar(args_[i].substr(sign + 1));
    }
    config::Problems problems;
    config::read_fields(
        options, [&](config::Visitor& visitor) { component.visit_fields(visitor); }, problems);
    problems.throw_if_any();
    return registry_.build(component, settings);
  }

 private:
  Args args_;
  SamplerRegistry registry_;
};

void quality(const Args& args, const SamplerArgs& sampler) {
  const Problem& problem = problem_of(args.at(0));
  for (size_t i = 3; i < args.size(); ++i) {
    const uint64_t seed = std::stoull(args[i]);
    const StudySettings settings = settings_of(problem.space, seed);
    const auto built = sampler.build(settings);
    const Simulation simulation{.problem = &problem,
                                .trials = std::stoll(args.at(1)),
                                .workers = std::stoll(args.at(2)),
                                .seed = seed};
    const double begin = monotonic_seconds();
    const auto found = regrets(simulation, *built, Study(settings));
    const double seconds = monotonic_seconds() - begin;
    std::cout << Json{{"seed", seed}, {"seconds", seconds}, {"regrets", found}}.dump() << std::endl;
  }
}

/// None if no problem with several objectives has this name.
const FrontProblem* find_front_problem(const std::string& name) {
  for (const FrontProblem& problem : front_problems()) {
    if (problem.name == name) return &problem;
  }
  return nullptr;
}

void fronts(const Args& args, const SamplerArgs& sampler) {
  const FrontProblem* const problem = find_front_problem(args.at(0));
  if (problem == nullptr) throw UsageError("no problem '" + args[0] + "'");
  for (size_t i = 3; i < args.size(); ++i) {
    const uint64_t seed = std::stoull(args[i]);
    const StudySettings settings = front_settings(*problem, seed);
    const auto built = sampler.build(settings);
    const auto missing = missing_volumes(*problem, std::stoll(args.at(1)), std::stoll(args.at(2)),
                                         *built, Study(settings));
    std::cout << Json{{"seed", seed}, {"missing", missing}}.dump() << std::endl;
  }
}

/// Resident memory of this process, in bytes.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// A problem for measuring speed, with one or several objectives.
struct Search {
  StudySettings settings;
  std::function<std::vector<double>(const Point&)> losses;
};

Search search_of(const std::string& name) {
  if (const FrontProblem* const several = find_front_problem(name)) {
    return {front_settings(*several, 1), several->values};
  }
  const Problem& problem = problem_of(name);
  return {settings_of(problem.space, 1),
          [&](const Point& point) { return std::vector{problem.value(point)}; }};
}

void speed(const Args& args, const SamplerArgs& sampler) {
  const Search search = search_of(args.at(0));
  const StudySettings& settings = search.settings;
  const auto count = std::stoll(args.at(1)), asks = std::stoll(args.at(2));
  Study study(settings);
  const double before = resident_bytes();
  const auto tell = [&](const Point& point) {
    queue_and_start(study, point, 0);
    finish(study, static_cast<int64_t>(study.trials().size()) - 1, search.losses(point), 0);
  };
  for (int64_t number = 0; number < count; ++number) {
    Random random(1, number);
    tell(random_point(settings.space, random));
  }
  const auto built = sampler.build(settings);
  const auto ask = [&] {
    return built->ask(study, static_cast<int64_t>(study.trials().size())).value().point;
  };
  tell(ask());  // Fills the sampler's caches.
  std::vector<double> milliseconds, of_processor;
  for (int64_t i = 0; i < asks; ++i) {
    const std::clock_t cpu_begin = std::clock();
    const double begin = monotonic_seconds();
    const Point point = ask();
    milliseconds.push_back(1000 * (monotonic_seconds() - begin));
    of_processor.push_back(1000.0 * static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
    tell(point);
  }
  const double bytes = (resident_bytes() - before) / static_cast<double>(study.trials().size());
  std::cout
      << Json{{"ask_ms", milliseconds}, {"cpu_ms", of_processor}, {"bytes_per_trial", bytes}}.dump()
      << '\n';
}

void values() {
  for (std::string line; std::getline(std::cin, line);) {
    const Json json = Json::parse(line);
    const Problem& problem = problem_of(json.at("problem"));
    Point point(problem.space.size(), kInactive);
    for (const auto& [name, value] : json.at("point").items()) {
      const size_t index = problem.space.find(name).value();
      point[index] = problem.space.parse_value(index, value.dump()).value();
    }
    if (!problem.space.contains(point))
      throw UsageError("not a point of the search space: " + line);
    std::cout << fmt::format("{}\n", problem.value(point));
  }
}

void run(const Args& all) {
  const auto separator = std::find(all.begin(), all.end(), "--");
  const Args args(all.begin() + 1, separator);
  if (all.at(0) == "values") return values();
  const SamplerArgs sampler(separator == all.end() ? Args() : Args(separator + 1, all.end()));
  if (all[0] == "quality") return quality(args, sampler);
  if (all[0] == "fronts") return fronts(args, sampler);
  if (all[0] == "speed") return speed(args, sampler);
  throw UsageError("unknown command " + all[0] + "; expected quality, fronts, speed or values");
}

}  // namespace

int main(int count, char** args) {
  try {
    run(Args(args + 1, args + count));
  } catch (const std::exception& error) {
    std::cerr << "bench_tune: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
